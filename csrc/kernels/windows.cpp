// Values of windows and frequencies, computed in double.
#include "kernels/windows.h"

#include <cmath>

#include "core/errors.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

using std::int64_t;
constexpr double kTau = 6.28318530717958647692;

template <class F>
Storage made(const OpSchema& op, int64_t n, std::optional<Dtype> dtype, const F& value) {
  const Dtype d = dtype.value_or(default_float());
  if (TP_UNLIKELY(!is_differentiable(d)))
    type_error(op.name, ": dtype must be a floating-point type; it is ", dtype_name(d));
  Storage out = empty(Shape{n}, Dtype::F64);
  for (int64_t i = 0; i < n; ++i) out.data<double>()[i] = value(i);
  return cast(out, d);
}

/// value(x) for x from 0 to 1 across the window; symmetric ones are made from the left half, so both halves agree.
template <class F>
Storage window(const OpSchema& op, int64_t n, bool periodic, std::optional<Dtype> dtype, const F& value) {
  if (TP_UNLIKELY(n < 0)) value_error(op.name, ": window_length must not be negative; it is ", n);
  const int64_t last = periodic ? n : n - 1;
  return made(op, n, dtype, [&](int64_t i) {
    if (n == 1) return 1.0;
    return value(double(i <= last - i ? i : last - i) / double(last));
  });
}

// The modified Bessel function I0: all terms are positive.
double bessel_i0(double x) {
  const double q = 0.25 * x * x;
  double sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-18; ++k) sum += term *= q / (double(k) * double(k));
  return sum;
}

}  // namespace

Storage fftfreq(const OpSchema& op, int64_t n, double d, std::optional<Dtype> dtype) {
  if (TP_UNLIKELY(n < 0)) value_error(op.name, ": n must not be negative; it is ", n);
  const int64_t positive = (n + 1) / 2;
  return made(op, n, dtype, [&](int64_t i) { return double(i < positive ? i : i - n) / (double(n) * d); });
}
Storage rfftfreq(const OpSchema& op, int64_t n, double d, std::optional<Dtype> dtype) {
  if (TP_UNLIKELY(n < 0)) value_error(op.name, ": n must not be negative; it is ", n);
  return made(op, n / 2 + 1, dtype, [&](int64_t i) { return double(i) / (double(n) * d); });
}

Storage bartlett_window(const OpSchema& op, int64_t window_length, bool periodic, std::optional<Dtype> dtype) {
  return window(op, window_length, periodic, dtype, [](double x) { return 2 * x; });
}
Storage blackman_window(const OpSchema& op, int64_t window_length, bool periodic, std::optional<Dtype> dtype) {
  return window(op, window_length, periodic, dtype, [](double x) {
    return x == 0 ? 0.0 : 0.42 - 0.5 * std::cos(kTau * x) + 0.08 * std::cos(2 * kTau * x);
  });
}
Storage hamming_window(const OpSchema& op, int64_t window_length, bool periodic, double alpha, double beta,
                       std::optional<Dtype> dtype) {
  return window(op, window_length, periodic, dtype, [&](double x) { return alpha - beta * std::cos(kTau * x); });
}
Storage hann_window(const OpSchema& op, int64_t window_length, bool periodic, std::optional<Dtype> dtype) {
  return window(op, window_length, periodic, dtype, [](double x) {
    const double s = std::sin(0.5 * kTau * x);
    return s * s;
  });
}
Storage kaiser_window(const OpSchema& op, int64_t window_length, bool periodic, double beta,
                      std::optional<Dtype> dtype) {
  const double whole = bessel_i0(beta);
  return window(op, window_length, periodic, dtype,
                [&](double x) { return bessel_i0(beta * 2 * std::sqrt(x * (1 - x))) / whole; });
}

}  // namespace tp::kernels
