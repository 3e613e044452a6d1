// Folding kernels of one instruction set: sums, products, variance, logsumexp, and the maps before them.
// Knows raw blocks only.
#include <math.h>

#include "core/complex.h"
#include "kernels/isa/fold.h"
#include "kernels/vecmath.h"

namespace tp {
namespace TP_ISA {
namespace {

// ---- sums --------------------------------------------------------------------------------------------------------

// sum += v with the rounding error kept in `carry` (two-sum). Infinities must not leave a nan in the carry.
TP_FORCE void add_exactly(double& sum, double& carry, double v) {
  const double s = sum + v, b = s - sum, e = (sum - (s - b)) + (v - b);
  carry += e == e ? e : 0.0;
  sum = s;
}

enum class After { Nothing, Mean, Root, Power };

// `term` of each element is summed: in the block's own type where that is the element, in double otherwise.
template <class T, Term term>
struct Sums {
  using A = Wide<term, T>;
  static double* sums(Accumulators a) { return reinterpret_cast<double*>(a.base); }
  static double* carries(Accumulators a) { return reinterpret_cast<double*>(a.base) + a.capacity; }
  static void init(Accumulators a, int64_t n) {
    for (int64_t i = 0; i < n; ++i) sums(a)[i] = carries(a)[i] = 0;
  }
  static void rows(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t n, int64_t) {
    const T* x = reinterpret_cast<const T*>(x_);
    for (int64_t r = 0; r < rows; ++r, x += stride)
      for (int64_t i = 0; i < n; i += kBlock)
        add_exactly(sums(a)[r], carries(a)[r], sum_of<double, term>(x + i, smaller(kBlock, n - i)));
  }
  static void cols(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t cols, int64_t) {
    const T* x = reinterpret_cast<const T*>(x_);
    A tmp[kMaxCols];
    double* s = sums(a);
    double* c = carries(a);
    for (int64_t r = 0; r < rows; r += kGroup) {
      sum_rows<term>(tmp, x + r * stride, stride, smaller(kGroup, rows - r), cols);
#pragma GCC ivdep
      for (int64_t i = 0; i < cols; ++i) add_exactly(s[i], c[i], double(tmp[i]));
    }
  }
  static void merge(Accumulators a, Accumulators b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      add_exactly(sums(a)[i], carries(a)[i], sums(b)[i]);
      carries(a)[i] += carries(b)[i];
    }
  }
};

template <class T, After after, Term term = Term::Itself>
struct Sum {
  using S = Sums<T, term>;
  static void finish(char* out_, Accumulators a, int64_t n, double count, double param) {
    double* out = reinterpret_cast<double*>(out_);
    for (int64_t i = 0; i < n; ++i) {
      const double total = S::sums(a)[i] + S::carries(a)[i];
      if constexpr (after == After::Nothing)
        out[i] = total;
      else if constexpr (after == After::Mean)
        out[i] = total / count;
      else if constexpr (after == After::Root)
        out[i] = sqrt(total);
      else
        out[i] = pow(total, 1 / param);
    }
  }
  static __attribute__((noinline)) void few(char* out, const char* x, int64_t stride, int64_t rows, int64_t cols) {
    if constexpr (after == After::Mean) {
      Sum<T, After::Nothing>::few(out, x, stride, rows, cols);
      T* to = reinterpret_cast<T*>(out);
      for (int64_t i = 0; i < cols; ++i) to[i] = T(double(to[i]) / double(rows));
    } else {
      sum_rows<term>(reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x), stride, rows, cols);
    }
  }
  static constexpr bool kFew = term == Term::Itself && (after == After::Nothing || after == After::Mean);
  static constexpr FoldKernel kernel(Dtype d) {
    if constexpr (kFew)
      return {d, Dtype::F64, 16, S::init, S::rows, S::cols, S::merge, finish, few};
    else
      return {d, Dtype::F64, 16, S::init, S::rows, S::cols, S::merge, finish};
  }
};

struct SumInt {
  static uint64_t* sums(Accumulators a) { return reinterpret_cast<uint64_t*>(a.base); }
  static void init(Accumulators a, int64_t n) {
    for (int64_t i = 0; i < n; ++i) sums(a)[i] = 0;
  }
  static void rows(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t n, int64_t) {
    const uint64_t* x = reinterpret_cast<const uint64_t*>(x_);
    for (int64_t r = 0; r < rows; ++r) sums(a)[r] += sum_of<uint64_t>(x + r * stride, n);
  }
  static void cols(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t cols, int64_t) {
    const uint64_t* x = reinterpret_cast<const uint64_t*>(x_);
    uint64_t* s = sums(a);
    for (int64_t r = 0; r < rows; ++r)
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c) s[c] += x[r * stride + c];
  }
  static void merge(Accumulators a, Accumulators b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) sums(a)[i] += sums(b)[i];
  }
  static void finish(char* out, Accumulators a, int64_t n, double, double) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<uint64_t*>(out)[i] = sums(a)[i];
  }
  static constexpr FoldKernel kernel() { return {Dtype::I64, Dtype::I64, 8, init, rows, cols, merge, finish}; }
};

