// For kernels of your own, in an op pack or beside define_op: the parts of the runtime that a loop over memory needs.
//
// A kernel is a function in namespace tp::kernels. It takes the op's schema and then the arguments of the signature, and
// returns the result in fresh memory. Its declaration stands in a header under the line `// kernel: name`:
//
//     // kernel: smooth
//     tp::Storage smooth(const tp::OpSchema& op, const tp::Storage& input, std::int64_t width);
//
//   Tensor x      const Storage& x          int n      std::int64_t n       Scalar s   const Scalar& s
//   Tensor? x     const Storage& x, absent where !x.defined()               bool b     bool b
//   Tensor[] xs   std::span<const Storage>  int[] d    const Dims& d        float f    double f       str s   std::string_view s
//   T? (other)    std::optional<T>          (Tensor a, Tensor b) as results: std::array<Storage, 2>
//
// What a Storage tells: sizes(), strides() (in elements), dim(), numel(), dtype(), is_contiguous(), data<T>(). Memory that
// a kernel is given may be shared with other tensors: read it, never write it. Gradients are not a kernel's business: the
// entry gives them as formulas (vjp) over other ops, or other kernels of yours.
//
// Knows no op.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "core/errors.h"  // value_error(...), type_error(...), index_error(...): the parts are put together as text
#include "core/op_schema.h"  // op.name, with which every message begins
#include "core/parallel_for.h"  // parallel_for(begin, end, grain, [&](std::int64_t b, std::int64_t e) { ... })
#include "core/scalar.h"
#include "core/storage.h"  // Storage, empty(sizes, dtype), zeros_storage(sizes, dtype)
#include "kernels/copy.h"  // contiguous(op, x): x itself where it is row-major; cast(op, x, dtype)

namespace tp::author {

/// Calls f(T()) with the C++ type of a floating dtype: `by_float(op, x.dtype(), [&](auto t) { using T = decltype(t); ... })`.
/// Halves are no C++ type to compute with: cast them to F32 first, and the result back. Others are refused by name.
template <class F>
auto by_float(const OpSchema& op, Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::F32: return f(float());
    case Dtype::F64: return f(double());
    default: type_error(op.name, ": takes float32 or float64, got ", dtype_name(dtype));
  }
}

/// The same over every real dtype that is one of C++'s own.
template <class F>
auto by_real(const OpSchema& op, Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::U8: return f(std::uint8_t());
    case Dtype::I8: return f(std::int8_t());
    case Dtype::I16: return f(std::int16_t());
    case Dtype::I32: return f(std::int32_t());
    case Dtype::I64: return f(std::int64_t());
    case Dtype::F32: return f(float());
    case Dtype::F64: return f(double());
    default: type_error(op.name, ": takes real numbers, got ", dtype_name(dtype));
  }
}

/// A dimension counted from the end when negative. Raises IndexError where there is none.
inline int checked_dim(const OpSchema& op, std::int64_t dim, const Storage& x) {
  const std::int64_t n = x.dim();
  if (dim < -n || dim >= n) index_error(op.name, ": dim ", dim, " of a tensor of ", n, " dimensions");
  return int(dim < 0 ? dim + n : dim);
}

/// Rows along the last dimension of contiguous x: f(first element of the row, length), on several threads where that pays.
template <class T, class F>
void for_rows(const Storage& x, F&& f) {
  const std::int64_t length = x.dim() ? x.size(x.dim() - 1) : 1;
  if (x.numel() == 0) return;
  const std::int64_t grain = length > 16384 ? 1 : 16384 / length;
  parallel_for(0, x.numel() / length, grain, [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) f(x.data<T>() + i * length, i * length, length);
  });
}

}  // namespace tp::author
