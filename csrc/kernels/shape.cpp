// Joining, repeating, reversing, shifting, triangles; padding is pad.cpp's.
#include "kernels/shape.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/errors.h"
#include "kernels/scratch.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"
#include "kernels/tiles.h"
#include "kernels/views.h"

namespace tp::kernels {
namespace {

bool is_legacy_empty(const Storage& s) { return s.dim() == 1 && s.size(0) == 0; }

Dtype common_dtype(std::span<const Storage> tensors) {
  Dtype same = tensors[0].dtype();
  bool mixed = false;
  for (const Storage& s : tensors) mixed |= s.dtype() != same;
  if (!mixed) return same;
  Promotion p;
  for (const Storage& s : tensors) p.add(s.dtype(), s.dim() == 0, s.wrapped_number());
  return p.result();
}

// Storages by address: of few without an allocation.
class Pointers {
 public:
  explicit Pointers(std::size_t most) {
    if (most > kFew) many_.resize(most);
    at_ = most > kFew ? many_.data() : few_;
  }
  void add(const Storage& s) { at_[n_++] = &s; }
  operator std::span<const Storage* const>() const { return {at_, n_}; }

 private:
  static constexpr std::size_t kFew = 16;
  const Storage* few_[kFew];
  std::vector<const Storage*> many_;
  const Storage** at_;
  std::size_t n_ = 0;
};

// Small results of contiguous inputs, whose elements follow each other for each place in the dimensions before `dim`.
bool join_contiguous(const Storage& out, std::span<const Storage* const> inputs, int dim) {
  if (out.numel() >= kParallelFrom) return false;
  for (const Storage* s : inputs)
    if (!s->is_contiguous() || s->dtype() != out.dtype()) return false;
  std::int64_t outer = 1;
  for (int d = 0; d < dim; ++d) outer *= out.size(d);
  char* to = out.raw();
  for (std::int64_t o = 0; o < outer; ++o)
    for (const Storage* s : inputs) {
      const std::size_t bytes = outer == 1 ? s->nbytes() : s->nbytes() / std::size_t(outer);
      std::memcpy(to, s->raw() + std::size_t(o) * bytes, bytes);
      to += bytes;
    }
  return true;
}

// out[..., at : at + k, ...] = each input in turn; sizes have been checked.
void join(const Storage& out, std::span<const Storage* const> inputs, int dim) {
  if (join_contiguous(out, inputs, dim)) return;
  std::int64_t at = 0;
  for (const Storage* s : inputs) {
    Storage place = out.with_geometry(s->sizes(), out.strides(), out.offset() + at * out.stride(dim));
    copy_into(place, *s);
    at += s->size(dim);
  }
}

Storage triangle(const OpSchema& op, const Storage& input, std::int64_t diagonal, bool lower) {
  if (TP_UNLIKELY(input.dim() < 2))
    value_error(op.name, ": needs a tensor of at least 2 dimensions, got ", input.dim(), "-d");
  const Storage x = contiguous(input);
  Storage out = empty(x.sizes(), x.dtype());
  const std::int64_t rows = x.size(x.dim() - 2), cols = x.size(x.dim() - 1);
  if (x.numel() == 0) return out;
  const std::int64_t item = std::int64_t(item_size(x.dtype()));
  const char* from = x.raw();
  char* to = out.raw();
  parallel_for(
      0, x.numel() / cols, std::max<std::int64_t>(1, kParallelFrom / cols), [&](std::int64_t b, std::int64_t e) {
        for (std::int64_t i = b; i < e; ++i) {
          const std::int64_t edge = std::clamp<std::int64_t>(i % rows + diagonal + (lower ? 1 : 0), 0, cols);
          const std::int64_t first = lower ? 0 : edge, last = lower ? edge : cols;
          char* row = to + i * cols * item;
          std::memset(row, 0, std::size_t(first * item));
          std::memcpy(row + first * item, from + (i * cols + first) * item, std::size_t((last - first) * item));
          std::memset(row + last * item, 0, std::size_t((cols - last) * item));
        }
      });
  return out;
}

}  // namespace

Storage cat(const OpSchema& op, std::span<const Storage> tensors, std::int64_t dim) {
  if (TP_UNLIKELY(tensors.empty())) value_error(op.name, ": needs at least one tensor, got an empty list");
  const Storage* first = nullptr;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (TP_UNLIKELY(tensors[i].dim() == 0))
      value_error(op.name, ": tensor ", i, " is 0-d and has no dimension to join; use stack");
    if (!first && !is_legacy_empty(tensors[i])) first = &tensors[i];
  }
  if (!first) first = &tensors[0];
  const int d = wrap_dim(op.name, dim, first->dim());
  Shape sizes = first->sizes();
  std::int64_t total = 0;
  Pointers list(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Storage& s = tensors[i];
    if (is_legacy_empty(s) && first->dim() != 1) continue;
    bool fits = s.dim() == first->dim();
    for (int k = 0; fits && k < s.dim(); ++k) fits = k == d || s.size(k) == sizes[k];
    if (TP_UNLIKELY(!fits))
      value_error(op.name, ": tensor ", i, " has shape ", s.sizes(), ", which differs from ", first->sizes(),
                  " in more than dimension ", d);
    total += s.size(d);
    list.add(s);
  }
  sizes[d] = total;
  Storage out = empty(sizes, common_dtype(tensors));
  if (out.numel()) join(out, list, d);
  return out;
}

