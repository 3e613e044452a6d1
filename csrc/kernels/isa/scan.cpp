// Running sums and products of one instruction set. Those of floats are carried in double, whatever the element type.
#include "kernels/scan_table.h"

#include "kernels/isa/vectors.h"

namespace tp {
namespace TP_ISA {
namespace {

template <class A, class T>
TP_FORCE void sum_line(T* out, const T* x, int64_t n) {
  constexpr int L = Vector<A>::lanes;
  Vec<A> carry = {};
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    // Sums inside the vector by doubling distances, then the carry on top of all of them. The carry itself waits for one
    // addition a vector.
    A v[L];
    for (int k = 0; k < L; ++k) v[k] = A(x[i + k]);
    Vec<A> s = load(v);
    const Vec<A> zero = {};
#if TP_VECTOR_BYTES == 64
    s += __builtin_shufflevector(zero, s, 0, 8, 9, 10, 11, 12, 13, 14);
    s += __builtin_shufflevector(zero, s, 0, 1, 8, 9, 10, 11, 12, 13);
    s += __builtin_shufflevector(zero, s, 0, 1, 2, 3, 8, 9, 10, 11);
    const Vec<A> last = __builtin_shufflevector(s, s, 7, 7, 7, 7, 7, 7, 7, 7);
#elif TP_VECTOR_BYTES == 32
    s += __builtin_shufflevector(zero, s, 0, 4, 5, 6);
    s += __builtin_shufflevector(zero, s, 0, 1, 4, 5);
    const Vec<A> last = __builtin_shufflevector(s, s, 3, 3, 3, 3);
#else
    s += __builtin_shufflevector(zero, s, 0, 2);
    const Vec<A> last = __builtin_shufflevector(s, s, 1, 1);
#endif
    s += carry;
    carry += last;
    store(v, s);
    for (int k = 0; k < L; ++k) out[i + k] = T(v[k]);
  }
  for (A total = carry[0]; i < n; ++i) out[i] = T(total += A(x[i]));
}

// Products of several lines at once: in each, one waits for the one before it.
template <class A, class T, int kLines>
TP_FORCE void product_lines(T* __restrict out, const T* __restrict x, int64_t n) {
  A carry[kLines];
  for (int k = 0; k < kLines; ++k) carry[k] = 1;
  for (int64_t i = 0; i < n; ++i)
    for (int k = 0; k < kLines; ++k) {
      carry[k] *= A(x[k * n + i]);
      out[k * n + i] = T(carry[k]);
    }
}

template <class A, class T, bool kProduct>
void running(char* out_, const char* x_, int64_t rows, int64_t stride, int64_t cols) {
  T* out = reinterpret_cast<T*>(out_);
  const T* x = reinterpret_cast<const T*>(x_);
  if (stride == 1) {
    int64_t c = 0;
    if constexpr (kProduct) {
      for (; c + 4 <= cols; c += 4) product_lines<A, T, 4>(out + c * rows, x + c * rows, rows);
      for (; c < cols; ++c) product_lines<A, T, 1>(out + c * rows, x + c * rows, rows);
    } else {
      for (; c < cols; ++c) sum_line<A>(out + c * rows, x + c * rows, rows);
    }
    return;
  }
  constexpr int64_t width = 1024, line_items = 64 / int64_t(sizeof(T));
  A carry[width];
  for (int64_t c0 = 0; c0 < cols; c0 += width) {
    const int64_t n = cols - c0 < width ? cols - c0 : width;
    for (int64_t c = 0; c < n; ++c) carry[c] = kProduct;
    for (int64_t r = 0; r < rows; ++r) {
      T* __restrict to = out + r * stride + c0;
      const T* __restrict from = x + r * stride + c0;
      // The next rows lie on other pages, where the hardware looks for nothing.
      for (int64_t c = 0; c < n; c += line_items) {
        __builtin_prefetch(from + 2 * stride + c);
        __builtin_prefetch(to + 2 * stride + c, 1);
      }
      for (int64_t c = 0; c < n; ++c) {
        carry[c] = kProduct ? carry[c] * A(from[c]) : carry[c] + A(from[c]);
        to[c] = T(carry[c]);
      }
    }
  }
}

}  // namespace

extern const ScanTable scan_table = {
    running<double, float, false>, running<double, double, false>, running<uint64_t, uint64_t, false>,
    running<double, float, true>,  running<double, double, true>,  running<uint64_t, uint64_t, true>,
};

}  // namespace TP_ISA
}  // namespace tp
