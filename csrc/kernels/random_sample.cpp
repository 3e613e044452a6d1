// Random kernels that depend on the values of an input: bernoulli, normal, dropout, multinomial.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/axis.h"
#include "kernels/elementwise.h"
#include "kernels/random_fill.h"
#include "kernels/scratch.h"

namespace tp::kernels {
namespace {

using std::int64_t;

/// body(values, first, count) with `values` drawn into a small buffer, piece by piece of the fill.
template <class T, class Body>
void draw_through(Generator* generator, int64_t n, bool normal, const Body& body) {
  constexpr int64_t per_group = sizeof(T) == 8 ? 32 : 64, kPiece = 1024;
  draw(generator, n, per_group, [&](RandomStream r, int64_t at, int64_t count) {
    T u[kPiece];
    for (int64_t i = 0; i < count; i += kPiece) {
      const int64_t m = std::min(kPiece, count - i);
      const RandomStream here = r.at_group(i / per_group);
      const RandomTable& table = random_loops();
      if constexpr (sizeof(T) == 8)
        normal ? table.normal_f64(here, m, 0, 1, u) : table.uniform_f64(here, m, 0, 1, u);
      else
        normal ? table.normal_f32(here, m, 0, 1, u) : table.uniform_f32(here, m, 24, 0, 1, u);
      body(u, at + i, m);
    }
  });
}

}  // namespace

Storage bernoulli(const OpSchema& op, const Storage& input, Generator* generator) {
  const Dtype d = real_float_dtype(op, input.dtype());
  const Storage p = staged_float(input, d);
  Storage out = empty(input.sizes(), p.dtype());
  with_float(p.dtype(), [&]<class T>(T) {
    const T* from = p.data<T>();
    T* to = out.data<T>();
    for (int64_t i = 0; i < p.numel(); ++i)
      if (TP_UNLIKELY(!(from[i] >= 0 && from[i] <= 1)))
        value_error(op.name, ": probabilities must be between 0 and 1; one is ", from[i]);
    draw_through<T>(generator, p.numel(), false, [&](const T* u, int64_t at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[at + i] = u[i] < from[at + i] ? T(1) : T(0);
    });
  });
  return in_dtype(out, input.dtype());
}

Storage normal(const OpSchema& op, const Storage& mean, const Storage& std, Generator* generator) {
  Promotion promotion;
  promotion.add(mean.dtype(), mean.dim() == 0, mean.wrapped_number());
  promotion.add(std.dtype(), std.dim() == 0, std.wrapped_number());
  const Dtype d = real_float_dtype(op, promotion.result()), work = dtype_of(compute_type(d));
  const Storage* both[] = {&mean, &std};
  const Shape sizes = broadcast_shapes(op.name, both);
  Storage out = empty(sizes, work), deviation = empty(sizes, work);
  copy_broadcast(op.name, out, mean);
  copy_broadcast(op.name, deviation, std);
  with_float(work, [&]<class T>(T) {
    const T* s = deviation.data<T>();
    T* to = out.data<T>();
    for (int64_t i = 0; i < out.numel(); ++i)
      if (TP_UNLIKELY(!(s[i] >= 0))) value_error(op.name, ": std must not be negative; one is ", s[i]);
    draw_through<T>(generator, out.numel(), true, [&](const T* z, int64_t at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[at + i] += s[at + i] * z[i];
    });
  });
  return in_dtype(out, d);
}

std::array<Storage, 2> native_dropout(const OpSchema& op, const Storage& input, double p, Generator* generator) {
  if (TP_UNLIKELY(!(p >= 0 && p <= 1))) value_error(op.name, ": p must be between 0 and 1; it is ", p);
  const Dtype d = is_complex(input.dtype()) ? input.dtype() : real_float_dtype(op, input.dtype());
  const Storage x = contiguous(cast(input, dtype_of(compute_type(d))));
  Storage out = empty(input.sizes(), x.dtype()), mask = empty(input.sizes(), Dtype::Bool);
  const std::uint64_t threshold = std::uint64_t(p * 0x1p32 + 0.5);
  const int64_t parts = is_complex(d) ? 2 : 1;
  constexpr int64_t kPiece = 4096;
  with_float(real_dtype(x.dtype()), [&]<class T>(T) {
    const T scale = p < 1 ? T(1 / (1 - p)) : T(0);
    const T* from = x.data<T>();
    T* to = out.data<T>();
    std::uint8_t* m = mask.data<std::uint8_t>();
    draw(generator, x.numel(), 64, [&](RandomStream r, int64_t at, int64_t count) {
      if (parts == 2) {
        random_loops().mask(r, count, threshold, m + at);
        for (int64_t i = at; i < at + count; ++i)
          for (int64_t k = 2 * i; k < 2 * i + 2; ++k) to[k] = m[i] ? from[k] * scale : T(0);
        return;
      }
      // In pieces, so that the mask is read back from cache.
      for (int64_t i = 0; i < count; i += kPiece) {
        const int64_t n = std::min(kPiece, count - i), p0 = at + i;
        if constexpr (sizeof(T) == 8)
          random_loops().dropout_f64(r.at_group(i / 64), n, threshold, scale, from + p0, to + p0, m + p0);
        else
          random_loops().dropout_f32(r.at_group(i / 64), n, threshold, scale, from + p0, to + p0, m + p0);
      }
    });
  });
  return {in_dtype(out, d), mask};
}

Storage multinomial(const OpSchema& op, const Storage& input, int64_t num_samples, bool replacement,
                    Generator* generator) {
  const int dims = input.dim();
  if (TP_UNLIKELY(dims != 1 && dims != 2)) value_error(op.name, ": input must be [m] or [n, m]; it is ", input.sizes());
  const int64_t rows = dims == 2 ? input.size(0) : 1, m = input.size(dims - 1);
  if (TP_UNLIKELY(num_samples < 1)) value_error(op.name, ": num_samples must be positive; it is ", num_samples);
  if (TP_UNLIKELY(!replacement && num_samples > m))
    value_error(op.name, ": cannot draw ", num_samples, " of ", m, " without replacement");
  real_float_dtype(op, input.dtype());
  const Storage weights = contiguous(cast(input, Dtype::F64));
  Storage out = empty(dims == 2 ? Shape{rows, num_samples} : Shape{num_samples}, Dtype::I64);
  const int64_t draws = replacement ? num_samples : m;
  Storage noise = empty({rows * draws}, Dtype::F64);
  double* u = noise.data<double>();
  draw(generator, rows * draws, 32, [&](RandomStream r, int64_t at, int64_t count) {
    if (replacement)
      random_loops().uniform_f64(r, count, 0, 1, u + at);
    else
      random_loops().exponential_f64(r, count, 1, u + at);
  });
  std::vector<double> sums(static_cast<std::size_t>(m));
  std::vector<int64_t> order(static_cast<std::size_t>(m));
  for (int64_t row = 0; row < rows; ++row) {
    const double* w = weights.data<double>() + row * m;
    int64_t* to = out.data<int64_t>() + row * num_samples;
    double total = 0;
    int64_t positive = 0;
    for (int64_t i = 0; i < m; ++i) {
      if (TP_UNLIKELY(!(w[i] >= 0) || std::isinf(w[i])))
        value_error(op.name, ": weights must be finite and not negative; one is ", w[i]);
      total += w[i];
      positive += w[i] > 0;
      sums[std::size_t(i)] = total;
    }
    if (TP_UNLIKELY(!(total > 0))) value_error(op.name, ": the weights of a row must not all be zero");
    if (TP_UNLIKELY(!replacement && positive < num_samples))
      value_error(op.name, ": cannot draw ", num_samples, " without replacement from ", positive, " positive weights");
    if (replacement) {
      for (int64_t k = 0; k < num_samples; ++k) {
        const auto at = std::upper_bound(sums.begin(), sums.end(), u[row * num_samples + k] * total);
        // Rounding may pass the end; the last index with a weight is meant then.
        int64_t i = std::min<int64_t>(at - sums.begin(), m - 1);
        while (w[i] == 0) --i;
        to[k] = i;
      }
    } else {
      // The first arrivals of exponential clocks with these rates.
      double* clock = u + row * m;
      for (int64_t i = 0; i < m; ++i) clock[i] = w[i] > 0 ? clock[i] / w[i] : INFINITY;
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + num_samples, order.end(),
                        [&](int64_t a, int64_t b) { return clock[a] < clock[b]; });
      std::copy_n(order.begin(), num_samples, to);
    }
  }
  return out;
}

}  // namespace tp::kernels
