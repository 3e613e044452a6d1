// Owns loops over float32 functions that are a polynomial on each of 16 pieces of their domain: with AVX-512 the coefficients
// of a vector of arguments come out of one register each. tests/core/ulp/minimax.py makes them. The loops are compiled once,
// beside those of the long functions (special_table.h).
#pragma once
#include <immintrin.h>

#include "kernels/vecmath_f32.h"

namespace tp {
namespace TP_ISA {
namespace m {
namespace detail {

// clang-format off
// ndtr(-a), centres near k / 4.
inline constexpr float kNdtrPieces[8][16] = {
  {0x0.0p+0f, 0x1.0260000000000p-2f, 0x1.f3f0000000000p-2f, 0x1.7c48000000000p-1f, 0x1.fff8000000000p-1f, 0x1.3dd8000000000p+0f, 0x1.810c000000000p+0f, 0x1.bde8000000000p+0f, 0x1.fd04000000000p+0f, 0x1.204e000000000p+1f, 0x1.3edc000000000p+1f, 0x1.5f6c000000000p+1f, 0x1.8146000000000p+1f, 0x1.9e84000000000p+1f, 0x1.bee2000000000p+1f, 0x1.defc000000000p+1f},
  {0x1.0000000000000p-1f, 0x1.9a01b40000000p-2f, 0x1.4033a00000000p-2f, 0x1.d49fda0000000p-3f, 0x1.44f4ca0000000p-3f, 0x1.b7137a0000000p-4f, 0x1.0f7ac20000000p-4f, 0x1.4dfc980000000p-5f, 0x1.7f2bde0000000p-6f, 0x1.8e1a3a0000000p-7f, 0x1.a14ed20000000p-8f, 0x1.8bfb000000000p-9f, 0x1.567afa0000000p-10f, 0x1.3b195c0000000p-11f, 0x1.f814120000000p-13f, 0x1.7ec2720000000p-14f},
  {-0x1.9884540000000p-2f, -0x1.8bb7b20000000p-2f, -0x1.6a9e900000000p-2f, -0x1.360a7a0000000p-2f, -0x1.ef96180000000p-3f, -0x1.7a02d80000000p-3f, -0x1.07a0b40000000p-3f, -0x1.66796a0000000p-4f, -0x1.c4b2580000000p-5f, -0x1.029f240000000p-5f, -0x1.25a4420000000p-6f, -0x1.2db2ee0000000p-7f, -0x1.19e41c0000000p-8f, -0x1.1425ca0000000p-9f, -0x1.d7b6300000000p-11f, -0x1.7ce0b00000000p-12f},
  {0x1.55d8720000000p-20f, 0x1.8f63560000000p-5f, 0x1.6213820000000p-4f, 0x1.cc8ec40000000p-4f, 0x1.ef8e600000000p-4f, 0x1.d5547a0000000p-4f, 0x1.8c850c0000000p-4f, 0x1.3832f40000000p-4f, 0x1.c20ed00000000p-5f, 0x1.2341d40000000p-5f, 0x1.6dbe620000000p-6f, 0x1.9e279c0000000p-7f, 0x1.a83d200000000p-8f, 0x1.bf23840000000p-9f, 0x1.9bb7ec0000000p-10f, 0x1.64513a0000000p-11f},
  {0x1.1027560000000p-4f, 0x1.ee02d60000000p-5f, 0x1.7039ec0000000p-5f, 0x1.72b44c0000000p-6f, 0x1.c446fc0000000p-18f, -0x1.10e5f40000000p-6f, -0x1.bbb2860000000p-6f, -0x1.e617460000000p-6f, -0x1.bdb02a0000000p-6f, -0x1.5f23ce0000000p-6f, -0x1.fd86dc0000000p-7f, -0x1.48bc080000000p-7f, -0x1.7aaa780000000p-8f, -0x1.b4a4a80000000p-9f, -0x1.b7d4240000000p-10f, -0x1.9cb5f80000000p-11f},
  {0x1.879c560000000p-11f, -0x1.867b460000000p-7f, -0x1.45d6e20000000p-6f, -0x1.77f2200000000p-6f, -0x1.4a78d20000000p-6f, -0x1.c881080000000p-7f, -0x1.8615300000000p-8f, 0x1.ca69140000000p-13f, 0x1.1e46760000000p-8f, 0x1.9290460000000p-8f, 0x1.86d7040000000p-8f, 0x1.39345e0000000p-8f, 0x1.ac7c580000000p-9f, 0x1.16f6720000000p-9f, 0x1.3b44420000000p-10f, 0x1.46b89a0000000p-11f},
  {-0x1.f99c7e0000000p-7f, -0x1.0fd3f20000000p-7f, -0x1.306a600000000p-8f, -0x1.4459580000000p-14f, 0x1.01431c0000000p-8f, 0x1.7e4b9e0000000p-8f, 0x1.7ee1100000000p-8f, 0x1.2194720000000p-8f, 0x1.3718740000000p-9f, 0x1.d73f700000000p-12f, -0x1.45f6b20000000p-11f, -0x1.24f6a60000000p-10f, -0x1.1fe4320000000p-10f, -0x1.cd9cc60000000p-11f, -0x1.34c4340000000p-11f, -0x1.6e122a0000000p-12f},
  {0x1.ec61460000000p-7f, 0x1.80cf700000000p-10f, 0x1.4733ea0000000p-9f, 0x1.b78d660000000p-9f, 0x1.24f5f40000000p-9f, 0x1.0182140000000p-10f, -0x1.4ce3780000000p-11f, -0x1.88d4740000000p-10f, -0x1.8ea6c80000000p-10f, -0x1.02a3e20000000p-10f, -0x1.2aced40000000p-11f, -0x1.d7d6360000000p-14f, 0x1.cad9400000000p-14f, 0x1.a7aac20000000p-13f, 0x1.7fbcde0000000p-13f, 0x1.1720fe0000000p-13f},
};
// exp(a^2 / 2) ndtr(-a), centres near 31 / 8 + k 45 / 64.
inline constexpr float kNdtrScaledPieces[7][16] = {
  {0x1.ef3a000000000p+1f, 0x1.245d000000000p+2f, 0x1.5182000000000p+2f, 0x1.7fc6000000000p+2f, 0x1.ab79000000000p+2f, 0x1.d91a000000000p+2f, 0x1.02f3000000000p+3f, 0x1.199b800000000p+3f, 0x1.300e000000000p+3f, 0x1.468f000000000p+3f, 0x1.5cce800000000p+3f, 0x1.73cb000000000p+3f, 0x1.8a58000000000p+3f, 0x1.a049000000000p+3f, 0x1.b6f7000000000p+3f, 0x1.cd22000000000p+3f},
  {0x1.8e78be0000000p-4f, 0x1.5694900000000p-4f, 0x1.2bbefa0000000p-4f, 0x1.097c2a0000000p-4f, 0x1.defe780000000p-5f, 0x1.b26c340000000p-5f, 0x1.8df5b40000000p-5f, 0x1.6ebfa60000000p-5f, 0x1.5443400000000p-5f, 0x1.3d425e0000000p-5f, 0x1.295c660000000p-5f, 0x1.173f540000000p-5f, 0x1.077cee0000000p-5f, 0x1.f3871c0000000p-6f, 0x1.d9fe480000000p-6f, 0x1.c36d380000000p-6f},
  {-0x1.71973c0000000p-6f, -0x1.1466b00000000p-6f, -0x1.aab6a40000000p-7f, -0x1.50c74c0000000p-7f, -0x1.133ce00000000p-7f, -0x1.c6536e0000000p-8f, -0x1.7e3ce60000000p-8f, -0x1.454c280000000p-8f, -0x1.1876e40000000p-8f, -0x1.e84bba0000000p-9f, -0x1.ad6dc60000000p-9f, -0x1.7b0ea40000000p-9f, -0x1.51bd000000000p-9f, -0x1.2fa9de0000000p-9f, -0x1.1190bc0000000p-9f, -0x1.f082100000000p-10f},
  {0x1.47e8420000000p-8f, 0x1.aeaf9a0000000p-9f, 0x1.27564c0000000p-9f, 0x1.a19aa40000000p-10f, 0x1.365d3a0000000p-10f, 0x1.d3a1d00000000p-11f, 0x1.6a2fe40000000p-11f, 0x1.1d2ed40000000p-11f, 0x1.c9ae980000000p-12f, 0x1.7471540000000p-12f, 0x1.33a5720000000p-12f, 0x1.fef6e40000000p-13f, 0x1.ae377e0000000p-13f, 0x1.6f1f000000000p-13f, 0x1.3a2c980000000p-13f, 0x1.0fc8f60000000p-13f},
  {-0x1.1768d40000000p-10f, -0x1.4501000000000p-11f, -0x1.8e555c0000000p-12f, -0x1.fada3e0000000p-13f, -0x1.57bd840000000p-13f, -0x1.da07fa0000000p-14f, -0x1.52c0720000000p-14f, -0x1.ee64c60000000p-15f, -0x1.71c6ba0000000p-15f, -0x1.19a4260000000p-15f, -0x1.b579e80000000p-16f, -0x1.560ed60000000p-16f, -0x1.1061860000000p-16f, -0x1.b952640000000p-17f, -0x1.671a260000000p-17f, -0x1.2834c60000000p-17f},
  {0x1.c4921c0000000p-13f, 0x1.debdc80000000p-14f, 0x1.0742ae0000000p-14f, 0x1.2e84ca0000000p-15f, 0x1.7730e20000000p-16f, 0x1.daa30a0000000p-17f, 0x1.39604a0000000p-17f, 0x1.a8929a0000000p-18f, 0x1.286b900000000p-18f, 0x1.a65bac0000000p-19f, 0x1.35722e0000000p-19f, 0x1.c6c14c0000000p-20f, 0x1.58d7a80000000p-20f, 0x1.08f7c40000000p-20f, 0x1.9870740000000p-21f, 0x1.4130780000000p-21f},
  {-0x1.26c5a80000000p-15f, -0x1.51f57e0000000p-16f, -0x1.4eea580000000p-17f, -0x1.644a1e0000000p-18f, -0x1.8b12780000000p-19f, -0x1.d9272a0000000p-20f, -0x1.17a87c0000000p-20f, -0x1.6fa2880000000p-21f, -0x1.d610080000000p-22f, -0x1.2ecc800000000p-22f, -0x1.8ba0640000000p-23f, -0x1.21965a0000000p-23f, -0x1.67b05e0000000p-24f, -0x1.6d82840000000p-24f, -0x1.32a07e0000000p-25f, -0x1.4280a20000000p-25f},
};
// clang-format on

using Lanes = __m512;
TP_MATH Lanes all(float x) { return _mm512_set1_ps(x); }

// The coefficients in registers. 'place' has the number of the piece in its last bits: what adding a rounder leaves there.
template <int kRows>
struct Pieces {
  Lanes row[kRows];
  explicit Pieces(const float (&table)[kRows][16]) {
    for (int k = 0; k < kRows; ++k) row[k] = _mm512_loadu_ps(table[k]);
  }
  inline __attribute__((always_inline)) Lanes at(int k, Lanes place) const {
    return _mm512_permutexvar_ps(_mm512_castps_si512(place), row[k]);
  }
  // The first row has the centres; the coefficients follow.
  inline __attribute__((always_inline)) Lanes centred(Lanes place, Lanes x) const {
    return _mm512_sub_ps(x, at(0, place));
  }
  inline __attribute__((always_inline)) Lanes value(Lanes place, Lanes u, int first = 1) const {
    Lanes sum = at(kRows - 1, place);
    for (int k = kRows - 2; k >= first; --k) sum = _mm512_fmadd_ps(sum, u, at(k, place));
    return sum;
  }
};

// Each F gives value(x), right where covers(x) has a bit, and elsewhere(x) for the rest. An element has the same bits
// whatever its neighbours are. n is any number; out may be x.
template <class F>
void each_piece(int64_t n, const float* x, float* out) {
  const F f;
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 lanes = n - i >= 16 ? __mmask16(0xffff) : __mmask16((1u << (n - i)) - 1);
    const Lanes v = _mm512_maskz_loadu_ps(lanes, x + i);
    Lanes value = f.value(v);
    const __mmask16 covered = f.covers(v);
    if (__builtin_expect(covered != 0xffff, 0)) value = _mm512_mask_blend_ps(covered, f.elsewhere(v), value);
    _mm512_mask_storeu_ps(out + i, lanes, value);
  }
}

template <bool kTimes>
struct NdtrPieces {
  static constexpr float kEnd = 3.875f;
  Pieces<8> pieces{kNdtrPieces};
  // From ndtr(-a), or a ndtr(-a). The zero that is the larger of two zeros is the second.
  static Lanes finish(Lanes x, Lanes below) {
    if (kTimes) return _mm512_sub_ps(_mm512_max_ps(all(-0.0f), x), below);
    return _mm512_mask_sub_ps(below, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GE_OQ), all(1.0f), below);
  }
  Lanes value(Lanes x) const {
    const Lanes a = _mm512_abs_ps(x), place = _mm512_add_ps(a, all(kRounderF / 4));
    const Lanes below = pieces.value(place, pieces.centred(place, a));
    return kTimes ? _mm512_fnmadd_ps(a, below, _mm512_max_ps(all(-0.0f), x)) : finish(x, below);
  }
  __mmask16 covers(Lanes x) const { return _mm512_cmp_ps_mask(_mm512_abs_ps(x), all(kEnd), _CMP_LT_OQ); }
  // (piece) exp(-a^2 / 2), where a joins before the power of two does, so that a subnormal result is rounded once. What the
  // square and the products lose joins the small terms.
  __attribute__((noinline)) Lanes elsewhere(Lanes x) const {
    const Pieces<7> scaled{kNdtrScaledPieces};
    const Lanes rounder = all(kRounderF), a = _mm512_max_ps(all(kEnd), _mm512_min_ps(all(14.5f), _mm512_abs_ps(x)));
    const Lanes place = _mm512_fmadd_ps(_mm512_sub_ps(a, all(kEnd)), all(64.0f / 45), rounder),
                u = scaled.centred(place, a);
    const Lanes main = scaled.at(1, place), rest = _mm512_mul_ps(scaled.value(place, u, 2), u);
    const Lanes s = _mm512_mul_ps(a, a), s_lost = _mm512_fmsub_ps(a, a, s), h = _mm512_mul_ps(s, all(-0.5f));
    const Lanes n = _mm512_sub_ps(_mm512_fmadd_ps(h, all(kLog2eF), rounder), rounder);
    const Lanes reduced = _mm512_fmadd_ps(n, all(-kLn2LoF), _mm512_fmadd_ps(n, all(-kLn2HiF), h));
    const Lanes r = _mm512_fmadd_ps(s_lost, all(-0.5f), reduced);
    alignas(64) float t[16];
    _mm512_store_ps(t, r);
    for (int i = 0; i < 16; ++i) t[i] = TP_FMA(t[i] * t[i], expm1_tail(t[i]), t[i]);
    const Lanes p = _mm512_load_ps(t), factor = kTimes ? a : all(1.0f), q = _mm512_mul_ps(main, factor);
    const Lanes q_rest = _mm512_mul_ps(rest, factor);
    const Lanes lost = _mm512_add_ps(_mm512_fmsub_ps(main, factor, q), _mm512_fmadd_ps(q_rest, p, q_rest));
    const Lanes below = _mm512_scalef_ps(_mm512_add_ps(q, _mm512_fmadd_ps(q, p, lost)), n);
    const Lanes value = finish(x, below);
    // -inf times zero, as the product itself has it.
    const __mmask16 undefined = _mm512_cmp_ps_mask(x, all(-__builtin_inff()), _CMP_EQ_OQ);
    return kTimes ? _mm512_mask_mov_ps(value, undefined, all(__builtin_nanf(""))) : value;
  }
};

}  // namespace detail
}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
