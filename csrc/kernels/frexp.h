// The parts of floating-point numbers. Knows no gradients.
#pragma once
#include <array>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// (mantissa of magnitude in [0.5, 1), int32 exponent); 0, infinities and nan are their own mantissa with exponent 0.
// kernel: frexp
TP_API std::array<Storage, 2> frexp(const OpSchema& op, const Storage& input);

}  // namespace tp::kernels
