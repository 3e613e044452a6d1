// The real and imaginary part of a complex tensor as views with history. Stands beside the catalogue: a view whose dtype
// differs from its base's is no entry of it.
#pragma once
#include "ops/wiring.h"

namespace tp {

enum class ComplexPart : std::uint8_t { Real, Imag };
/// `t` must be complex; the result shares its memory.
TP_API TensorRef complex_part(const TensorRef& t, ComplexPart part);

}  // namespace tp
