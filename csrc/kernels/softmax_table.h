// The table of softmax loops over raw memory. Knows no Storage and no threads.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

/// `rows` rows of n contiguous elements; or, in the *_columns forms, `width` neighbouring columns whose n elements lie
/// `stride` apart.
template <class T>
struct SoftmaxLoops {
  void (*softmax)(std::int64_t rows, std::int64_t n, const T* x, T* out);
  void (*log_softmax)(std::int64_t rows, std::int64_t n, const T* x, T* out);
  void (*softmax_backward)(std::int64_t rows, std::int64_t n, const T* g, const T* out, T* gx);
  void (*log_softmax_backward)(std::int64_t rows, std::int64_t n, const T* g, const T* out, T* gx);
  void (*logsumexp)(std::int64_t rows, std::int64_t n, const T* x, T* lse);

  void (*softmax_columns)(std::int64_t width, std::int64_t n, std::int64_t stride, const T* x, T* out);
  void (*log_softmax_columns)(std::int64_t width, std::int64_t n, std::int64_t stride, const T* x, T* out);
  void (*softmax_backward_columns)(std::int64_t width, std::int64_t n, std::int64_t stride, const T* g, const T* out,
                                   T* gx);
  void (*log_softmax_backward_columns)(std::int64_t width, std::int64_t n, std::int64_t stride, const T* g,
                                       const T* out, T* gx);
  void (*logsumexp_columns)(std::int64_t width, std::int64_t n, std::int64_t stride, const T* x, T* lse);

  T (*sum)(std::int64_t n, const T* x);
  T (*dot)(std::int64_t n, const T* x, const T* y);
  /// gx[i] = scale * exp(x[i] - lse) - shift * w[i]; without w, minus shift.
  void (*scaled_softmax)(std::int64_t n, const T* x, T lse, T scale, T shift, const T* w, T* gx);
  /// The same for `inner` neighbouring columns of n elements each, with a value of lse, scale and shift per column.
  void (*scaled_softmax_columns)(std::int64_t inner, std::int64_t n, const T* x, const T* lse, const T* scale,
                                 const T* shift, const T* w, T* gx);
};
struct SoftmaxTable {
  SoftmaxLoops<float> f32;
  SoftmaxLoops<double> f64;
};
TP_DECLARE_TABLE(SoftmaxTable, softmax_table)

/// Those of this processor.
template <class T>
const SoftmaxLoops<T>& softmax_loops() {
  static const SoftmaxTable& table = TP_PICK_TABLE(softmax_table);
  if constexpr (__is_same(T, float))
    return table.f32;
  else
    return table.f64;
}

inline constexpr std::int64_t kSoftmaxWidth = 64;  // most columns a *_columns call takes

}  // namespace tp
