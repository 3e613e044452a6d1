// Values are formed in float64 (or int64) and cast once.
#include "kernels/factories.h"

#include <cmath>
#include <cstring>

#include "core/errors.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

void check_size(const OpSchema& op, const Dims& size) {
  for (std::int64_t v : size)
    if (v < 0) value_error(op.name, ": negative size ", v, " in ", size);
}
bool whole(const Scalar& s) { return s.is_integral(); }

}  // namespace

Storage zeros(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype) {
  check_size(op, size);
  return zeros_storage(size, dtype.value_or(default_float()));
}

Storage ones(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype) {
  check_size(op, size);
  return ones_storage(size, dtype.value_or(default_float()));
}

Storage empty_filled(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype) {
  check_size(op, size);
  return empty(size, dtype.value_or(default_float()));
}

Storage full(const OpSchema& op, const Dims& size, const Scalar& fill_value, std::optional<Dtype> dtype) {
  check_size(op, size);
  Storage out = empty(size, dtype.value_or(fill_value.dtype()));
  fill(out, fill_value);
  return out;
}

Storage arange(const OpSchema& op, const Scalar& start, const Scalar& end, const Scalar& step, std::optional<Dtype> dtype) {
  if (start.is_complex() || end.is_complex() || step.is_complex()) type_error(op.name, ": complex bounds have no order");
  const double a = start.to_double(), b = end.to_double(), s = step.to_double();
  if (s == 0) value_error(op.name, ": step must not be zero");
  if (!std::isfinite(a) || !std::isfinite(b) || std::isnan(s)) value_error(op.name, ": bounds must be finite, got ", a, " and ", b);
  if ((s > 0 && a > b) || (s < 0 && a < b))
    value_error(op.name, ": end ", b, " lies on the other side of start ", a, " than step ", s, " goes");
  const bool integral = whole(start) && whole(end) && whole(step);
  const Dtype d = dtype.value_or(integral ? Dtype::I64 : default_float());
  if (integral) {
    const std::int64_t first = start.to_int(), by = step.to_int(), last = end.to_int();
    const std::int64_t n = by > 0 ? (last - first + by - 1) / by : (first - last - by - 1) / -by;
    Storage out = empty({n}, Dtype::I64);
    for (std::int64_t i = 0; i < n; ++i) out.data<std::int64_t>()[i] = first + i * by;
    return cast(out, d);
  }
  const double count = std::ceil((b - a) / s);
  if (count > 9e15) fail(ErrorKind::Memory, op.name, ": ", count, " elements are too many");
  Storage out = empty({std::int64_t(count)}, Dtype::F64);
  for (std::int64_t i = 0; i < out.numel(); ++i) out.data<double>()[i] = a + double(i) * s;
  return cast(out, d);
}

Storage arange_end(const OpSchema& op, const Scalar& end, std::optional<Dtype> dtype) {
  return arange(op, Scalar(std::int64_t(0)), end, Scalar(std::int64_t(1)), dtype);
}

Storage linspace(const OpSchema& op, const Scalar& start, const Scalar& end, std::int64_t steps, std::optional<Dtype> dtype) {
  if (steps < 0) value_error(op.name, ": steps must not be negative, got ", steps);
  if (start.is_complex() || end.is_complex()) {
    Storage out = empty({steps}, Dtype::C128);
    const double re = start.to_double(), im = start.imag();
    const double dr = steps > 1 ? (end.to_double() - re) / double(steps - 1) : 0, di = steps > 1 ? (end.imag() - im) / double(steps - 1) : 0;
    for (std::int64_t i = 0; i < steps; ++i) out.data<c128>()[i] = c128{re + double(i) * dr, im + double(i) * di};
    return cast(out, dtype.value_or(complex_dtype(default_float())));
  }
  const double a = start.to_double(), b = end.to_double();
  const double step = steps > 1 ? (b - a) / double(steps - 1) : 0;
  Storage out = empty({steps}, Dtype::F64);
  double* to = out.data<double>();
  // From both ends, so that the last value is exactly `end`.
  for (std::int64_t i = 0; i < steps; ++i) to[i] = i < steps / 2 || steps == 1 ? a + double(i) * step : b - double(steps - 1 - i) * step;
  return cast(out, dtype.value_or(default_float()));
}

Storage eye(const OpSchema& op, std::int64_t n, std::optional<std::int64_t> m, std::optional<Dtype> dtype) {
  const std::int64_t columns = m.value_or(n);
  if (n < 0 || columns < 0) value_error(op.name, ": negative size [", n, ", ", columns, "]");
  Storage out = zeros_storage({n, columns}, dtype.value_or(default_float()));
  Storage diagonal = out.with_geometry({std::min(n, columns)}, {columns + 1}, 0);
  fill(diagonal, Scalar(1));
  return out;
}

}  // namespace tp::kernels
