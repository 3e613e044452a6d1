// What the indexing kernels share: index tensors as checked int64, dispatch by item size or by type of arithmetic.
#pragma once
#include "core/errors.h"
#include "core/op_schema.h"
#include "kernels/staging.h"

namespace tp::kernels {

struct Wide {
  std::uint64_t a, b;
};

/// Calls f with an unsigned word of the item's size: moving values needs no more.
template <class F>
void by_item_size(Dtype d, const F& f) {
  switch (item_size(d)) {
    case 1: return f(std::uint8_t());
    case 2: return f(std::uint16_t());
    case 4: return f(std::uint32_t());
    case 8: return f(std::uint64_t());
    default: return f(Wide());
  }
}

/// Calls f with a zero of the compute type, for sums.
template <class F>
void by_compute_type(Dtype d, const F& f) {
  switch (compute_type(d)) {
    case Compute::B8: return f(std::uint8_t());
    case Compute::I32: return f(std::int32_t());
    case Compute::I64: return f(std::int64_t());
    case Compute::U64: return f(std::uint64_t());
    case Compute::F32: return f(float());
    case Compute::F64: return f(double());
    case Compute::C64: return f(c64{0, 0});
    case Compute::C128: return f(c128{0, 0});
  }
}
template <class T>
void add_to(T& to, const T& v) {
  to = to + v;
}
inline void add_to(std::uint8_t& to, const std::uint8_t& v) { to = std::uint8_t(to | v); }  // bool: a sum is an or

inline int checked_dim(const OpSchema& op, std::int64_t dim, int ndim) {
  const int n = ndim ? ndim : 1;
  if (dim < -n || dim >= n)
    index_error(op.name, ": dim ", dim, " out of range for a ", ndim, "-d tensor (expected ", -n, "..", n - 1, ")");
  return int(dim < 0 ? dim + n : dim);
}

/// An index tensor as contiguous int64.
inline Storage index64(const OpSchema& op, const char* name, const Storage& index) {
  if (!is_integral(index.dtype()) || index.dtype() == Dtype::Bool)
    index_error(op.name, ": ", name, " must be an integer tensor, got ", dtype_name(index.dtype()));
  return contiguous(cast(index, Dtype::I64));
}
/// Every value in [0, size); `dim` for the message.
inline void check_range(const OpSchema& op, const Storage& index, std::int64_t size, int dim) {
  const std::int64_t* p = index.data<std::int64_t>();
  std::uint64_t top = 0;
  for (std::int64_t i = 0; i < index.numel(); ++i) top = std::uint64_t(p[i]) > top ? std::uint64_t(p[i]) : top;
  if (TP_LIKELY(index.numel() == 0 || top < std::uint64_t(size))) return;
  for (std::int64_t i = 0; i < index.numel(); ++i)
    if (p[i] < 0 || p[i] >= size)
      index_error(op.name, ": index ", p[i], " is out of range for dimension ", dim, " with size ", size);
}
/// A fresh contiguous copy in the memory layout of its compute type, for sums.
inline Storage accumulator(const Storage& s) {
  const Dtype d = dtype_of(compute_type(s.dtype()));
  Storage out = empty(s.sizes(), d);
  copy_into(out, s);
  return out;
}

}  // namespace tp::kernels
