// Picking elements and slices by index tensors.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/index.h"
#include "kernels/index_support.h"
#include "kernels/streaming.h"

namespace tp::kernels {

const IndexTable* const index_kernels = &TP_PICK_TABLE(index_table);

namespace {

constexpr std::int64_t kPiece = 2048;  // indices checked and used while in cache

// Finds and names the index that made a fused check fail.
[[noreturn]] void name_bad_index(std::string_view op, const Storage& index, std::int64_t size, int dim, bool negative) {
  check_indices(op, index.data<std::int64_t>(), index.numel(), size, dim, negative);
  runtime_error(op, ": an index was out of range");
}

// Slices `index` of dimension `dim`; the indices have been checked.
Storage select_slices(const Storage& input, int dim, const Storage& index, const Shape& out_sizes) {
  Storage out = empty(out_sizes, input.dtype());
  if (out.numel() == 0) return out;
  const std::int64_t count = index.numel();
  const std::int64_t* at = index.data<std::int64_t>();
  if (!input.is_contiguous() && count * 4 < input.size(dim)) {
    // Few slices of an odd layout: copy just those.
    Shape sizes = input.sizes();
    sizes.erase(dim);
    Strides from = input.strides();
    from.erase(dim);
    Shape shape = input.sizes();
    shape[dim] = count;
    Strides to = contiguous_strides(shape);
    const std::int64_t step = to[dim];
    to.erase(dim);
    for (std::int64_t i = 0; i < count; ++i) {
      Storage place = out.with_geometry(sizes, to, i * step);
      copy_into(place, input.with_geometry(sizes, from, input.offset() + at[i] * input.stride(dim)));
    }
    return out;
  }
  const Storage x = contiguous(input);
  const Around a(x.sizes(), dim);
  const std::size_t item = item_size(x.dtype());
  modes::Unlocked unlocked(out.numel() >= kUnlockFrom);
  if (a.inner == 1) {
    const auto pick = index_kernels->pick[copy2d_index(item)];
    const std::int64_t line = a.n * std::int64_t(item), width = count * std::int64_t(item);
    parallel_tiles(a.outer, std::max<std::int64_t>(1, kParallelFrom / count), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t o = b; o < e; ++o) pick(out.raw() + o * width, x.raw() + o * line, at, count, 1, 0);
    });
    return out;
  }
  if (a.inner * std::int64_t(item) < 32) {
    with_raw(item, [&](auto type) {
      using T = decltype(type);
      const T* from = x.data<T>();
      T* to = out.data<T>();
      parallel_tiles(a.outer, std::max<std::int64_t>(1, kParallelFrom / (count * a.inner)),
                     [&](std::int64_t b, std::int64_t e) {
                       for (std::int64_t o = b; o < e; ++o) {
                         const T* line = from + o * a.n * a.inner;
                         T* dest = to + o * count * a.inner;
                         for (std::int64_t i = 0; i < count; ++i)
                           for (std::int64_t j = 0; j < a.inner; ++j) dest[i * a.inner + j] = line[at[i] * a.inner + j];
                       }
                     });
    });
    return out;
  }
  const std::int64_t bytes = a.inner * std::int64_t(item);
  const bool streamed = bytes >= 256 && streams(std::size_t(a.outer * count * bytes));
  const char* from = x.raw();
  char* to = out.raw();
  parallel_tiles(a.outer * count, std::max<std::int64_t>(1, kParallelFrom * 4 / bytes),
                 [&](std::int64_t b, std::int64_t e) {
                   const auto slice = [&](std::int64_t r) { return from + (r / count * a.n + at[r % count]) * bytes; };
                   for (std::int64_t r = b; r < e; ++r) {
                     const char* line = slice(r);
                     if (r + 2 < e) prefetch(slice(r + 2), std::min<std::int64_t>(bytes, kStreamAhead));
                     if (streamed)
                       stream(to + r * bytes, line, bytes);
                     else
                       std::memcpy(to + r * bytes, line, std::size_t(bytes));
                   }
                   if (streamed) stream_fence();
                 });
  return out;
}

}  // namespace

