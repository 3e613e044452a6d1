// The table of Fourier passes behind fft.h, compiled per instruction set. Knows raw memory only.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

/// One pass of the autosorting (Stockham) transform over `m * radix` rows of `s` neighbouring columns, real and imaginary
/// parts apart: y[(radix p + j) s + q] = w_j[p] * (the j-th value of the radix-point transform of x[(p + m k) s + q]).
/// w holds the real parts of w_1 ... w_(radix-1), m each, then the imaginary parts.
template <class T>
using FftPassFn = void (*)(std::int64_t m, std::int64_t s, const T* xr, const T* xi, T* yr, T* yi, const T* w);

inline constexpr int kFftRadices[] = {8, 4, 2, 3, 5, 7, 11, 13};

/// Between planes and pairs (re, im), all contiguous, and the ends of transforms of 2h real numbers: these are the real and
/// imaginary parts of h complex ones. `roots`: exp(-2 pi i k / 2h) for k <= h / 2, in pairs.
template <class T>
struct FftEnds {
  void (*split)(std::int64_t n, const T* pairs, T* re, T* im);
  void (*pair)(std::int64_t n, const T* re, const T* im, T* pairs, T scale);
  /// The spectrum in rows of s pairs: h + 1 of them, or all 2h. Real parts times `scale`, imaginary ones times `turn`.
  void (*spectrum)(std::int64_t h, std::int64_t s, const T* re, const T* im, const T* roots, T scale, T turn,
                   bool whole, T* pairs);
  /// n rows of s, each times its own c + i d; y may be x.
  void (*turn)(std::int64_t n, std::int64_t s, const T* xr, const T* xi, const T* c, const T* d, T* yr, T* yi);
  /// What an inverse transform of length h (planes exchanged) makes the real numbers of, from rows 0 ... h of a spectrum,
  /// whose imaginary parts are taken times `turn`.
  void (*halves)(std::int64_t h, std::int64_t s, const T* pairs, const T* roots, T turn, T* re, T* im);
};

struct FftTable {
  FftPassFn<float> f32[8];  // in the order of kFftRadices
  FftPassFn<double> f64[8];
  FftEnds<float> ends_f32;
  FftEnds<double> ends_f64;
};
TP_DECLARE_TABLE(FftTable, fft_table)

}  // namespace tp
