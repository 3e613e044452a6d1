// Binary search and distinct values, one line of a tensor at a time.
#include "kernels/search.h"

#include <algorithm>

#include "kernels/index_support.h"
#include "kernels/order.h"
#include "kernels/sort.h"

namespace tp::kernels {
namespace {

// Several values take their steps together, none of which is a branch: each step of one waits for memory, and would be
// guessed wrong half of the time. NaNs, which come last, are less than nothing here and have their own search.
template <bool kRight, class T>
void search_values(const T* line, std::int64_t n, const T* values, std::int64_t count, std::int64_t* out) {
  constexpr int kTogether = 8;
  const auto passes = [](T element, T v) { return std::int64_t(kRight ? element <= v : element < v); };
  for (std::int64_t i = 0; n > 0 && i < count; i += kTogether) {
    T v[kTogether];
    std::int64_t at[kTogether];
    for (int k = 0; k < kTogether; ++k) v[k] = values[std::min(i + k, count - 1)], at[k] = 0;
    std::int64_t length = n;
    while (length > 1) {
      const std::int64_t half = length / 2;
#pragma GCC unroll 8
      for (int k = 0; k < kTogether; ++k) at[k] += half & -passes(line[at[k] + half - 1], v[k]);
      length -= half;
    }
    for (int k = 0; k < kTogether && i + k < count; ++k) out[i + k] = at[k] + passes(line[at[k]], v[k]);
  }
  for (std::int64_t i = 0; i < count; ++i)
    if (n == 0 || is_nan(values[i]))
      out[i] = kRight ? n : std::lower_bound(line, line + n, values[i], before<T>) - line;
}
template <class T>
void search_line(const T* line, std::int64_t n, const T* values, std::int64_t count, std::int64_t* out, bool right) {
  if (right)
    search_values<true>(line, n, values, count, out);
  else
    search_values<false>(line, n, values, count, out);
}

// Runs of equal neighbours of `x` (in the given order, when there is one).
template <class T>
std::array<Storage, 3> runs(const Storage& x, const std::int64_t* order, Dtype dtype, const Shape& shape) {
  const std::int64_t n = x.numel();
  const T* v = x.data<T>();
  Storage inverse = empty(shape, Dtype::I64);
  std::int64_t* place = inverse.data<std::int64_t>();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    count += i == 0 || !(v[i] == v[i - 1]);
    place[order ? order[i] : i] = count - 1;
  }
  Storage values = empty(Shape{count}, x.dtype()), counts = zeros_storage(Shape{count}, Dtype::I64);
  std::int64_t k = -1;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i == 0 || !(v[i] == v[i - 1])) values.data<T>()[++k] = v[i];
    ++counts.data<std::int64_t>()[k];
  }
  return {cast(values, dtype), std::move(inverse), std::move(counts)};
}

}  // namespace

Storage searchsorted(const OpSchema& op, const Storage& sorted_sequence, const Storage& input, bool right) {
  if (TP_UNLIKELY(sorted_sequence.dim() == 0)) value_error(op.name, ": sorted_sequence must have at least 1 dimension");
  const bool shared = sorted_sequence.dim() == 1;
  bool fits = shared || sorted_sequence.dim() == input.dim();
  for (int d = 0; fits && !shared && d < input.dim() - 1; ++d) fits = input.size(d) == sorted_sequence.size(d);
  if (TP_UNLIKELY(!fits))
    value_error(op.name, ": sorted_sequence of shape ", sorted_sequence.sizes(),
                " must be 1-d or match input of shape ", input.sizes(), " in all dimensions but the last");
  Promotion p;
  p.add(sorted_sequence.dtype(), false, false);
  p.add(input.dtype(), false, false);
  const Dtype work = order_dtype(op, p.result());
  const Storage line = contiguous(cast(sorted_sequence, work)), x = contiguous(cast(input, work));
  Storage out = empty(input.sizes(), Dtype::I64);
  const std::int64_t n = sorted_sequence.size(sorted_sequence.dim() - 1);
  const std::int64_t count = shared ? x.numel() : x.dim() ? x.size(x.dim() - 1) : 1;
  const std::int64_t lines = count ? x.numel() / count : 0;
  modes::Unlocked unlocked(x.numel() > 4096);
  with_order(work, [&](auto type) {
    using T = decltype(type);
    if (shared) {
      parallel_for(0, x.numel(), 1024, [&](std::int64_t b, std::int64_t e) {
        search_line(line.data<T>(), n, x.data<T>() + b, e - b, out.data<std::int64_t>() + b, right);
      });
      return;
    }
    parallel_tiles(lines, grain_for(30.0 * double(count)), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i)
        search_line(line.data<T>() + i * n, n, x.data<T>() + i * count, count, out.data<std::int64_t>() + i * count,
                    right);
    });
  });
  return out;
}

Storage bucketize(const OpSchema& op, const Storage& input, const Storage& boundaries, bool right) {
  if (TP_UNLIKELY(boundaries.dim() != 1))
    value_error(op.name, ": boundaries must be 1-d, got shape ", boundaries.sizes());
  return searchsorted(op, boundaries, input, right);
}

std::array<Storage, 3> unique(const OpSchema& op, const Storage& input) {
  const Dtype work = order_dtype(op, input.dtype());
  const Storage flat = contiguous(reshaped(cast(input, work), Shape{input.numel()}));
  const auto [values, order] = sort(op, flat, 0, false, true);
  std::array<Storage, 3> out;
  with_order(work, [&](auto type) {
    out = runs<decltype(type)>(values, order.template data<std::int64_t>(), input.dtype(), input.sizes());
  });
  return out;
}

std::array<Storage, 3> unique_consecutive(const OpSchema& op, const Storage& input) {
  const Dtype work = order_dtype(op, input.dtype());
  const Storage flat = contiguous(reshaped(cast(input, work), Shape{input.numel()}));
  std::array<Storage, 3> out;
  with_order(work, [&](auto type) { out = runs<decltype(type)>(flat, nullptr, input.dtype(), input.sizes()); });
  return out;
}

}  // namespace tp::kernels