// ---- products ----------------------------------------------------------------------------------------------------

// Carried in A: products of floats in double, where they neither overflow nor vanish early.
template <class T, class A = T>
struct Prod {
  static A* products(Accumulators a) { return reinterpret_cast<A*>(a.base); }
  static A one() {
    if constexpr (__is_same(T, c128))
      return c128{1, 0};
    else
      return A(1);
  }
  static void init(Accumulators a, int64_t n) {
    for (int64_t i = 0; i < n; ++i) products(a)[i] = one();
  }
  TP_FORCE A row(const T* x, int64_t n) {
    int64_t i = 0;
    A total = one();
    if constexpr (!__is_same(T, c128)) {
      constexpr int L = Vector<A>::lanes;
      if (n >= 8 * L) {
        Vec<A> p[4];
        for (int k = 0; k < 4; ++k) p[k] = load_as<A>(x + k * L);
        for (i = 4 * L; i + 4 * L <= n; i += 4 * L)
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k) p[k] *= load_as<A>(x + i + k * L);
        p[0] = (p[0] * p[1]) * (p[2] * p[3]);
        total = fold_lanes<A>(p[0], [](auto v, auto w) { return v * w; });
      }
    }
    for (; i < n; ++i) total = total * A(x[i]);
    return total;
  }
  static void rows(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t n, int64_t) {
    const T* x = reinterpret_cast<const T*>(x_);
    A* p = products(a);
    for (int64_t r = 0; r < rows; ++r) p[r] = p[r] * row(x + r * stride, n);
  }
  static void cols(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t cols, int64_t) {
    const T* x = reinterpret_cast<const T*>(x_);
    A* p = products(a);
    for (int64_t r = 0; r < rows; ++r)
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c) p[c] = p[c] * A(x[r * stride + c]);
  }
  static void merge(Accumulators a, Accumulators b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) products(a)[i] = products(a)[i] * products(b)[i];
  }
  static void finish(char* out, Accumulators a, int64_t n, double, double) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<A*>(out)[i] = products(a)[i];
  }
  static constexpr FoldKernel kernel(Dtype d, Dtype a) { return {d, a, sizeof(A), init, rows, cols, merge, finish}; }
};

