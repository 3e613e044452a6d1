// Whether a dtype holds a number.
#include "kernels/number.h"

#include <cmath>
#include <limits>

#include "core/errors.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

double largest(Dtype d) {
  switch (real_dtype(d)) {
    case Dtype::F16: return 65504;
    case Dtype::BF16: return 0x1.fep127;
    case Dtype::F32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

bool in_range(double v, Dtype d) { return !std::isfinite(v) || std::abs(v) <= largest(d); }

bool holds(const Scalar& v, Dtype d) {
  if (d == Dtype::Bool) return true;
  if (!is_complex(d) && v.imag() != 0) return false;
  if (!is_integral(d)) return in_range(v.to_double(), d) && in_range(v.imag(), d);
  const int bits = int(item_size(d)) * 8 - is_signed(d);
  if (!v.is_integral()) {
    // One past the largest is exact in double, the largest may not be.
    const double x = v.to_double();
    return x >= (is_signed(d) ? -std::ldexp(1, bits) : 0) &&
        (bits < 53 ? x <= std::ldexp(1, bits) - 1 : x < std::ldexp(1, bits));
  }
  if (bits >= 63) return true;
  const std::int64_t x = v.to_int(), past = std::int64_t(1) << bits;
  return x < past && x >= (is_signed(d) ? -past : 1 - past);
}

Scalar number_in(const Storage& s) {
  switch (s.dtype()) {
    case Dtype::Bool: return *s.data<bool>();
    case Dtype::I64: return *s.data<std::int64_t>();
    case Dtype::C128: return {s.data<double>()[0], s.data<double>()[1]};
    case Dtype::F64: return *s.data<double>();
    default: return *cast(s, Dtype::F64).data<double>();
  }
}

}  // namespace

void check_held(std::string_view op, const Scalar& value, Dtype dtype) {
  if (TP_LIKELY(holds(value, dtype))) return;
  const auto refuse = [&](auto... shown) {
    runtime_error(op, op.empty() ? "" : ": ", "value ", shown..., " cannot be converted to type ", dtype_name(dtype),
                  " without overflow");
  };
  if (value.imag() != 0)
    refuse(value.to_double(), value.imag() < 0 ? " - " : " + ", std::abs(value.imag()), "j");
  else if (value.is_integral())
    refuse(value.to_int());
  else
    refuse(value.to_double());
}

void check_held(std::string_view op, const Storage& value, Dtype dtype) {
  if (value.wrapped_number() && value.dim() == 0) return check_held(op, number_in(value), dtype);
  if (TP_UNLIKELY(is_complex(value.dtype()) && !is_complex(dtype)))
    runtime_error(op, ": a value of ", dtype_name(value.dtype()), " cannot be converted to type ", dtype_name(dtype),
                  "; take its real part first");
}

Storage held(std::string_view op, const Storage& value, Dtype dtype) {
  check_held(op, value, dtype);
  return cast(value, dtype);
}

}  // namespace tp::kernels
