// Sizes, dtypes and values of the factories.
#include "kernels/factories.h"

#include <algorithm>
#include <cmath>

#include "core/complex.h"
#include "core/errors.h"
#include "kernels/number.h"
#include "kernels/staging.h"
#include "kernels/staging_table.h"

namespace tp::kernels {
namespace {

void check_sizes(const OpSchema& op, const Dims& size) {
  for (std::int64_t v : size)
    if (TP_UNLIKELY(v < 0)) value_error(op.name, ": negative size in ", size);
}

// write(to, first, k) gives the values of places [first, first + k); block by block, converted where dtypes differ.
template <class T, class F>
Storage generated(std::int64_t n, Dtype source, Dtype dtype, const F& write) {
  Storage out = empty(Shape{n}, dtype);
  T block[kStage];
  const ConvertFn convert = staging->convert[int(source)][int(dtype)];
  for (std::int64_t i = 0; i < n; i += kStage) {
    const std::int64_t k = std::min(kStage, n - i);
    if (source == dtype) {
      write(out.data<T>() + i, i, k);
      continue;
    }
    write(block, i, k);
    convert(out.raw() + i * std::int64_t(item_size(dtype)), reinterpret_cast<const char*>(block), k);
  }
  return out;
}

// Evenly spaced places counted from both ends: each half meets its own end exactly.
void even_block(double* to, std::int64_t first, std::int64_t k, double a, double b, double by, std::int64_t steps) {
  const std::int64_t half = steps == 1 ? 1 : steps / 2;
  const std::int64_t before = std::clamp<std::int64_t>(half - first, 0, k);
  staging->ramp_f64(to, before, first, a, by);
  staging->ramp_f64(to + before, k - before, first + before - (steps - 1), b, by);
}

Dtype number_dtype(const Scalar& s) {
  switch (s.category()) {
    case Category::Bool: return Dtype::Bool;
    case Category::Integer: return Dtype::I64;
    case Category::Float: return default_float();
    default: return complex_dtype(default_float());
  }
}

void require_real(const OpSchema& op, const Scalar& s, const char* name) {
  if (TP_UNLIKELY(s.is_complex())) type_error(op.name, ": ", name, " must be a real number");
}

c128 complex_of(const Scalar& s) { return {s.to_double(), s.imag()}; }

Storage triangle(const OpSchema& op, std::int64_t row, std::int64_t col, std::int64_t offset,
                 std::optional<Dtype> dtype, bool lower) {
  if (TP_UNLIKELY(row < 0 || col < 0)) value_error(op.name, ": negative size, row ", row, " and col ", col);
  offset = std::clamp(offset, -row, col);  // beyond, nothing changes
  const auto first = [&](std::int64_t r) { return lower ? 0 : std::clamp<std::int64_t>(r + offset, 0, col); };
  const auto last = [&](std::int64_t r) { return lower ? std::clamp<std::int64_t>(r + offset + 1, 0, col) : col; };
  // The places of [0, row) where the line starts and stops crossing the columns leave a trapezium between them.
  using Wide = __int128;
  const Wide steps = Wide(lower ? offset + 1 : offset);
  const auto below = [&](Wide r) {  // the sum of clamp(u, 0, col) over u < r
    const Wide in = std::clamp<Wide>(r - 1, 0, col);
    return in * (in + 1) / 2 + std::max<Wide>(r - 1 - in, 0) * col;
  };
  const Wide left = below(row + steps) - below(steps), many = lower ? left : Wide(row) * col - left;
  if (TP_UNLIKELY(many > std::numeric_limits<std::int64_t>::max() / 16))
    value_error(op.name, ": row ", row, " and col ", col, " have more indices than memory can hold");
  const std::int64_t count = std::int64_t(many);
  // Rows that have none are not walked over: there may be any number of them.
  const std::int64_t from = count == 0 ? row : lower ? std::max<std::int64_t>(0, -offset) : 0;
  const std::int64_t to = lower ? row : std::min(row, col - offset);
  Storage out = empty(Shape{2, count}, Dtype::I64);
  std::int64_t* rows = out.data<std::int64_t>();
  std::int64_t* cols = rows + count;
  for (std::int64_t r = from; r < to; ++r)
    for (std::int64_t c = first(r); c < last(r); ++c) {
      *rows++ = r;
      *cols++ = c;
    }
  return cast(out, dtype.value_or(Dtype::I64));
}

}  // namespace

Storage empty_filled(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype) {
  check_sizes(op, size);
  return tp::empty(size, dtype.value_or(default_float()));
}

Storage zeros(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype) {
  check_sizes(op, size);
  return zeros_storage(size, dtype.value_or(default_float()));
}

Storage ones(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype) {
  check_sizes(op, size);
  return ones_storage(size, dtype.value_or(default_float()));
}

Storage full(const OpSchema& op, const Dims& size, const Scalar& fill_value, std::optional<Dtype> dtype) {
  check_sizes(op, size);
  Storage out = tp::empty(size, dtype.value_or(number_dtype(fill_value)));
  check_held(op.name, fill_value, out.dtype());
  fill(out, fill_value);
  return out;
}

Storage arange_end(const OpSchema& op, const Scalar& end, std::optional<Dtype> dtype) {
  return arange(op, Scalar(0), end, Scalar(1), dtype);
}

Storage arange(const OpSchema& op, const Scalar& start, const Scalar& end, const Scalar& step,
               std::optional<Dtype> dtype) {
  require_real(op, start, "start");
  require_real(op, end, "end");
  require_real(op, step, "step");
  const bool integers = start.is_integral() && end.is_integral() && step.is_integral();
  const Dtype out = dtype.value_or(integers ? Dtype::I64 : default_float());
  const double a = start.to_double(), b = end.to_double(), s = step.to_double();
  if (TP_UNLIKELY(s == 0)) value_error(op.name, ": step must not be 0");
  if (TP_UNLIKELY(!std::isfinite(a) || !std::isfinite(b) || s != s))
    value_error(op.name, ": start ", a, ", end ", b, " and step ", s, " must be finite");
  if (TP_UNLIKELY((s > 0 && a > b) || (s < 0 && a < b)))
    value_error(op.name, ": end ", b, " cannot be reached from start ", a, " by steps of ", s);
  if (integers) {
    const std::int64_t first = start.to_int(), by = step.to_int(), span = end.to_int() - first;
    const std::int64_t n = span / by + (span % by != 0);
    return generated<std::int64_t>(n, Dtype::I64, out, [&](std::int64_t* to, std::int64_t i, std::int64_t k) {
      staging->ramp_i64(to, k, i, first, by);
    });
  }
  const double n = std::ceil((b - a) / s);
  if (TP_UNLIKELY(n > 9e15)) value_error(op.name, ": ", n, " elements are too many");
  return generated<double>(std::int64_t(n), Dtype::F64, out,
                           [&](double* to, std::int64_t i, std::int64_t k) { staging->ramp_f64(to, k, i, a, s); });
}

Storage linspace(const OpSchema& op, const Scalar& start, const Scalar& end, std::int64_t steps,
                 std::optional<Dtype> dtype) {
  if (TP_UNLIKELY(steps < 0)) value_error(op.name, ": steps must not be negative, got ", steps);
  const double parts = steps > 1 ? double(steps - 1) : 1;
  if (start.is_complex() || end.is_complex()) {
    const c128 a = complex_of(start), b = complex_of(end), by = (b - a) / parts;
    const Dtype out = dtype.value_or(complex_dtype(default_float()));
    return generated<c128>(steps, Dtype::C128, out, [&](c128* to, std::int64_t first, std::int64_t k) {
      for (std::int64_t i = first; i < first + k; ++i)
        *to++ = i < steps / 2 || steps == 1 ? a + by * double(i) : b - by * double(steps - 1 - i);
    });
  }
  const double a = start.to_double(), b = end.to_double(), by = (b - a) / parts;
  const Dtype out = dtype.value_or(default_float());
  return generated<double>(steps, Dtype::F64, out, [&](double* to, std::int64_t first, std::int64_t k) {
    even_block(to, first, k, a, b, by, steps);
  });
}

Storage logspace(const OpSchema& op, const Scalar& start, const Scalar& end, std::int64_t steps, double base,
                 std::optional<Dtype> dtype) {
  if (TP_UNLIKELY(steps < 0)) value_error(op.name, ": steps must not be negative, got ", steps);
  require_real(op, start, "start");
  require_real(op, end, "end");
  const double a = start.to_double(), b = end.to_double(), by = (b - a) / (steps > 1 ? double(steps - 1) : 1);
  const Dtype out = dtype.value_or(default_float());
  return generated<double>(steps, Dtype::F64, out, [&](double* to, std::int64_t first, std::int64_t k) {
    even_block(to, first, k, a, b, by, steps);
    for (std::int64_t i = 0; i < k; ++i) to[i] = std::pow(base, to[i]);
  });
}

Storage eye(const OpSchema& op, std::int64_t n, std::optional<std::int64_t> m, std::optional<Dtype> dtype) {
  const std::int64_t cols = m.value_or(n);
  if (TP_UNLIKELY(n < 0 || cols < 0)) value_error(op.name, ": sizes must not be negative, got ", n, " and ", cols);
  Storage out = zeros_storage(Shape{n, cols}, dtype.value_or(default_float()));
  Storage diagonal = out.with_geometry(Shape{std::min(n, cols)}, Strides{cols + 1}, 0);
  fill(diagonal, Scalar(1));
  return out;
}

Storage tril_indices(const OpSchema& op, std::int64_t row, std::int64_t col, std::int64_t offset,
                     std::optional<Dtype> dtype) {
  return triangle(op, row, col, offset, dtype, true);
}
Storage triu_indices(const OpSchema& op, std::int64_t row, std::int64_t col, std::int64_t offset,
                     std::optional<Dtype> dtype) {
  return triangle(op, row, col, offset, dtype, false);
}

}  // namespace tp::kernels