// ---- variance ----------------------------------------------------------------------------------------------------

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
  static void cols(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t cols, int64_t) {
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

template <class T, bool kRoot>
struct Variance {
  using D = Deviations<T>;
  static void finish(char* out_, Accumulators a, int64_t n, double count, double correction) {
    double* out = reinterpret_cast<double*>(out_);
    const double freedom = count - correction > 0 ? count - correction : 0;
    for (int64_t i = 0; i < n; ++i) {
      // A rounding below zero counts as zero; nan stays.
      const double m2 = D::squares(a)[i] < 0 ? 0 : D::squares(a)[i];
      out[i] = kRoot ? sqrt(m2 / freedom) : m2 / freedom;
    }
  }
  static constexpr FoldKernel kernel(Dtype d) {
    return {d, Dtype::F64, 24, D::init, D::rows, D::cols, D::merge, finish};
  }
};

// ---- logsumexp ---------------------------------------------------------------------------------------------------

// Sum of exp(x - shift), the shift being the largest element so far; one pass over memory, two over each cached block.
template <class T>
struct LogSumExp {
  static double* shifts(Accumulators a) { return reinterpret_cast<double*>(a.base); }
  static double* sums(Accumulators a) { return shifts(a) + a.capacity; }
  TP_FORCE bool finite(double v) { return v - v == 0; }
  // A finite shift for a block whose maximum is `best`: an infinite or nan one takes the shift in use.
  TP_FORCE double shift_for(double best, double held) { return finite(best) ? best : finite(held) ? held : 0.0; }
  TP_FORCE void combine(double& shift, double& sum, double shift_b, double sum_b, bool holds_something) {
    const bool empty = shift == -__builtin_inf();
    const double next = !holds_something ? shift : empty ? shift_b : shift > shift_b ? shift : shift_b;
    const double kept = empty || sum == 0 ? 0.0 : sum * m::exp(shift - next);
    sum = holds_something ? kept + sum_b * m::exp(shift_b - next) : sum;
    shift = next;
  }
  static void init(Accumulators a, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      shifts(a)[i] = -__builtin_inf();
      sums(a)[i] = 0;
    }
  }
  static void rows(Accumulators a, const char* x, int64_t stride, int64_t rows, int64_t n, int64_t) {
    for (int64_t r = 0; r < rows; ++r) row(reinterpret_cast<const T*>(x) + r * stride, n, shifts(a)[r], sums(a)[r]);
  }
  TP_FORCE void row(const T* x, int64_t n, double& held, double& total) {
    constexpr int64_t block = 1024;
    T tmp[block];
    for (int64_t i = 0; i < n; i += block) {
      const int64_t k = smaller(block, n - i);
      const double best = double(extreme_of<T, true>(x + i, k, x[i]));
      if (best == -__builtin_inf()) continue;
      const double shift = shift_for(best, held);
      const T s = T(shift);
      for (int64_t j = 0; j < k; ++j) tmp[j] = m::exp(x[i + j] - s);
      combine(held, total, shift, sum_of<double>(tmp, k), true);
    }
  }
  static void cols(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t cols, int64_t) {
    const T* x = reinterpret_cast<const T*>(x_);
    T best[kMaxCols], total[kMaxCols], shift[kMaxCols];
    for (int64_t r0 = 0; r0 < rows; r0 += kGroup) {
      const int64_t k = smaller(kGroup, rows - r0);
      const T* p = x + r0 * stride;
      for (int64_t c = 0; c < cols; ++c) best[c] = p[c];
      extreme_rows<T, true>(best, p, stride, k, cols);
      for (int64_t c = 0; c < cols; ++c) {
        shift[c] = T(shift_for(double(best[c]), shifts(a)[c]));
        total[c] = 0;
      }
      for (int64_t r = 0; r < k; ++r)
        for (int64_t c = 0; c < cols; ++c) total[c] += m::exp(p[r * stride + c] - shift[c]);
      for (int64_t c = 0; c < cols; ++c)
        combine(shifts(a)[c], sums(a)[c], double(shift[c]), double(total[c]), best[c] != -T(__builtin_inf()));
    }
  }
  static void merge(Accumulators a, Accumulators b, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      combine(shifts(a)[i], sums(a)[i], shifts(b)[i], sums(b)[i], shifts(b)[i] != -__builtin_inf());
  }
  static void finish(char* out_, Accumulators a, int64_t n, double, double) {
    double* out = reinterpret_cast<double*>(out_);
    for (int64_t i = 0; i < n; ++i)
      out[i] = shifts(a)[i] == -__builtin_inf() ? -__builtin_inf() : shifts(a)[i] + log(sums(a)[i]);
  }
  static constexpr FoldKernel kernel(Dtype d) { return {d, Dtype::F64, 16, init, rows, cols, merge, finish}; }
};