Storage stack(const OpSchema& op, std::span<const Storage> tensors, std::int64_t dim) {
  if (TP_UNLIKELY(tensors.empty())) value_error(op.name, ": needs at least one tensor, got an empty list");
  const Shape& sizes = tensors[0].sizes();
  const int n = sizes.size();
  if (TP_UNLIKELY(dim < -(n + 1) || dim > n))
    index_error(op.name, ": dim ", dim, " out of range for ", n, "-d tensors (expected ", -(n + 1), "..", n, ")");
  const int d = int(dim < 0 ? dim + n + 1 : dim);
  Pointers list(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (TP_UNLIKELY(!(tensors[i].sizes() == sizes)))
      value_error(op.name, ": all tensors must have one shape, but tensor 0 has ", sizes, " and tensor ", i, " has ",
                  tensors[i].sizes());
    list.add(tensors[i]);
  }
  Shape out_sizes = sizes;
  out_sizes.insert(d, std::int64_t(tensors.size()));
  Storage out = empty(out_sizes, common_dtype(tensors));
  if (!out.numel() || join_contiguous(out, list, d)) return out;
  std::vector<Storage> lifted;
  lifted.reserve(tensors.size());
  Pointers places(tensors.size());
  for (const Storage& s : tensors) places.add(lifted.emplace_back(unsqueeze(op, s, d)));
  join(out, places, d);
  return out;
}

Storage repeat(const OpSchema& op, const Storage& input, const Dims& repeats) {
  const int n = repeats.size(), shift = n - input.dim();
  if (TP_UNLIKELY(shift < 0))
    value_error(op.name, ": repeats ", repeats, " has fewer entries than the ", input.dim(),
                "-d tensor has dimensions");
  // Result and input seen as [r0, s0, r1, s1, ...], the repeats being zero strides of the input.
  Shape sizes, paired;
  Strides strides;
  for (int d = 0; d < n; ++d) {
    if (TP_UNLIKELY(repeats[d] < 0)) value_error(op.name, ": repeats must not be negative, got ", repeats);
    const std::int64_t own = d < shift ? 1 : input.size(d - shift);
    sizes.push_back(repeats[d] * own);
    paired.push_back(repeats[d]);
    paired.push_back(own);
    strides.push_back(0);
    strides.push_back(d < shift ? 0 : input.stride(d - shift));
  }
  Storage out = empty(sizes, input.dtype());
  if (out.numel() == 0) return out;
  Storage target = out.with_geometry(paired, contiguous_strides(paired), 0);
  copy_into(target, input.with_geometry(paired, strides, input.offset()));
  return out;
}

Storage tile(const OpSchema& op, const Storage& input, const Dims& dims) {
  Dims repeats = dims;
  while (repeats.size() < input.dim()) repeats.insert(0, 1);
  return repeat(op, input, repeats);
}

