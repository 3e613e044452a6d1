// Distances of rows to a panel of rows: tiles of 4 rows by two vectors in registers. Differences are taken before anything
// is squared, so near rows far from the origin lose nothing.
#include "kernels/distance_table.h"

#include "kernels/isa/vectors.h"

// Fused multiply-add, as in the library's products.
#pragma GCC optimize("fp-contract=fast")

namespace tp {
namespace TP_ISA {
namespace {

constexpr int kRows = 4, kVectors = 2;
// Terms summed in T before a double takes them, and in a group of their own before that: their rounding errors stay below
// the result's. A root halves them.
template <class T, Distance kind>
constexpr int64_t kTerms = kind == Distance::City ? 8
    : __is_same(T, float)                         ? 32
                                                  : 16;
constexpr int64_t kGroup = 4;

// A square that left the range of float, or came near its end.
TP_FORCE bool is_out_of_range(double sum) { return !(sum > 1e-30 && sum < 1e38); }

template <class T>
double wide_square(const T* x, const T* panel, int64_t step, int64_t length) {
  double s[4] = {};
  int64_t k = 0;
  for (; k + 4 <= length; k += 4)
    for (int i = 0; i < 4; ++i) {
      const double d = double(x[k + i] - panel[(k + i) * step]);
      s[i] += d * d;
    }
  for (; k < length; ++k) {
    const double d = double(x[k] - panel[k * step]);
    s[0] += d * d;
  }
  return (s[0] + s[1]) + (s[2] + s[3]);
}

// A NaN, once taken, stays.
template <class T>
TP_FORCE Vec<T> larger(Vec<T> v, Vec<T> best) {
  return (v > best) | (v != v) ? v : best;
}
template <class T, Distance kind>
TP_FORCE Vec<T> with_term(Vec<T> sum, Vec<T> d) {
  if constexpr (kind == Distance::Euclid) return sum + d * d;
  d = d < T(0) ? -d : d;
  return kind == Distance::City ? sum + d : larger<T>(d, sum);
}

template <class T, Distance kind, int R>
TP_FORCE void tile(const T* x, const T* panel, int64_t length, int64_t cols, T* out, int64_t out_step) {
  constexpr int L = Vector<T>::lanes, W = kVectors * L;
  double total[R][W] = {}, rest[R][W] = {};
  Vec<T> acc[R][kVectors] = {};
  for (int64_t first = 0; first < length;) {
    const int64_t end = kind == Distance::Chess || length - first < kTerms<T, kind> ? length : first + kTerms<T, kind>;
    int64_t k = first;
    for (; k + kGroup <= end; k += kGroup)
      for (int r = 0; r < R; ++r)
        for (int v = 0; v < kVectors; ++v) {
          Vec<T> part = {};
          for (int i = 0; i < kGroup; ++i)
            part = with_term<T, kind>(part, x[r * length + k + i] - load(panel + (k + i) * W + v * L));
          acc[r][v] = kind == Distance::Chess ? larger<T>(part, acc[r][v]) : acc[r][v] + part;
        }
    for (; k < end; ++k)
      for (int r = 0; r < R; ++r)
        for (int v = 0; v < kVectors; ++v)
          acc[r][v] = with_term<T, kind>(acc[r][v], x[r * length + k] - load(panel + k * W + v * L));
    first = end;
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < kVectors; ++v) {
        T lanes[L];
        store(lanes, acc[r][v]);
        double* sum = total[r] + v * L;
        if constexpr (__is_same(T, double)) {
          // Nothing is wider: what an addition rounds away is kept.
          double* lost = rest[r] + v * L;
          for (int i = 0; i < L; ++i) {
            const double s = sum[i] + lanes[i], added = s - sum[i];
            lost[i] += (sum[i] - (s - added)) + (lanes[i] - added);
            sum[i] = s;
          }
        } else {
          for (int i = 0; i < L; ++i) sum[i] += double(lanes[i]);
        }
        acc[r][v] = Vec<T>{};
      }
  }
  for (int r = 0; r < R; ++r) {
    T* to = out + r * out_step;
    // What was rounded away of an infinite sum is nan.
    if constexpr (__is_same(T, double) && kind != Distance::Chess)
      for (int j = 0; j < W; ++j) total[r][j] += rest[r][j] == rest[r][j] ? rest[r][j] : 0.0;
    if constexpr (kind == Distance::Euclid) {
      bool odd = false;
      if constexpr (__is_same(T, float)) {
        for (int j = 0; j < W; ++j) odd |= is_out_of_range(total[r][j]);
        if (odd)
          for (int64_t j = 0; j < cols; ++j)
            if (is_out_of_range(total[r][j])) total[r][j] = wide_square(x + r * length, panel + j, W, length);
      }
      for (int j = 0; j < W; ++j) total[r][j] = __builtin_sqrt(total[r][j]);
    }
    if (cols == W)
      for (int j = 0; j < W; ++j) to[j] = T(total[r][j]);
    else
      for (int64_t j = 0; j < cols; ++j) to[j] = T(total[r][j]);
  }
}

template <class T, Distance kind>
void run(const T* x, const T* panel, int64_t length, int64_t rows, int64_t cols, T* out, int64_t out_step) {
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows)
    tile<T, kind, kRows>(x + r * length, panel, length, cols, out + r * out_step, out_step);
  for (; r < rows; ++r) tile<T, kind, 1>(x + r * length, panel, length, cols, out + r * out_step, out_step);
}

// out[r][k] = the sum over j of weight[r][j] * (x[r][k] - y[j][k]), for W neighbouring k.
template <class T, int R, int V>
TP_FORCE void weigh_tile(const T* weight, int64_t n, const T* x, const T* y, int64_t length, T* out) {
  constexpr int L = Vector<T>::lanes;
  double total[R][V * L] = {};
  for (int64_t first = 0; first < n;) {
    const int64_t end = n - first < 16 ? n : first + 16;
    Vec<T> acc[R][V] = {};
    for (int64_t j = first; j < end; ++j)
      for (int v = 0; v < V; ++v) {
        const Vec<T> b = load(y + j * length + v * L);
        for (int r = 0; r < R; ++r) acc[r][v] += weight[r * n + j] * (load(x + r * length + v * L) - b);
      }
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) {
        T lanes[L];
        store(lanes, acc[r][v]);
        for (int i = 0; i < L; ++i) total[r][v * L + i] += double(lanes[i]);
      }
    first = end;
  }
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < V * L; ++i) out[r * length + i] = T(total[r][i]);
}