// ---- maps --------------------------------------------------------------------------------------------------------

void power_abs(char* to, const char* from, int64_t n, double p) {
  for (int64_t i = 0; i < n; ++i)
    reinterpret_cast<double*>(to)[i] = pow(fabs(reinterpret_cast<const double*>(from)[i]), p);
}
void absolute(char* to, const char* from, int64_t n, double) {
  for (int64_t i = 0; i < n; ++i) reinterpret_cast<double*>(to)[i] = fabs(reinterpret_cast<const double*>(from)[i]);
}
void absolute_complex(char* to, const char* from, int64_t n, double) {
  for (int64_t i = 0; i < n; ++i) {
    const c128 v = reinterpret_cast<const c128*>(from)[i];
    reinterpret_cast<double*>(to)[i] = hypot(v.re, v.im);
  }
}
template <class T>
void nan_to_zero(char* to, const char* from, int64_t n, double) {
  for (int64_t i = 0; i < n; ++i) {
    const T v = reinterpret_cast<const T*>(from)[i];
    reinterpret_cast<T*>(to)[i] = v == v ? v : T(0);
  }
}

void is_number(char* to, const char* from, int64_t n, double) {
  for (int64_t i = 0; i < n; ++i) {
    const double v = reinterpret_cast<const double*>(from)[i];
    reinterpret_cast<double*>(to)[i] = v == v ? 1 : 0;
  }
}

}  // namespace

extern const ReduceTable reduce_table = {
    .sum_f32 = Sum<float, After::Nothing>::kernel(Dtype::F32),
    .sum_f64 = Sum<double, After::Nothing>::kernel(Dtype::F64),
    .sum_i64 = SumInt::kernel(),
    .mean_f32 = Sum<float, After::Mean>::kernel(Dtype::F32),
    .mean_f64 = Sum<double, After::Mean>::kernel(Dtype::F64),
    .prod_f32 = Prod<float, double>::kernel(Dtype::F32, Dtype::F64),
    .prod_f64 = Prod<double>::kernel(Dtype::F64, Dtype::F64),
    .prod_i64 = Prod<uint64_t>::kernel(Dtype::I64, Dtype::I64),
    .prod_c128 = Prod<c128>::kernel(Dtype::C128, Dtype::C128),
    .var_f32 = Variance<float, false>::kernel(Dtype::F32),
    .var_f64 = Variance<double, false>::kernel(Dtype::F64),
    .std_f32 = Variance<float, true>::kernel(Dtype::F32),
    .std_f64 = Variance<double, true>::kernel(Dtype::F64),
    .logsumexp_f32 = LogSumExp<float>::kernel(Dtype::F32),
    .logsumexp_f64 = LogSumExp<double>::kernel(Dtype::F64),
    .root_f64 = Sum<double, After::Root>::kernel(Dtype::F64),
    .norm_f32 = Sum<float, After::Root, Term::Square>::kernel(Dtype::F32),
    .norm_f64 = Sum<double, After::Root, Term::Square>::kernel(Dtype::F64),
    .power_f64 = Sum<double, After::Power>::kernel(Dtype::F64),
    .power_abs_f64 = {Dtype::F64, Dtype::F64, power_abs},
    .abs_f64 = {Dtype::F64, Dtype::F64, absolute},
    .abs_c128 = {Dtype::C128, Dtype::F64, absolute_complex},
    .nan_to_zero_f32 = {Dtype::F32, Dtype::F32, nan_to_zero<float>},
    .nan_to_zero_f64 = {Dtype::F64, Dtype::F64, nan_to_zero<double>},
    .is_number_f64 = {Dtype::F64, Dtype::F64, is_number},
};

}  // namespace TP_ISA
}  // namespace tp