Storage flip(const OpSchema& op, const Storage& input, const Dims& dims) {
  Storage out = empty(input.sizes(), input.dtype());
  if (dims.empty() || input.dim() == 0) {
    for (std::int64_t d : dims) wrap_dim(op.name, d, 0);
    copy_into(out, input);
    return out;
  }
  const Dims which = wrap_dims(op.name, dims, input.dim());
  if (input.numel() == 0) return out;
  Strides strides = input.strides();
  std::int64_t offset = input.offset();
  for (std::int64_t d : which) {
    offset += (input.size(int(d)) - 1) * strides[int(d)];
    strides[int(d)] = -strides[int(d)];
  }
  copy_into(out, input.with_geometry(input.sizes(), strides, offset));
  return out;
}

Storage roll(const OpSchema& op, const Storage& input, const Dims& shifts, const Dims& dims) {
  if (dims.empty()) {
    if (TP_UNLIKELY(shifts.size() != 1))
      value_error(op.name, ": shifts ", shifts, " needs dims of the same length, or a single shift without dims");
    const Storage flat = reshaped(input, Shape{input.numel()});
    return reshaped(roll(op, flat, shifts, Dims{0}), input.sizes());
  }
  if (TP_UNLIKELY(shifts.size() != dims.size()))
    value_error(op.name, ": shifts ", shifts, " and dims ", dims, " differ in length");
  Storage out = empty(input.sizes(), input.dtype());
  Dims shift(input.dim(), 0);
  for (int i = 0; i < dims.size(); ++i) {
    const int d = wrap_dim(op.name, dims[i], input.dim());
    if (input.dim()) shift[d] += shifts[i];
  }
  if (input.numel() == 0) return out;
  // Every rolled dimension falls into two pieces; each combination of pieces is one block to copy.
  Dims rolled;
  for (int d = 0; d < input.dim(); ++d) {
    shift[d] = (shift[d] % input.size(d) + input.size(d)) % input.size(d);
    if (shift[d]) rolled.push_back(d);
  }
  for (int combination = 0; combination < (1 << rolled.size()); ++combination) {
    Shape sizes = input.sizes();
    std::int64_t from = input.offset(), to = 0;
    for (int i = 0; i < rolled.size(); ++i) {
      const int d = int(rolled[i]);
      const std::int64_t head = input.size(d) - shift[d];
      const bool tail = combination >> i & 1;
      sizes[d] = tail ? shift[d] : head;
      from += tail ? head * input.stride(d) : 0;
      to += tail ? 0 : shift[d] * out.stride(d);
    }
    Storage place = out.with_geometry(sizes, out.strides(), to);
    copy_into(place, input.with_geometry(sizes, input.strides(), from));
  }
  return out;
}

Storage tril(const OpSchema& op, const Storage& input, std::int64_t diagonal) {
  return triangle(op, input, diagonal, true);
}
Storage triu(const OpSchema& op, const Storage& input, std::int64_t diagonal) {
  return triangle(op, input, diagonal, false);
}

Storage diag_embed(const OpSchema& op, const Storage& input, std::int64_t offset, std::int64_t dim1,
                   std::int64_t dim2) {
  if (TP_UNLIKELY(input.dim() == 0)) value_error(op.name, ": needs a tensor of at least 1 dimension");
  const int n = input.dim() + 1;
  const int a = wrap_dim(op.name, dim1, n, "dim1"), b = wrap_dim(op.name, dim2, n, "dim2");
  if (TP_UNLIKELY(a == b)) value_error(op.name, ": dim1 and dim2 are the same dimension (", dim1, ", ", dim2, ")");
  const std::int64_t side = input.size(input.dim() - 1) + (offset < 0 ? -offset : offset);
  Shape sizes;
  for (int d = 0, next = 0; d < n; ++d) sizes.push_back(d == a || d == b ? side : input.size(next++));
  Storage out = zeros_storage(sizes, input.dtype());
  Storage place = diagonal(op, out, offset, a, b);
  copy_into(place, input);
  return out;
}

}  // namespace tp::kernels
