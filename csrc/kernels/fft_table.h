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

struct FftTable {
  FftPassFn<float> f32[8];  // in the order of kFftRadices
  FftPassFn<double> f64[8];
};
TP_DECLARE_TABLE(FftTable, fft_table)

}  // namespace tp
