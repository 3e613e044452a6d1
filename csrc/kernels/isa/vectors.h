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

}  // namespace TP_ISA
}  // namespace tp
