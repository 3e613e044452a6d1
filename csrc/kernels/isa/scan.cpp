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

template <bool kProduct, class A>
TP_FORCE A join(A a, A b) {
  return kProduct ? a * b : a + b;
}

// Columns abreast, each row of them read and written as it lies.
template <class A, class T, bool kProduct>
TP_FORCE void columns(T* out, const T* x, int64_t rows, int64_t stride, int64_t cols, StreamFn stream) {
  // A block on its way past the caches is short: csrc/kernels/streaming.h says why.
  constexpr int64_t width = 2048, line_items = 64 / int64_t(sizeof(T)), step = 1024 / int64_t(sizeof(T));
  A carry[width];
  alignas(64) T block[step];
  for (int64_t c0 = 0; c0 < cols; c0 += width) {
    const int64_t n = cols - c0 < width ? cols - c0 : width;
    for (int64_t c = 0; c < n; ++c) carry[c] = kProduct;
    for (int64_t r = 0; r < rows; ++r) {
      T* const to = out + r * stride + c0;
      const T* const from = x + r * stride + c0;
      for (int64_t b = 0; b < n; b += step) {
        const int64_t k = n - b < step ? n - b : step;
        T* __restrict here = stream ? block : to + b;
        const T* __restrict next = from + b;
        A* __restrict held = carry + b;
        // The next rows may lie on other pages, where the hardware looks for nothing.
        if (cols < stride)
          for (int64_t c = 0; c < k; c += line_items) __builtin_prefetch(next + 2 * stride + c);
        if (!stream)
          for (int64_t c = 0; c < k; c += line_items) __builtin_prefetch(to + b + 2 * stride + c, 1);
        for (int64_t c = 0; c < k; ++c) {
          held[c] = join<kProduct>(held[c], A(next[c]));
          here[c] = T(held[c]);
        }
        if (stream)
          stream(reinterpret_cast<char*>(to + b), reinterpret_cast<const char*>(block), k * int64_t(sizeof(T)));
      }
    }
  }
}

template <class A, class T, bool kProduct>
void running(char* out_, const char* x_, int64_t rows, int64_t stride, int64_t cols, StreamFn stream) {
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
  columns<A, T, kProduct>(out, x, rows, stride, cols, stream);
}

}  // namespace

extern const ScanTable scan_table = {
    running<double, float, false>, running<double, double, false>, running<uint64_t, uint64_t, false>,
    running<double, float, true>,  running<double, double, true>,  running<uint64_t, uint64_t, true>,
};

}  // namespace TP_ISA
}  // namespace tp
