// Vector types as wide as the instruction set being compiled, for hand-written loops the compiler does not vectorise by
// itself (reductions, searches). Knows no kernel.
#pragma once
#include <stdint.h>

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors never cross a call: everything here is forced inline

#ifndef TP_ISA
#define TP_ISA baseline
#endif

#if defined(__AVX512F__)
#define TP_VECTOR_BYTES 64
#elif defined(__AVX__)
#define TP_VECTOR_BYTES 32
#else
#define TP_VECTOR_BYTES 16
#endif

#define TP_FORCE static inline __attribute__((always_inline))

namespace tp {
namespace TP_ISA {

template <class T>
struct Vector {
  typedef T V __attribute__((vector_size(TP_VECTOR_BYTES)));
  typedef T Unaligned __attribute__((vector_size(TP_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
  typedef T Half __attribute__((vector_size(TP_VECTOR_BYTES / 2), aligned(sizeof(T)), may_alias));
  static constexpr int lanes = TP_VECTOR_BYTES / int(sizeof(T));
};
template <class T>
using Vec = typename Vector<T>::V;

template <class T>
TP_FORCE Vec<T> load(const T* p) {
  return *reinterpret_cast<const typename Vector<T>::Unaligned*>(p);
}
template <class T>
TP_FORCE void store(T* p, Vec<T> v) {
  *reinterpret_cast<typename Vector<T>::Unaligned*>(p) = v;
}

// As many elements as A has lanes; floats become doubles.
template <class A, class T>
TP_FORCE Vec<A> load_as(const T* p) {
  if constexpr (__is_same(A, T))
    return load(p);
  else
    return __builtin_convertvector(*reinterpret_cast<const typename Vector<T>::Half*>(p), Vec<A>);
}

// The lanes of a vector folded by halves: a chain of dependent steps would cost more than a short row itself.
template <class T, int kBytes = TP_VECTOR_BYTES, class V, class F>
TP_FORCE T fold_lanes(V v, F f) {
  if constexpr (kBytes <= 16) {
    constexpr int n = kBytes / int(sizeof(T));
    T lanes[n];
    for (int k = 0; k < n; ++k) lanes[k] = v[k];
    for (int half = n / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) lanes[k] = f(lanes[k], lanes[k + half]);
    return lanes[0];
  } else {
    typedef T Half __attribute__((vector_size(kBytes / 2)));
    Half half[2];
    __builtin_memcpy(half, &v, kBytes);
    return fold_lanes<T, kBytes / 2>(f(half[0], half[1]), f);
  }
}

}  // namespace TP_ISA
}  // namespace tp
