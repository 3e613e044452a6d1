// Softmax and its relatives over rows and over columns, compiled per instruction set.
#include "kernels/softmax_table.h"

#include "kernels/isa/lanes.h"

namespace tp {
namespace TP_ISA {
namespace {

using rows::kLanes;
using rows::kTail;

constexpr int64_t kWidth = kSoftmaxWidth;

/// A maximum of -inf or inf stays out of the subtraction only where the row is all -inf: there softmax is undefined (NaN),
/// but the log of its sum is -inf.
template <class T>
TP_MATH T finite_or_zero(T top) {
  return top == -m::detail::kInf<T> ? T(0) : top;
}

// out[i] = exp(x[i] - top) when Store; returns the sum. The tail is padded: exp of -inf adds nothing. The next row is asked
// for meanwhile: this one comes from the cache.
template <class T, bool Store, bool Near>
TP_MATH T exp_sum_of(int64_t n, const T* __restrict x, T top, T* __restrict out) {
  T acc[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; j += 64 / int(sizeof(T))) __builtin_prefetch(x + n + i + j);
    for (int j = 0; j < kLanes; ++j) {
      const T e = rows::exp_below<Near>(x[i + j] - top);
      if (Store) out[i + j] = e;
      acc[j] += e;
    }
  }
  for (; i < n; i += kTail) {
    const int64_t left = n - i < kTail ? n - i : kTail;
    T pad[kTail];
    for (int j = 0; j < kTail; ++j) pad[j] = -m::detail::kInf<T>;
    for (int64_t j = 0; j < left; ++j) pad[j] = x[i + j] - top;
    for (int j = 0; j < kTail; ++j) {
      const T e = m::exp(pad[j]);
      pad[j] = e;
      acc[j] += e;
    }
    if (Store)
      for (int64_t j = 0; j < left; ++j) out[i + j] = pad[j];
  }
  return rows::fold_sum(acc);
}

template <class T, bool Store>
TP_MATH T exp_sum(int64_t n, const T* x, rows::Range<T> range, T* out) {
  if (rows::is_near(range.top, range.low)) return exp_sum_of<T, Store, __is_same(T, float)>(n, x, range.top, out);
  return exp_sum_of<T, Store, false>(n, x, range.top, out);
}

template <class T>
void softmax(int64_t count, int64_t n, const T* x, T* out) {
  for (int64_t r = 0; r < count; ++r, x += n, out += n) {
    const T f = T(1) / exp_sum<T, true>(n, x, rows::range(x, n), out);
    for (int64_t i = 0; i < n; ++i) out[i] *= f;
  }
}

template <class T>
TP_MATH T log_sum(const T* x, int64_t n) {
  rows::Range<T> range = rows::range(x, n);
  range.top = finite_or_zero(range.top);
  return range.top + m::log(exp_sum<T, false>(n, x, range, nullptr));
}

template <class T>
void log_softmax(int64_t count, int64_t n, const T* x, T* out) {
  for (int64_t r = 0; r < count; ++r, x += n, out += n) {
    // Two subtractions: the sum of the two terms would lose the digits of the smaller one.
    const rows::Range<T> range = rows::range(x, n);
    const T top = range.top, log_of_sum = m::log(exp_sum<T, false>(n, x, range, nullptr));
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] - top - log_of_sum;
  }
}

template <class T>
void logsumexp(int64_t count, int64_t n, const T* x, T* lse) {
  for (int64_t r = 0; r < count; ++r, x += n) lse[r] = log_sum(x, n);
}

template <class T>
void softmax_backward(int64_t count, int64_t n, const T* g, const T* out, T* gx) {
  for (int64_t r = 0; r < count; ++r, g += n, out += n, gx += n) {
    const T *gr = g, *yr = out;
    const T s = rows::sum<T>(n, [=](int64_t i) { return gr[i] * yr[i]; });
    T* __restrict to = gx;
    for (int64_t i = 0; i < n; ++i) to[i] = (gr[i] - s) * yr[i];
  }
}

template <class T>
void log_softmax_backward(int64_t count, int64_t n, const T* g, const T* out, T* gx) {
  for (int64_t r = 0; r < count; ++r, g += n, out += n, gx += n) {
    const T* gr = g;
    const T s = rows::sum<T>(n, [=](int64_t i) { return gr[i]; });
    const T* __restrict yr = out;
    T* __restrict to = gx;
    for (int64_t i = 0; i < n; ++i) to[i] = gr[i] - m::exp(yr[i]) * s;
  }
}

// ---- columns: `width` of them side by side, each kept in a lane ------------------------------------------------------

template <class T>
TP_MATH void column_max(int64_t width, int64_t n, int64_t stride, const T* x, T* top) {
  for (int64_t j = 0; j < width; ++j) top[j] = -m::detail::kInf<T>;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) top[j] = x[i * stride + j] > top[j] ? x[i * stride + j] : top[j];
}

// total[j] = the sum of f(i, j) for i < n, in double: columns are added from end to end.
template <class T, class F>
TP_MATH void column_sums(int64_t width, int64_t n, T* total, F f) {
  double wide[kWidth];
  for (int64_t j = 0; j < width; ++j) wide[j] = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) wide[j] += double(f(i, j));
  for (int64_t j = 0; j < width; ++j) total[j] = T(wide[j]);
}

