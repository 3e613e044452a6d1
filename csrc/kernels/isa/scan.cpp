// Running sums of one instruction set. Totals are carried in double, whatever the element type.
#include "kernels/scan_table.h"

#include "kernels/isa/vectors.h"

namespace tp {
namespace TP_ISA {
namespace {

template <class A, class T>
TP_FORCE void line(T* out, const T* x, int64_t n) {
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

template <class A, class T>
void running_sum(char* out_, const char* x_, int64_t rows, int64_t stride, int64_t cols) {
  T* out = reinterpret_cast<T*>(out_);
  const T* x = reinterpret_cast<const T*>(x_);
  if (cols == 1 && stride == 1) return line<A>(out, x, rows);
  constexpr int64_t width = 1024, line_items = 64 / int64_t(sizeof(T));
  A carry[width];
  for (int64_t c0 = 0; c0 < cols; c0 += width) {
    const int64_t n = cols - c0 < width ? cols - c0 : width;
    for (int64_t c = 0; c < n; ++c) carry[c] = 0;
    for (int64_t r = 0; r < rows; ++r) {
      T* __restrict to = out + r * stride + c0;
      const T* __restrict from = x + r * stride + c0;
      // The next rows lie on other pages, where the hardware looks for nothing.
      for (int64_t c = 0; c < n; c += line_items) {
        __builtin_prefetch(from + 2 * stride + c);
        __builtin_prefetch(to + 2 * stride + c, 1);
      }
      for (int64_t c = 0; c < n; ++c) {
        carry[c] += A(from[c]);
        to[c] = T(carry[c]);
      }
    }
  }
}

}  // namespace

extern const ScanTable scan_table = {running_sum<double, float>, running_sum<double, double>,
                                     running_sum<uint64_t, uint64_t>};

}  // namespace TP_ISA
}  // namespace tp
