// Folding kernels of one instruction set: extrema and their positions. Knows raw blocks only.
#include "kernels/isa/fold.h"

namespace tp {
namespace TP_ISA {
namespace {

template <class T, bool kMax>
struct Extreme {
  static T* bests(Accumulators a) { return reinterpret_cast<T*>(a.base); }
  static void init(Accumulators a, int64_t n) {
    for (int64_t i = 0; i < n; ++i) bests(a)[i] = kMax ? lowest<T>() : highest<T>();
  }
  static void rows(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t n, int64_t) {
    const T* x = reinterpret_cast<const T*>(x_);
    for (int64_t r = 0; r < rows; ++r) bests(a)[r] = extreme_of<T, kMax>(x + r * stride, n, bests(a)[r]);
  }
  static void cols(Accumulators a, const char* x, int64_t stride, int64_t rows, int64_t cols, int64_t) {
    extreme_rows<T, kMax>(bests(a), reinterpret_cast<const T*>(x), stride, rows, cols);
  }
  static void merge(Accumulators a, Accumulators b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) bests(a)[i] = extreme<T, kMax>(bests(b)[i], bests(a)[i]);
  }
  static void finish(char* out, Accumulators a, int64_t n, double, double) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(out)[i] = bests(a)[i];
  }
  static constexpr FoldKernel kernel(Dtype d) { return {d, d, sizeof(T), init, rows, cols, merge, finish}; }
};

template <int size>
struct IndexOf;
template <>
struct IndexOf<1> {
  using I = int8_t;
};
template <>
struct IndexOf<4> {
  using I = int32_t;
};
template <>
struct IndexOf<8> {
  using I = int64_t;
};

// Where `best`, which is among the n elements, first is (any nan for a nan).
template <class T>
TP_FORCE int64_t place_of(const T* x, int64_t n, T best) {
  const bool nan = best != best;
  constexpr int64_t step = 4 * Vector<T>::lanes;
  int64_t at = 0;
  for (; at + step <= n; at += step) {
    unsigned found = 0;
    for (int64_t j = 0; j < step; ++j) found |= unsigned((x[at + j] == best) | (nan & (x[at + j] != x[at + j])));
    if (found) break;
  }
  while (!(x[at] == best || (nan && x[at] != x[at]))) ++at;
  return at;
}

// Position and value of the first extreme. Of a row only the block is searched that holds it.
template <class T, bool kMax>
struct ArgExtreme {
  static int64_t* places(Accumulators a) { return reinterpret_cast<int64_t*>(a.base); }
  static T* bests(Accumulators a) { return reinterpret_cast<T*>(a.base + 8 * a.capacity); }
  // Whether x comes before `best`: strictly more extreme, or the first nan.
  TP_FORCE bool beats(T x, T best) {
    if constexpr (__is_same(T, float) || __is_same(T, double))
      return best == best && !(kMax ? x <= best : x >= best);
    else
      return kMax ? x > best : x < best;
  }
  static void init(Accumulators a, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      places(a)[i] = -1;
      bests(a)[i] = kMax ? lowest<T>() : highest<T>();
    }
  }
  static void rows(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t n, int64_t first) {
    const T* x = reinterpret_cast<const T*>(x_);
    constexpr int64_t block = 1024;
    for (int64_t r = 0; r < rows; ++r, x += stride) {
      T best = bests(a)[r];
      int64_t from = -1;  // the block that holds it, if this row does
      for (int64_t i = 0; i < n; i += block) {
        const T found = extreme_of<T, kMax>(x + i, smaller(block, n - i), x[i]);
        if ((from >= 0 || places(a)[r] >= 0) && !beats(found, best)) continue;
        best = found;
        from = i;
      }
      if (from < 0) continue;
      bests(a)[r] = best;
      places(a)[r] = first + from + place_of(x + from, smaller(block, n - from), best);
    }
  }
  static void cols(Accumulators a, const char* x_, int64_t stride, int64_t rows, int64_t cols, int64_t first) {
    const T* x = reinterpret_cast<const T*>(x_);
    // Row numbers as wide as the elements keep the loop in vectors.
    using I = typename IndexOf<sizeof(T)>::I;
    T best[kMaxCols];
    I place[kMaxCols];
    constexpr int64_t most = sizeof(T) == 1 ? 100 : 1 << 20;  // rows an I can number
    for (int64_t r0 = 0; r0 < rows; r0 += most) {
      const int64_t last = smaller(rows, r0 + most);
      for (int64_t c = 0; c < cols; ++c) {
        best[c] = x[r0 * stride + c];
        place[c] = 0;
      }
      for (int64_t r = r0 + 1; r < last; ++r) {
        const T* p = x + r * stride;
        const I number = I(r - r0);
        for (int64_t c = 0; c < cols; ++c) {
          const bool take = (kMax ? p[c] > best[c] : p[c] < best[c]) | ((p[c] != p[c]) & (best[c] == best[c]));
          best[c] = take ? p[c] : best[c];
          place[c] = take ? number : place[c];
        }
      }
      for (int64_t c = 0; c < cols; ++c)
        if (places(a)[c] < 0 || beats(best[c], bests(a)[c])) {
          bests(a)[c] = best[c];
          places(a)[c] = first + r0 + place[c];
        }
    }
  }
  static void merge(Accumulators a, Accumulators b, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      if (places(b)[i] >= 0 && (places(a)[i] < 0 || beats(bests(b)[i], bests(a)[i]))) {
        bests(a)[i] = bests(b)[i];
        places(a)[i] = places(b)[i];
      }
  }
  static void finish(char* out, Accumulators a, int64_t n, double, double) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(out)[i] = bests(a)[i];
  }
  static constexpr FoldKernel kernel(Dtype d) { return {d, d, 8 + sizeof(T), init, rows, cols, merge, finish}; }
};

}  // namespace

#define TP_BY_COMPUTE(KERNEL, MAX)                                                                                   \
  {                                                                                                                  \
    KERNEL<uint8_t, MAX>::kernel(Dtype::Bool), KERNEL<int32_t, MAX>::kernel(Dtype::I32),                             \
        KERNEL<int64_t, MAX>::kernel(Dtype::I64), KERNEL<uint64_t, MAX>::kernel(Dtype::U64),                         \
        KERNEL<float, MAX>::kernel(Dtype::F32), KERNEL<double, MAX>::kernel(Dtype::F64), FoldKernel{}, FoldKernel {} \
  }

extern const ExtremeTable extreme_table = {
    .max = TP_BY_COMPUTE(Extreme, true),
    .min = TP_BY_COMPUTE(Extreme, false),
    .argmax = TP_BY_COMPUTE(ArgExtreme, true),
    .argmin = TP_BY_COMPUTE(ArgExtreme, false),
};
#undef TP_BY_COMPUTE

}  // namespace TP_ISA
}  // namespace tp
