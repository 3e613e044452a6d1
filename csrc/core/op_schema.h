// OpSchema: what a generated class says about its op. `name` prefixes every error of the op.
#pragma once
#include <cstdint>
#include <string_view>

namespace tp {

/// What autocast does with an op's floating inputs.
enum class Amp : std::uint8_t { Promote, Keep, ForceFp32 };

struct OpSchema {
  std::string_view name;       // "tanh"
  std::string_view signature;  // "tanh(Tensor input) -> Tensor out"
  int version = 1;
  Amp amp = Amp::Promote;
  bool deterministic = true;
};

}  // namespace tp
