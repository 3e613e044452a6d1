// Masks, counts and one-hot rows.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/index.h"
#include "kernels/index_support.h"
#include "kernels/scratch.h"

namespace tp::kernels {
namespace {

// The mask as contiguous bytes, broadcast to `sizes`.
Storage mask_bytes(const Storage& mask, const Shape& sizes) {
  return contiguous(expanded(contiguous(cast(mask, Dtype::Bool)), sizes));
}

std::int64_t count_true(const std::uint8_t* m, std::int64_t n) {
  std::int64_t total = 0, i = 0;
  constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7fu, kEven = 0x00ff00ff00ff00ffu;
  // Eight bytes a step, one count in each, which 255 ones cannot overflow.
  while (i + 8 <= n) {
    const std::int64_t end = std::min(n - 7, i + 8 * 255);
    std::uint64_t counts = 0;
    for (; i < end; i += 8) {
      std::uint64_t word;
      std::memcpy(&word, m + i, 8);
      counts += ((((word & kLow) + kLow) | word) & ~kLow) >> 7;
    }
    total += std::int64_t((((counts & kEven) + (counts >> 8 & kEven)) * 0x0001000100010001u) >> 48);
  }
  for (; i < n; ++i) total += m[i] != 0;
  return total;
}

void require_mask(const OpSchema& op, const Storage& mask) {
  if (TP_UNLIKELY(mask.dtype() != Dtype::Bool))
    type_error(op.name, ": mask must be bool, got ", dtype_name(mask.dtype()));
}

}  // namespace

Storage nonzero(const OpSchema&, const Storage& input) {
  const Storage m = mask_bytes(input, input.sizes());
  const std::uint8_t* v = m.data<std::uint8_t>();
  const std::int64_t n = m.numel(), count = count_true(v, n);
  const int dims = input.dim();
  Storage out = empty(Shape{count, dims}, Dtype::I64);
  std::int64_t* to = out.data<std::int64_t>();
  if (count == 0 || dims == 0) return out;
  const std::int64_t cols = input.size(dims - 1);
  constexpr std::int64_t kChunk = 1024;
  std::vector<std::int64_t> at(std::size_t(dims), 0);
  for (std::int64_t i = 0; i < n; i += cols) {
    for (std::int64_t first = 0; first < cols; first += kChunk) {
      // Every place is written where the next true one goes: no branch to mispredict.
      std::uint16_t places[kChunk];
      const std::uint8_t* row = v + i + first;
      const std::int64_t width = std::min(kChunk, cols - first);
      std::int64_t found = 0;
      for (std::int64_t c = 0; c < width; ++c) {
        places[found] = std::uint16_t(c);
        found += row[c] != 0;
      }
      for (std::int64_t k = 0; k < found; ++k) {
        for (int d = 0; d < dims - 1; ++d) *to++ = at[std::size_t(d)];
        *to++ = first + places[k];
      }
    }
    for (int d = dims - 2; d >= 0; --d) {
      if (++at[std::size_t(d)] < input.size(d)) break;
      at[std::size_t(d)] = 0;
    }
  }
  return out;
}

Storage masked_select(const OpSchema& op, const Storage& input, const Storage& mask) {
  require_mask(op, mask);
  const Storage* both[] = {&input, &mask};
  const Shape sizes = broadcast_shapes(op.name, both);
  const Storage m = mask_bytes(mask, sizes), x = contiguous(expanded(input, sizes));
  const std::uint8_t* v = m.data<std::uint8_t>();
  const std::int64_t n = m.numel();
  Storage out = empty(Shape{count_true(v, n)}, input.dtype());
  with_raw(item_size(input.dtype()), [&](auto type) {
    using T = decltype(type);
    const T* from = x.data<T>();
    T* to = out.data<T>();
    T* const end = to + out.numel();
    // Every element is written where the next chosen one goes: no branch to mispredict.
    for (std::int64_t i = 0; i < n && to < end; ++i) {
      *to = from[i];
      to += v[i] != 0;
    }
  });
  return out;
}

Storage masked_scatter(const OpSchema& op, const Storage& input, const Storage& mask, const Storage& source) {
  require_mask(op, mask);
  if (TP_UNLIKELY(source.dtype() != input.dtype()))
    type_error(op.name, ": source is ", dtype_name(source.dtype()), ", but input is ", dtype_name(input.dtype()));
  const Storage* both[] = {&input, &mask};
  const Shape sizes = broadcast_shapes(op.name, both);
  const Storage m = mask_bytes(mask, sizes), from = contiguous(source);
  Storage out = fresh_copy(expanded(input, sizes));
  const std::uint8_t* v = m.data<std::uint8_t>();
  const std::int64_t n = m.numel(), count = count_true(v, n);
  if (TP_UNLIKELY(count > from.numel()))
    value_error(op.name, ": the mask has ", count, " true elements, but source has only ", from.numel());
  with_raw(item_size(input.dtype()), [&](auto type) {
    using T = decltype(type);
    const T* s = from.data<T>();
    T* to = out.data<T>();
    for (std::int64_t i = 0; i < n; ++i)
      if (v[i]) to[i] = *s++;
  });
  return out;
}

Storage one_hot(const OpSchema& op, const Storage& input, std::int64_t num_classes) {
  const Storage at = int64_index(op.name, input, "input");
  const std::int64_t* v = at.data<std::int64_t>();
  const std::int64_t n = at.numel();
  std::int64_t classes = num_classes;
  if (classes < 0) {
    if (TP_UNLIKELY(n == 0)) value_error(op.name, ": num_classes must be given for an empty input");
    classes = *std::max_element(v, v + n) + 1;
  }
  for (std::int64_t i = 0; i < n; ++i)
    if (TP_UNLIKELY(v[i] < 0 || v[i] >= classes))
      index_error(op.name, ": class ", v[i], " is out of range for ", classes, " classes");
  Shape sizes = input.sizes();
  sizes.push_back(classes);
  Storage out = zeros_storage(sizes, Dtype::I64);
  std::int64_t* to = out.data<std::int64_t>();
  for (std::int64_t i = 0; i < n; ++i) to[i * classes + v[i]] = 1;
  return out;
}

Storage bincount(const OpSchema& op, const Storage& input, const Storage& weights, std::int64_t minlength) {
  if (TP_UNLIKELY(input.dim() != 1)) value_error(op.name, ": input must be 1-d, got shape ", input.sizes());
  if (TP_UNLIKELY(minlength < 0)) value_error(op.name, ": minlength must not be negative, got ", minlength);
  const Storage at = int64_index(op.name, input, "input");
  const std::int64_t* v = at.data<std::int64_t>();
  const std::int64_t n = at.numel();
  // As unsigned numbers the negative ones are the largest.
  std::uint64_t most = 0, other = 0;
  for (std::int64_t i = 0; i + 2 <= n; i += 2) {
    most = std::max(most, std::uint64_t(v[i]));
    other = std::max(other, std::uint64_t(v[i + 1]));
  }
  if (n) most = std::max(most, std::uint64_t(v[n - 1]));
  const auto largest = std::int64_t(std::max(most, other));
  if (TP_UNLIKELY(largest < 0)) {
    const std::int64_t* first = std::find_if(v, v + n, [](std::int64_t k) { return k < 0; });
    value_error(op.name, ": input must not hold negative values, got ", *first);
  }
  const std::int64_t bins = n ? std::max(minlength, largest + 1) : minlength;
  if (!weights.defined()) {
    Storage out = zeros_storage(Shape{bins}, Dtype::I64);
    std::int64_t* counts = out.data<std::int64_t>();
    // Every other element has counts of its own, if they are few: one of a kind waits less often for the one before it.
    constexpr std::int64_t kFewBins = 2048;
    const bool apart = bins <= kFewBins && n >= 2 * bins;
    const Scratch<std::int64_t> second(apart ? bins : 0);
    std::int64_t* others = apart ? second.get() : counts;
    if (apart) std::fill_n(others, bins, std::int64_t(0));
    std::int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
      ++counts[v[i]];
      ++others[v[i + 1]];
    }
    if (i < n) ++counts[v[i]];
    if (apart)
      for (std::int64_t b = 0; b < bins; ++b) counts[b] += others[b];
    return out;
  }
  if (TP_UNLIKELY(!(weights.sizes() == input.sizes())))
    value_error(op.name, ": weights of shape ", weights.sizes(), " must have the shape of input, ", input.sizes());
  const Storage w = contiguous(cast(weights, Dtype::F64));
  Storage out = zeros_storage(Shape{bins}, Dtype::F64);
  for (std::int64_t i = 0; i < n; ++i) out.data<double>()[v[i]] += w.data<double>()[i];
  return cast(out, weights.dtype() == Dtype::F32 ? Dtype::F32 : Dtype::F64);
}

}  // namespace tp::kernels
