// Softmax over blocks of attention scores, forward (online) and backward.
#include "kernels/attention_table.h"

#include "kernels/isa/lanes.h"

namespace tp {
namespace TP_ISA {
namespace {

using rows::kLanes;
using rows::kTail;

template <class T>
TP_MATH int64_t counted(const ScoreBlock<T>& b, int64_t r) {
  if (!b.causal) return b.n;
  const int64_t n = b.limit + r;
  return n < 0 ? 0 : n > b.n ? b.n : n;
}

template <class T>
TP_MATH void scale_and_mask(const ScoreBlock<T>& b, int64_t r, int64_t n, T* __restrict s) {
  if (b.mask) {
    const T* __restrict mask = b.mask + r * b.mask_ld;
    for (int64_t i = 0; i < n; ++i) s[i] = s[i] * b.scale + mask[i];
  } else {
    for (int64_t i = 0; i < n; ++i) s[i] *= b.scale;
  }
}

// s[i] = exp(s[i] - top), 0 from n up to end; returns the sum.
template <bool Near, class T>
TP_MATH T exponentials(int64_t n, int64_t end, T top, T* s) {
  T acc[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) {
      const T e = rows::exp_below<Near>(s[i + j] - top);
      s[i + j] = e;
      acc[j] += e;
    }
  for (; i < n; i += kTail) {
    const int64_t left = n - i < kTail ? n - i : kTail;
    T pad[kTail];
    for (int j = 0; j < kTail; ++j) pad[j] = -m::detail::kInf<T>;
    for (int64_t j = 0; j < left; ++j) pad[j] = s[i + j] - top;
    for (int j = 0; j < kTail; ++j) {
      pad[j] = m::exp(pad[j]);
      acc[j] += pad[j];
    }
    for (int64_t j = 0; j < left; ++j) s[i + j] = pad[j];
  }
  for (int64_t j = n; j < end; ++j) s[j] = 0;
  return rows::fold_sum(acc);
}

template <class T>
TP_MATH T finite_or_zero(T top) {
  return top == -m::detail::kInf<T> ? T(0) : top;
}

template <class T>
void forward(const ScoreBlock<T>& b, T* top, T* total, T* factor) {
  for (int64_t r = 0; r < b.rows; ++r) {
    T* s = b.s + r * b.ld;
    const int64_t n = counted(b, r);
    scale_and_mask(b, r, n, s);
    const rows::Range<T> range = rows::range(s, n);
    const T now = range.top > top[r] ? range.top : top[r];
    // A row that has seen nothing but -inf keeps a sum of zero.
    const T shift = finite_or_zero(now);
    factor[r] = m::exp(top[r] - shift);
    const T sum = rows::is_near(shift, range.low) ? exponentials<__is_same(T, float)>(n, b.n, shift, s)
                                                  : exponentials<false>(n, b.n, shift, s);
    total[r] = total[r] * factor[r] + sum;
    top[r] = now;
  }
}

template <class T>
void probabilities(const ScoreBlock<T>& b, const T* lse) {
  for (int64_t r = 0; r < b.rows; ++r) {
    T* s = b.s + r * b.ld;
    const int64_t n = counted(b, r);
    scale_and_mask(b, r, n, s);
    exponentials<false>(n, b.n, finite_or_zero(lse[r]), s);
  }
}

template <class T>
void score_slope(int64_t count, int64_t n, const T* p, const T* level, T scale, T* slope) {
  for (int64_t r = 0; r < count; ++r) {
    const T* __restrict pr = p + r * n;
    T* __restrict to = slope + r * n;
    const T v = level[r];
    for (int64_t i = 0; i < n; ++i) to[i] = pr[i] * (to[i] - v) * scale;
  }
}

template <class T>
void scale_rows(int64_t count, int64_t n, int64_t ld, const T* factor, T* x) {
  for (int64_t r = 0; r < count; ++r) {
    T* __restrict to = x + r * ld;
    for (int64_t i = 0; i < n; ++i) to[i] *= factor[r];
  }
}

template <class T>
T dot(int64_t n, const T* x, const T* y) {
  return rows::sum<T>(n, [=](int64_t i) { return x[i] * y[i]; });
}

template <class T>
void drop(int64_t n, const uint8_t* __restrict keep, T scale, T* __restrict x) {
  for (int64_t i = 0; i < n; ++i) {
    const T v = x[i] * scale;
    x[i] = keep[i] ? v : T(0);
  }
}

#define TP_ATTENTION_LOOPS(T) {forward<T>, probabilities<T>, score_slope<T>, scale_rows<T>, dot<T>, drop<T>}

}  // namespace

extern const AttentionTable attention_table;
const AttentionTable attention_table = {TP_ATTENTION_LOOPS(float), TP_ATTENTION_LOOPS(double)};

}  // namespace TP_ISA
}  // namespace tp
