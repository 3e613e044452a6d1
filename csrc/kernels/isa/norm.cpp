// Loops of layer, batch, group and RMS normalisation, compiled per instruction set.
#include "kernels/norm_table.h"

#include "kernels/isa/fold.h"
#include "kernels/isa/lanes.h"

namespace tp {
namespace TP_ISA {
namespace {

template <class T>
void moments(int64_t n, const T* x, T* mean, T* m2) {
  // Two passes over a row in cache: the one-pass form loses all digits when the mean is large.
  const T mu = rows::sum<T>(n, [=](int64_t i) { return x[i]; }) / T(n);
  *mean = mu;
  *m2 = rows::sum<T>(n, [=](int64_t i) { return (x[i] - mu) * (x[i] - mu); });
}

template <class T>
T sum_squares(int64_t n, const T* x) {
  return rows::sum<T>(n, [=](int64_t i) { return x[i] * x[i]; });
}

template <class T>
void normalize(int64_t n, const T* __restrict x, T mean, T rstd, const T* __restrict w, const T* __restrict b,
               T* __restrict out) {
  if (w && b)
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * rstd * w[i] + b[i];
  else if (w)
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * rstd * w[i];
  else if (b)
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * rstd + b[i];
  else
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * rstd;
}

template <class T>
void affine(int64_t n, const T* __restrict x, T mean, T scale, T shift, T* __restrict out) {
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale + shift;
}

// Two sums in one pass.
template <class T, class F>
TP_MATH void two_sums(int64_t n, T* first, T* second, F f) {
  T a[rows::kLanes] = {}, b[rows::kLanes] = {};
  int64_t i = 0;
  for (; i + rows::kLanes <= n; i += rows::kLanes)
    for (int j = 0; j < rows::kLanes; ++j) f(i + j, a[j], b[j]);
  for (; i + rows::kTail <= n; i += rows::kTail)
    for (int j = 0; j < rows::kTail; ++j) f(i + j, a[j], b[j]);
  for (int j = 0; i + j < n; ++j) f(i + j, a[j], b[j]);
  *first = rows::fold_sum(a);
  *second = rows::fold_sum(b);
}

template <class T>
void row_backward(int64_t n, const T* __restrict g, const T* __restrict x, T mean, T rstd, const T* __restrict w,
                  bool centered, T* __restrict gx, T* __restrict gw, T* __restrict gb) {
  if (gx) {
    T s = 0, sx = 0;
    if (w)
      two_sums<T>(n, &s, &sx, [=](int64_t i, T& a, T& b) {
        const T v = g[i] * w[i];
        a += v;
        b += v * (x[i] - mean);
      });
    else
      two_sums<T>(n, &s, &sx, [=](int64_t i, T& a, T& b) {
        a += g[i];
        b += g[i] * (x[i] - mean);
      });
    const T along_x = -sx * rstd * rstd * rstd / T(n), level = centered ? -s * rstd / T(n) : T(0);
    if (w)
      for (int64_t i = 0; i < n; ++i) gx[i] = rstd * g[i] * w[i] + along_x * (x[i] - mean) + level;
    else
      for (int64_t i = 0; i < n; ++i) gx[i] = rstd * g[i] + along_x * (x[i] - mean) + level;
  }
  if (gw)
    for (int64_t i = 0; i < n; ++i) gw[i] += g[i] * (x[i] - mean) * rstd;
  if (gb)
    for (int64_t i = 0; i < n; ++i) gb[i] += g[i];
}

template <class T>
void slope_sums(int64_t n, const T* __restrict g, const T* __restrict x, T mean, T* sum_g, T* sum_gx) {
  two_sums<T>(n, sum_g, sum_gx, [=](int64_t i, T& a, T& b) {
    a += g[i];
    b += g[i] * (x[i] - mean);
  });
}

template <class T>
void combine(int64_t n, const T* __restrict g, const T* __restrict x, T mean, T a, T b, T c, T* __restrict gx) {
  for (int64_t i = 0; i < n; ++i) gx[i] = a * g[i] + b * (x[i] - mean) + c;
}

// ---- columns ---------------------------------------------------------------------------------------------------------

template <class T>
void columns_affine(int64_t width, int64_t count, int64_t stride, const T* __restrict x, const T* __restrict mean,
                    const T* __restrict scale, const T* __restrict shift, T* __restrict out) {
  for (int64_t r = 0; r < count; ++r)
    for (int64_t j = 0; j < width; ++j) out[r * stride + j] = (x[r * stride + j] - mean[j]) * scale[j] + shift[j];
}

// A few rows are summed in T, those sums in double.
template <class T>
void columns_slope_sums(int64_t width, int64_t count, int64_t stride, const T* g, const T* x, const T* mean, T* sum_g,
                        T* sum_gx) {
  double total[kMaxCols], total_x[kMaxCols];
  T some[kMaxCols], some_x[kMaxCols];
  for (int64_t j = 0; j < width; j += kMaxCols) {
    const int64_t n = smaller(kMaxCols, width - j);
    for (int64_t k = 0; k < n; ++k) total[k] = total_x[k] = 0;
    for (int64_t r = 0; r < count; r += kGroup) {
      const int64_t rows = smaller(kGroup, count - r);
      for (int64_t k = 0; k < n; ++k) some[k] = some_x[k] = 0;
      for (int64_t i = r; i < r + rows; ++i) {
        const T* __restrict gr = g + i * stride + j;
        const T* __restrict xr = x + i * stride + j;
        for (int64_t k = 0; k < n; ++k) {
          some[k] += gr[k];
          some_x[k] += gr[k] * (xr[k] - mean[j + k]);
        }
      }
      for (int64_t k = 0; k < n; ++k) {
        total[k] += double(some[k]);
        total_x[k] += double(some_x[k]);
      }
    }
    for (int64_t k = 0; k < n; ++k) {
      sum_g[j + k] = T(total[k]);
      sum_gx[j + k] = T(total_x[k]);
    }
  }
}

template <class T>
void columns_combine(int64_t width, int64_t count, int64_t stride, const T* __restrict g, const T* __restrict x,
                     const T* __restrict mean, const T* __restrict a, const T* __restrict b, const T* __restrict c,
                     T* __restrict gx) {
  for (int64_t r = 0; r < count; ++r)
    for (int64_t j = 0; j < width; ++j)
      gx[r * stride + j] = a[j] * g[r * stride + j] + b[j] * (x[r * stride + j] - mean[j]) + c[j];
}

#define TP_NORM_LOOPS(T)                                                                                    \
  {moments<T>, sum_squares<T>,    normalize<T>,          affine<T>,         row_backward<T>, slope_sums<T>, \
   combine<T>, columns_affine<T>, columns_slope_sums<T>, columns_combine<T>}

}  // namespace

extern const NormTable norm_table;
const NormTable norm_table = {TP_NORM_LOOPS(float), TP_NORM_LOOPS(double)};

}  // namespace TP_ISA
}  // namespace tp
