// The parts and neighbours of floating-point numbers. Knows no gradients.
#pragma once
#include <array>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// (mantissa of magnitude in [0.5, 1), int32 exponent); 0, infinities and nan are their own mantissa with exponent 0.
// kernel: frexp
TP_API std::array<Storage, 2> frexp(const OpSchema& op, const Storage& input);

/// The next number from input towards other, of two tensors of one half dtype.
// kernel: nextafter_half
TP_API Storage nextafter_half(const OpSchema& op, const Storage& input, const Storage& other);

}  // namespace tp::kernels
