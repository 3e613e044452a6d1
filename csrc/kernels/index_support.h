// What the indexing kernels share: checked integer indices, walks over rows, dispatch on element types. Knows no op.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/complex.h"
#include "core/errors.h"
#include "core/modes.h"
#include "core/storage.h"
#include "kernels/index_table.h"
#include "kernels/scratch.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"
#include "kernels/tiles.h"

namespace tp::kernels {

/// `s` as contiguous int64; TypeError unless it holds integers.
inline Storage int64_index(std::string_view op, const Storage& s, std::string_view name = "index") {
  if (TP_UNLIKELY(category(s.dtype()) != Category::Integer))
    type_error(op, ": ", name, " must hold integers, got ", dtype_name(s.dtype()));
  return contiguous(cast(s, Dtype::I64));
}

[[noreturn]] inline void index_out_of_range(std::string_view op, std::int64_t value, int dim, std::int64_t size) {
  index_error(op, ": index ", value, " is out of range for dimension ", dim, " with size ", size);
}

/// Raises for the first index outside [-low, size), where low is 0 or size.
inline void check_indices(std::string_view op, const std::int64_t* v, std::int64_t n, std::int64_t size, int dim,
                          bool negative = false) {
  const std::int64_t low = negative ? -size : 0;
  if (TP_LIKELY(n == 0 || index_kernels->within(v, n, low, size))) return;
  for (std::int64_t i = 0; i < n; ++i)
    if (v[i] < low || v[i] >= size) index_out_of_range(op, v[i], dim, size);
}

/// Walks the rows (all dimensions but the last) of `sizes`, keeping the offset of each of K operands.
template <int K>
class Rows {
 public:
  Rows(const Shape& sizes, std::initializer_list<const Strides*> strides)
      : n_(sizes.size() > 0 ? sizes.size() - 1 : 0) {
    for (int d = 0; d < n_; ++d) sizes_[d] = sizes[d];
    int k = 0;
    for (const Strides* s : strides) {
      for (int d = 0; d < n_; ++d) strides_[k][d] = (*s)[d];
      ++k;
    }
  }
  void seek(std::int64_t row) {
    for (int k = 0; k < K; ++k) at[k] = 0;
    for (int d = n_ - 1; d >= 0; --d) {
      index_[d] = row % sizes_[d];
      row /= sizes_[d];
      for (int k = 0; k < K; ++k) at[k] += index_[d] * strides_[k][d];
    }
  }
  void next() {
    for (int d = n_ - 1; d >= 0; --d) {
      for (int k = 0; k < K; ++k) at[k] += strides_[k][d];
      if (++index_[d] < sizes_[d]) return;
      index_[d] = 0;
      for (int k = 0; k < K; ++k) at[k] -= sizes_[d] * strides_[k][d];
    }
  }
  std::int64_t at[K];

 private:
  int n_;
  std::int64_t sizes_[64], index_[64], strides_[K][64];
};

/// How many neighbouring columns of `rows` rows stay in the second cache; at least a line of each.
inline std::int64_t cached_columns(std::int64_t rows, std::size_t item) {
  const std::int64_t line = 64 / std::int64_t(item);
  return std::max(line, (std::int64_t(256) << 10) / (std::max<std::int64_t>(rows, 1) * 64) * line);
}

/// A contiguous tensor seen as [outer, n, inner] around one dimension.
struct Around {
  std::int64_t outer = 1, n = 1, inner = 1;
  Around(const Shape& sizes, int dim) {
    for (int d = 0; d < sizes.size(); ++d) (d < dim ? outer : d == dim ? n : inner) *= sizes[d];
  }
};

struct Bytes16 {
  std::uint64_t a, b;
};

/// f(T()) with an unsigned integer as wide as an element: for moves that look at no value.
template <class F>
void with_raw(std::size_t item, const F& f) {
  switch (item) {
    case 1: return f(std::uint8_t());
    case 2: return f(std::uint16_t());
    case 4: return f(std::uint32_t());
    case 8: return f(std::uint64_t());
    default: return f(Bytes16{});
  }
}

struct BoolSum {  // + is "or", so that bool tensors add as in PyTorch
  std::uint8_t v;
  friend BoolSum operator+(BoolSum a, BoolSum b) { return {std::uint8_t((a.v | b.v) != 0)}; }
  friend BoolSum operator*(BoolSum a, BoolSum b) { return {std::uint8_t((a.v & b.v) != 0)}; }
};

/// f(T()) with a type whose + and * are the dtype's (integers wrap). Halves are not arithmetic types: stage them.
template <class F>
void with_arithmetic(Dtype d, const F& f) {
  switch (d) {
    case Dtype::Bool: return f(BoolSum{});
    case Dtype::U8:
    case Dtype::I8: return f(std::uint8_t());
    case Dtype::I16:
    case Dtype::U16: return f(std::uint16_t());
    case Dtype::I32:
    case Dtype::U32: return f(std::uint32_t());
    case Dtype::I64:
    case Dtype::U64: return f(std::uint64_t());
    case Dtype::F64: return f(double());
    case Dtype::C64: return f(c64{});
    case Dtype::C128: return f(c128{});
    default: return f(float());
  }
}
inline bool is_half(Dtype d) { return d == Dtype::F16 || d == Dtype::BF16; }

/// Row-major copy in fresh memory.
inline Storage fresh_copy(const Storage& s) {
  Storage out = empty(s.sizes(), s.dtype());
  copy_into(out, s);
  return out;
}

inline void require_writable(std::string_view op, const Storage& self) {
  if (TP_UNLIKELY(self.block()->read_only))
    value_error(op, "_: the tensor is read-only memory (borrowed from a read-only array); clone() it first");
  if (TP_UNLIKELY(has_internal_overlap(self)))
    runtime_error(op, "_: several elements of the tensor share one memory location (shape ", self.sizes(), ", strides ",
                  self.strides(), "); clone() it first");
}

}  // namespace tp::kernels
