// OpSchema: what a generated class says about its op. `name` prefixes every error of the op.
#pragma once
#include <cstdint>
#include <string_view>

namespace tp {

/// What autocast does with an op's floating inputs.
enum class Amp : std::uint8_t {
  Promote,    // operands of several dtypes meet in the widest
  Keep,       // nothing
  ForceFp32,  // halves are cast to float32
  Lower,      // cast to the autocast dtype: matrix products and convolutions
};

struct OpSchema {
  std::string_view name;       // "tanh"
  std::string_view signature;  // "tanh(Tensor input) -> Tensor out"
  int version = 1;
  Amp amp = Amp::Promote;
  bool deterministic = true;
};

}  // namespace tp
