// Numbers written into memory of a dtype of its own: whether it can hold them. Knows no op.
#pragma once
#include <string_view>

#include "core/scalar.h"
#include "core/storage.h"

namespace tp::kernels {

/// RuntimeError by op name ('' where the caller adds it) where `value` lies outside what `dtype` holds: a number past its range, nan or infinity for
/// whole numbers, an imaginary part for real ones. Fractions are cut off, and down to minus the largest value an unsigned
/// type takes negative whole numbers modulo its range, as a cast does.
TP_API void check_held(std::string_view op, const Scalar& value, Dtype dtype);
/// The same of an operand: a Python number is looked at, of a tensor only that a real dtype does not get a complex one.
TP_API void check_held(std::string_view op, const Storage& value, Dtype dtype);
/// An operand in `dtype`, checked.
TP_API Storage held(std::string_view op, const Storage& value, Dtype dtype);

}  // namespace tp::kernels
