// Batches of column-major matrices for LAPACK. Internal to the linear algebra kernels.
#pragma once
#include <algorithm>

#include "core/errors.h"
#include "core/modes.h"
#include "core/op_schema.h"
#include "core/storage.h"
#include "kernels/apart.h"
#include "kernels/gemm.h"
#include "kernels/lapack.h"
#include "kernels/scratch.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"

namespace tp::kernels {

template <class... Parts>
std::string parts_text(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

/// The dtype a factorisation works in, and the one its results have.
struct LinalgDtype {
  Dtype result, work;
};
inline LinalgDtype linalg_dtype(Dtype d) {
  if (!is_differentiable(d)) d = default_float();
  return {d, dtype_of(compute_type(d))};
}

inline Shape batch_of(const OpSchema& op, const char* name, const Storage& s) {
  if (TP_UNLIKELY(s.dim() < 2)) value_error(op.name, ": ", name, " needs at least two dimensions; it is ", s.sizes());
  Shape b = s.sizes();
  b.resize(s.dim() - 2);
  return b;
}
inline std::int64_t rows_of(const Storage& s) { return s.size(s.dim() - 2); }
inline std::int64_t cols_of(const Storage& s) { return s.size(s.dim() - 1); }
inline void need_square(const OpSchema& op, const char* name, const Storage& s) {
  batch_of(op, name, s);
  if (TP_UNLIKELY(rows_of(s) != cols_of(s)))
    value_error(op.name, ": ", name, " must be a square matrix or a batch of them; it is ", s.sizes());
}
inline Shape with_matrix(const Shape& batch, std::int64_t rows, std::int64_t cols) {
  Shape s = batch;
  s.push_back(rows);
  s.push_back(cols);
  return s;
}
inline Shape with_size(const Shape& batch, std::int64_t n) {
  Shape s = batch;
  s.push_back(n);
  return s;
}

/// Uninitialised matrices that lie column by column.
inline Storage column_major(const Shape& batch, std::int64_t rows, std::int64_t cols, Dtype dtype) {
  const Storage s = empty(with_matrix(batch, cols, rows), dtype);
  Strides strides = s.strides();
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return s.with_geometry(with_matrix(batch, rows, cols), strides, s.offset());
}
/// A copy of `a`, broadcast over `batch`, that lies column by column.
inline Storage columns_of(const OpSchema& op, const Storage& a, const Shape& batch, Dtype dtype) {
  Storage c = column_major(batch, rows_of(a), cols_of(a), dtype);
  copy_broadcast(op.name, c, a);
  return c;
}
inline Storage in_result(const Storage& s, Dtype d) { return s.dtype() == d ? s : cast(s, d); }

inline Shape joined_batch(const OpSchema& op, const Storage& a, const Storage& b) {
  const Shape x = batch_of(op, "A", a), y = batch_of(op, "B", b);
  Shape out(std::max(x.size(), y.size()), 1);
  for (int i = 0; i < out.size(); ++i) {
    const int ix = i - (out.size() - x.size()), iy = i - (out.size() - y.size());
    const std::int64_t p = ix < 0 ? 1 : x[ix], q = iy < 0 ? 1 : y[iy];
    if (TP_UNLIKELY(p != q && p != 1 && q != 1))
      value_error(op.name, ": batch sizes do not broadcast: A is ", a.sizes(), ", B is ", b.sizes());
    out[i] = p == 1 ? q : p;
  }
  return out;
}

template <class F>
void with_linalg_type(Dtype d, F&& f) {
  switch (d) {
    case Dtype::F32: return f(float());
    case Dtype::F64: return f(double());
    case Dtype::C64: return f(c64());
    default: return f(c128());
  }
}

/// NaNs pass through, as in the other kernels, instead of being looked for beforehand.
inline void prepare_lapack() {
  prepare_library();
  [[maybe_unused]] static const bool once = (scipy_LAPACKE_set_nancheck(0), true);
}

/// f(i) for each matrix, over threads; flops: of one matrix. f runs LAPACK on raw memory.
template <class F>
void over_matrices(std::int64_t count, double flops, const F& f) {
  prepare_lapack();
  modes::Unlocked unlocked(flops * double(count) > 2e5);
  Watch watch;
  parallel_tiles(count, grain_for(300 + flops / 2), [&](std::int64_t b, std::int64_t e) {
    const Watched watched(&watch);
    for (std::int64_t i = b; i < e; ++i) f(i);
  });
}

/// An array of n elements that a library call reads, writes or both.
template <class T>
Array array(T* at, std::int64_t n, decltype(Array::Both) use = Array::Both) {
  return {const_cast<std::remove_const_t<T>*>(at), std::size_t(n) * sizeof(T), use};
}

inline int leading(std::int64_t n) { return int(std::max<std::int64_t>(n, 1)); }
inline double cube(std::int64_t m, std::int64_t n) { return double(m) * double(n) * double(std::min(m, n)); }

/// Where the matrix lies in the batch, for messages: " (matrix 3 of the batch)".
inline std::string place(std::int64_t i, std::int64_t count) {
  return count == 1 ? std::string() : " (matrix " + std::to_string(i) + " of the batch)";
}

}  // namespace tp::kernels
