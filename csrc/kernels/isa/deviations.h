// Mean and squared deviations, folded block by block. Included by files of this folder only.
#pragma once
#include "kernels/isa/fold.h"

namespace tp {
namespace TP_ISA {

// Mean and sum of squared deviations of each block, two passes over it in cache; blocks are combined in double.
template <class T>
struct Deviations {
  static double* counts(Accumulators a) { return reinterpret_cast<double*>(a.base); }
  static double* means(Accumulators a) { return counts(a) + a.capacity; }
  static double* squares(Accumulators a) { return counts(a) + 2 * a.capacity; }
  TP_FORCE void combine(double& n, double& mean, double& m2, double n_b, double mean_b, double m2_b) {
    const double total = n + n_b, delta = mean_b - mean;
    m2 += m2_b + delta * delta * (n * n_b / total);
    mean += delta * (n_b / total);
    n = total;
  }
  static void init(Accumulators a, int64_t n) {
    for (int64_t i = 0; i < n; ++i) counts(a)[i] = means(a)[i] = squares(a)[i] = 0;
  }
  static void rows(Accumulators a, const char* x, int64_t stride, int64_t rows, int64_t n, int64_t) {
    for (int64_t r = 0; r < rows; ++r)
      row(reinterpret_cast<const T*>(x) + r * stride, n, counts(a)[r], means(a)[r], squares(a)[r]);
  }
  TP_FORCE void row(const T* x, int64_t n, double& count, double& mean_so_far, double& m2) {
    constexpr int L = Vector<T>::lanes;
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t k = smaller(kBlock, n - i);
      const T* p = x + i;
      const T mean = T(sum_of<double>(p, k) / double(k));
      double d1 = 0, d2 = 0;
      int64_t j = 0;
      if (k >= 4 * L) {
        Vec<T> s[4] = {}, q[4] = {};
        for (; j + 4 * L <= k; j += 4 * L)
#pragma GCC unroll 4
          for (int v = 0; v < 4; ++v) {
            const Vec<T> d = load(p + j + v * L) - mean;
            s[v] += d;
            q[v] += d * d;
          }
        T lanes[L];
        store(lanes, (s[0] + s[1]) + (s[2] + s[3]));
        for (int v = 0; v < L; ++v) d1 += double(lanes[v]);
        store(lanes, (q[0] + q[1]) + (q[2] + q[3]));
        for (int v = 0; v < L; ++v) d2 += double(lanes[v]);
      }
      for (; j < k; ++j) {
        const double d = double(p[j] - mean);
        d1 += d;
        d2 += d * d;
      }
      // The rounding of the mean to T is taken out again.
      combine(count, mean_so_far, m2, double(k), double(mean) + d1 / double(k), d2 - d1 * d1 / double(k));
    }
  }
  static __attribute__((noinline)) void cols(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t cols,
                                             int64_t) {
    const T* x = reinterpret_cast<const T*>(x_);
    T mean[kMaxCols], d1[kMaxCols], d2[kMaxCols];
    for (int64_t r0 = 0; r0 < rows; r0 += kGroup) {
      const int64_t k = smaller(kGroup, rows - r0);
      const T* p = x + r0 * stride;
      // The mean of the first rows alone, so that memory is read once: it is no further from the mean of all k than the
      // square root of k / 8 deviations, which costs two or three bits of d2 at worst.
      const int64_t first = smaller(8, k);
      sum_rows(mean, p, stride, first, cols);
      for (int64_t c = 0; c < cols; ++c) {
        mean[c] /= T(first);
        d1[c] = d2[c] = 0;
      }
      int64_t r = 0;
      for (; r + 4 <= k; r += 4) {
        const T* q = p + r * stride;
        for (int64_t c = 0; c < cols; ++c) {
          const T e0 = q[c] - mean[c], e1 = q[c + stride] - mean[c], e2 = q[c + 2 * stride] - mean[c],
                  e3 = q[c + 3 * stride] - mean[c];
          d1[c] += (e0 + e1) + (e2 + e3);
          d2[c] += (e0 * e0 + e1 * e1) + (e2 * e2 + e3 * e3);
        }
      }
      for (; r < k; ++r)
        for (int64_t c = 0; c < cols; ++c) {
          const T e = p[r * stride + c] - mean[c];
          d1[c] += e;
          d2[c] += e * e;
        }
      double *n = counts(a), *m = means(a), *s = squares(a);
      const double kd = double(k);
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c)
        combine(n[c], m[c], s[c], kd, double(mean[c]) + double(d1[c]) / kd,
                double(d2[c]) - double(d1[c]) * double(d1[c]) / kd);
    }
  }
  static void merge(Accumulators a, Accumulators b, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      if (counts(b)[i] != 0)
        combine(counts(a)[i], means(a)[i], squares(a)[i], counts(b)[i], means(b)[i], squares(b)[i]);
  }
};

}  // namespace TP_ISA
}  // namespace tp