Storage gather(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index) {
  const int d = wrap_dim(op.name, dim, input.dim());
  if (input.dim() == 0 || index.dim() == 0) {
    if (TP_UNLIKELY(input.dim() > 1 || index.dim() > 1))
      value_error(op.name, ": input of shape ", input.sizes(), " and index of shape ", index.sizes(),
                  " differ in dimensions");
    const Storage flat = gather(op, reshaped(input, Shape{input.numel()}), 0, reshaped(index, Shape{index.numel()}));
    return reshaped(flat, index.sizes());
  }
  if (TP_UNLIKELY(index.dim() != input.dim()))
    value_error(op.name, ": index of shape ", index.sizes(), " must have as many dimensions as input of shape ",
                input.sizes());
  for (int k = 0; k < input.dim(); ++k)
    if (TP_UNLIKELY(k != d && index.size(k) > input.size(k)))
      value_error(op.name, ": index of shape ", index.sizes(), " is larger than input of shape ", input.sizes(),
                  " in dimension ", k);
  const Storage at = int64_index(op.name, index);
  Storage out = empty(index.sizes(), input.dtype());
  if (out.numel() == 0) return out;
  const int last = input.dim() - 1;
  const std::int64_t n = input.size(d), step = input.stride(d), cols = index.size(last), rows = at.numel() / cols;
  const std::int64_t along = d == last ? 0 : input.stride(last);
  Strides base = input.strides();
  base[d] = 0;
  std::atomic<bool> failed{false};
  {
    modes::Unlocked unlocked(out.numel() >= kUnlockFrom);
    const auto pick = index_kernels->pick[copy2d_index(item_size(input.dtype()))];
    const std::int64_t item = std::int64_t(item_size(input.dtype()));
    const std::int64_t* places = at.data<std::int64_t>();
    // Picks from a row come in no order the hardware foresees: where they meet most of its lines, all are asked for.
    const bool whole_rows = d == last && step == 1 && n * item <= 16384 && cols >= n * item / 64;
    const bool streamed = whole_rows && streams(std::size_t(out.numel() * item));
    const std::int64_t piece = streamed ? kStreamBlock / item : kPiece;
    parallel_tiles(rows, std::max<std::int64_t>(1, kParallelFrom / 2 / cols), [&](std::int64_t b, std::int64_t e) {
      alignas(64) char block[kStreamBlock];
      Rows<1> row(index.sizes(), {&base});
      row.seek(b);
      for (std::int64_t r = b; r < e; ++r, row.next())
        for (std::int64_t c = 0; c < cols; c += piece) {
          // The result is fresh memory, so a check just ahead of each piece is early enough.
          const std::int64_t n_here = std::min(piece, cols - c);
          const std::int64_t* p = places + r * cols + c;
          if (c == 0 && whole_rows) prefetch(input.raw() + row.at[0] * item, n * item);
          if (TP_UNLIKELY(!index_kernels->within(p, n_here, 0, n))) {
            failed = true;
            return;
          }
          char* to = out.raw() + (r * cols + c) * item;
          const char* from = input.raw() + (row.at[0] + c * along) * item;
          pick(streamed ? block : to, from, p, n_here, step, along);
          if (streamed) stream(to, block, n_here * item);
        }
      if (streamed) stream_fence();
    });
  }
  if (TP_UNLIKELY(failed)) name_bad_index(op.name, at, n, d, false);
  return out;
}

Storage index_select(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index) {
  if (TP_UNLIKELY(index.dim() > 1)) value_error(op.name, ": index must be 1-d, got shape ", index.sizes());
  const int d = wrap_dim(op.name, dim, input.dim());
  const Storage at = int64_index(op.name, index);
  const std::int64_t n = input.dim() ? input.size(d) : 1;
  check_indices(op.name, at.data<std::int64_t>(), at.numel(), n, d);
  if (input.dim() == 0) {
    const Storage picked = select_slices(reshaped(input, Shape{1}), 0, at, Shape{at.numel()});
    return at.numel() == 1 ? reshaped(picked, Shape{}) : picked;
  }
  Shape sizes = input.sizes();
  sizes[d] = at.numel();
  return select_slices(input, d, at, sizes);
}

Storage take(const OpSchema& op, const Storage& input, const Storage& index) {
  Storage at = int64_index(op.name, index);
  const std::int64_t n = input.numel();
  check_indices(op.name, at.data<std::int64_t>(), at.numel(), n, 0, true);
  Storage wrapped = empty(Shape{at.numel()}, Dtype::I64);
  for (std::int64_t i = 0; i < at.numel(); ++i) {
    const std::int64_t v = at.data<std::int64_t>()[i];
    wrapped.data<std::int64_t>()[i] = v < 0 ? v + n : v;
  }
  return reshaped(select_slices(reshaped(input, Shape{n}), 0, wrapped, Shape{at.numel()}), index.sizes());
}

Storage embedding(const OpSchema& op, const Storage& input, const Storage& weight,
                  std::optional<std::int64_t> padding_idx) {
  if (TP_UNLIKELY(weight.dim() != 2)) value_error(op.name, ": weight must be 2-d, got shape ", weight.sizes());
  const std::int64_t rows = weight.size(0);
  if (TP_UNLIKELY(padding_idx && (*padding_idx < -rows || *padding_idx >= rows)))
    value_error(op.name, ": padding_idx ", *padding_idx, " is out of range for ", rows, " rows");
  const Storage at = int64_index(op.name, input, "input");
  check_indices(op.name, at.data<std::int64_t>(), at.numel(), rows, 0);
  Shape sizes = input.sizes();
  sizes.push_back(weight.size(1));
  return select_slices(weight, 0, at, sizes);
}

}  // namespace tp::kernels