template <class T>
void softmax_columns(int64_t width, int64_t n, int64_t stride, const T* __restrict x, T* __restrict out) {
  T top[kWidth], total[kWidth];
  column_max(width, n, stride, x, top);
  column_sums(width, n, total, [=, &top](int64_t i, int64_t j) {
    const T e = m::exp(x[i * stride + j] - top[j]);
    out[i * stride + j] = e;
    return e;
  });
  for (int64_t j = 0; j < width; ++j) total[j] = T(1) / total[j];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) out[i * stride + j] *= total[j];
}

template <class T>
TP_MATH void column_log_sum(int64_t width, int64_t n, int64_t stride, const T* __restrict x, const T* top, T* log_of) {
  T total[kWidth];
  column_sums(width, n, total, [=](int64_t i, int64_t j) { return m::exp(x[i * stride + j] - top[j]); });
  for (int64_t j = 0; j < width; ++j) log_of[j] = m::log(total[j]);
}

template <class T>
void log_softmax_columns(int64_t width, int64_t n, int64_t stride, const T* __restrict x, T* __restrict out) {
  T top[kWidth], log_of[kWidth];
  column_max(width, n, stride, x, top);
  column_log_sum(width, n, stride, x, top, log_of);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) out[i * stride + j] = x[i * stride + j] - top[j] - log_of[j];
}

template <class T>
void logsumexp_columns(int64_t width, int64_t n, int64_t stride, const T* x, T* lse) {
  T top[kWidth], log_of[kWidth];
  column_max(width, n, stride, x, top);
  for (int64_t j = 0; j < width; ++j) top[j] = finite_or_zero(top[j]);
  column_log_sum(width, n, stride, x, top, log_of);
  for (int64_t j = 0; j < width; ++j) lse[j] = top[j] + log_of[j];
}

template <class T>
void softmax_backward_columns(int64_t width, int64_t n, int64_t stride, const T* __restrict g, const T* __restrict out,
                              T* __restrict gx) {
  T total[kWidth];
  column_sums(width, n, total, [=](int64_t i, int64_t j) { return g[i * stride + j] * out[i * stride + j]; });
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) gx[i * stride + j] = (g[i * stride + j] - total[j]) * out[i * stride + j];
}

template <class T>
void log_softmax_backward_columns(int64_t width, int64_t n, int64_t stride, const T* __restrict g,
                                  const T* __restrict out, T* __restrict gx) {
  T total[kWidth];
  column_sums(width, n, total, [=](int64_t i, int64_t j) { return g[i * stride + j]; });
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) gx[i * stride + j] = g[i * stride + j] - m::exp(out[i * stride + j]) * total[j];
}

// ---- pieces of cross_entropy -----------------------------------------------------------------------------------------

template <class T>
T plain_sum(int64_t n, const T* x) {
  return rows::sum<T>(n, [=](int64_t i) { return x[i]; });
}
template <class T>
T plain_dot(int64_t n, const T* x, const T* y) {
  return rows::sum<T>(n, [=](int64_t i) { return x[i] * y[i]; });
}
template <class T>
void scaled_softmax(int64_t n, const T* __restrict x, T lse, T scale, T shift, const T* __restrict w,
                    T* __restrict gx) {
  if (w)
    for (int64_t i = 0; i < n; ++i) gx[i] = scale * m::exp(x[i] - lse) - shift * w[i];
  else
    for (int64_t i = 0; i < n; ++i) gx[i] = scale * m::exp(x[i] - lse) - shift;
}

// A column with scale 0 (an ignored target) gives zeros whatever its scores are.
template <class T>
void scaled_softmax_columns(int64_t inner, int64_t n, const T* __restrict x, const T* __restrict lse,
                            const T* __restrict scale, const T* __restrict shift, const T* w, T* __restrict gx) {
  for (int64_t c = 0; c < n; ++c) {
    const T f = w ? w[c] : T(1);
    for (int64_t j = 0; j < inner; ++j) {
      const T v = scale[j] * m::exp(x[c * inner + j] - lse[j]) - shift[j] * f;
      gx[c * inner + j] = scale[j] == 0 ? T(0) : v;
    }
  }
}

#define TP_SOFTMAX_LOOPS(T)         \
  {softmax<T>,                      \
   log_softmax<T>,                  \
   softmax_backward<T>,             \
   log_softmax_backward<T>,         \
   logsumexp<T>,                    \
   softmax_columns<T>,              \
   log_softmax_columns<T>,          \
   softmax_backward_columns<T>,     \
   log_softmax_backward_columns<T>, \
   logsumexp_columns<T>,            \
   plain_sum<T>,                    \
   plain_dot<T>,                    \
   scaled_softmax<T>,               \
   scaled_softmax_columns<T>}

}  // namespace

extern const SoftmaxTable softmax_table;
const SoftmaxTable softmax_table = {TP_SOFTMAX_LOOPS(float), TP_SOFTMAX_LOOPS(double)};

}  // namespace TP_ISA
}  // namespace tp
