// The loops of places.h.
#include "kernels/places.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/errors.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

Storage as_indices(const std::vector<std::int64_t>& values, const Shape& sizes) {
  Storage out = empty(sizes, Dtype::I64);
  std::copy(values.begin(), values.end(), out.data<std::int64_t>());
  return out;
}

template <class T>
void sort_rows(const Storage& rows, std::int64_t* order) {
  const std::int64_t n = rows.size(0), m = rows.size(1);
  const T* x = rows.data<T>();
  std::stable_sort(order, order + n, [x, m](std::int64_t a, std::int64_t b) {
    for (std::int64_t k = 0; k < m; ++k) {
      const T p = x[a * m + k], q = x[b * m + k];
      if (p < q || (q != q && p == p)) return true;
      if (q < p || (p != p && q == q)) return false;
    }
    return false;
  });
}

}  // namespace

Storage combination_places(const OpSchema&, std::int64_t n, std::int64_t r, bool with_replacement) {
  if (r == 0) return empty({0}, Dtype::I64);
  std::vector<std::int64_t> out, now(std::size_t(r), 0);
  if (!with_replacement) std::iota(now.begin(), now.end(), 0);
  const auto most = [&](std::int64_t k) { return with_replacement ? n - 1 : n - r + k; };
  std::int64_t count = 0;
  for (bool more = n > 0 && most(0) >= 0; more; ++count) {
    out.insert(out.end(), now.begin(), now.end());
    std::int64_t k = r - 1;
    while (k >= 0 && now[std::size_t(k)] == most(k)) --k;
    more = k >= 0;
    if (!more) continue;
    const std::int64_t next = now[std::size_t(k)] + 1;
    for (std::int64_t i = k; i < r; ++i) now[std::size_t(i)] = with_replacement ? next : next + i - k;
  }
  return as_indices(out, {count, r});
}

Storage repeat_places(const OpSchema&, const Storage& repeats, std::optional<std::int64_t> output_size) {
  const Storage counts = contiguous(cast(repeats, Dtype::I64));
  const std::int64_t* c = counts.data<std::int64_t>();
  const std::int64_t n = counts.size(counts.dim() - 1), lines = n ? counts.numel() / n : 0;
  std::int64_t total = 0;
  for (std::int64_t r = 0; r < lines; ++r) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (c[r * n + i] < 0) value_error("repeats has the negative element ", c[r * n + i]);
      sum += c[r * n + i];
    }
    if (r == 0) total = sum;
    if (sum != total) value_error("the repeats add up to ", total, " in one sample and to ", sum, " in another");
  }
  if (output_size && *output_size != total)
    value_error("output_size=", *output_size, ", but the repeats add up to ", total);
  Shape sizes = counts.sizes();
  sizes[sizes.size() - 1] = total;
  Storage out = empty(sizes, Dtype::I64);
  std::int64_t* to = out.data<std::int64_t>();
  for (std::int64_t r = 0; r < lines; ++r)
    for (std::int64_t i = 0; i < n; ++i) to = std::fill_n(to, c[r * n + i], i);
  return out;
}

Storage grid_corners(const OpSchema&, std::int64_t n, std::int64_t width) {
  std::int64_t count = 1;
  for (std::int64_t k = 0; k < n; ++k) count *= width;
  Storage out = empty({count, n}, Dtype::I64);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t k = n - 1, rest = i; k >= 0; --k, rest /= width)
      out.data<std::int64_t>()[i * n + k] = rest % width - (width == 4 ? 1 : 0);
  return out;
}

Storage sizes_tensor(const OpSchema&, const Dims& sizes) {
  Storage out = empty({sizes.size()}, Dtype::I64);
  std::copy(sizes.begin(), sizes.end(), out.data<std::int64_t>());
  return out;
}

Storage slice_order(const OpSchema&, const Storage& rows) {
  if (is_complex(rows.dtype())) type_error("complex numbers have no order");
  Storage order = empty({rows.size(0)}, Dtype::I64);
  std::int64_t* at = order.data<std::int64_t>();
  std::iota(at, at + order.numel(), 0);
  if (rows.dtype() == Dtype::U64)
    sort_rows<std::uint64_t>(contiguous(rows), at);
  else if (is_integral(rows.dtype()))
    sort_rows<std::int64_t>(contiguous(cast(rows, Dtype::I64)), at);
  else
    sort_rows<double>(contiguous(cast(rows, Dtype::F64)), at);
  return order;
}

}  // namespace tp::kernels