template <class T, int R>
TP_FORCE void weigh_rows(const T* weight, int64_t n, const T* x, const T* y, int64_t length, T* out) {
  constexpr int L = Vector<T>::lanes;
  int64_t k = 0;
  for (; k + kVectors * L <= length; k += kVectors * L)
    weigh_tile<T, R, kVectors>(weight, n, x + k, y + k, length, out + k);
  for (; k + L <= length; k += L) weigh_tile<T, R, 1>(weight, n, x + k, y + k, length, out + k);
  for (; k < length; ++k)
    for (int r = 0; r < R; ++r) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += double(weight[r * n + j] * (x[r * length + k] - y[j * length + k]));
      out[r * length + k] = T(sum);
    }
}
template <class T>
void weigh(const T* weight, const T* x, const T* y, int64_t rows, int64_t n, int64_t length, T* out) {
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows)
    weigh_rows<T, kRows>(weight + r * n, n, x + r * length, y, length, out + r * length);
  for (; r < rows; ++r) weigh_rows<T, 1>(weight + r * n, n, x + r * length, y, length, out + r * length);
}

template <class T>
constexpr DistanceLoops<T> loops() {
  return {kVectors * Vector<T>::lanes,
          {run<T, Distance::City>, run<T, Distance::Euclid>, run<T, Distance::Chess>},
          weigh<T>};
}

}  // namespace

extern const DistanceTable distance_table;
const DistanceTable distance_table = {loops<float>(), loops<double>()};

}  // namespace TP_ISA
}  // namespace tp
