// Philox 4x32-10 in 16 lanes and the distributions made from it (Salmon et al. 2011). No fused operations and no functions
// of the vector maths: the numbers are the same bits under every instruction set.
#include "kernels/random_table.h"

#include "kernels/vecmath_base.h"

#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // raised inside the intrinsics' own header

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tp {
namespace TP_ISA {
namespace {

// Words lie in 64-bit lanes: the instruction that multiplies their low halves gives the whole product, and what is left in
// the high halves does not matter. Compilers turn the plain form into a slower full 64-bit product.
#if defined(__AVX512F__)
typedef unsigned long long Words __attribute__((vector_size(64)));
TP_MATH Words times(Words a, Words b) { return Words(_mm512_mul_epu32(__m512i(a), __m512i(b))); }
#elif defined(__AVX2__)
typedef unsigned long long Words __attribute__((vector_size(32)));
TP_MATH Words times(Words a, Words b) { return Words(_mm256_mul_epu32(__m256i(a), __m256i(b))); }
#elif defined(__SSE2__)
typedef unsigned long long Words __attribute__((vector_size(16)));
TP_MATH Words times(Words a, Words b) { return Words(_mm_mul_epu32(__m128i(a), __m128i(b))); }
#else
typedef unsigned long long Words __attribute__((vector_size(16)));
TP_MATH Words times(Words a, Words b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
#endif
constexpr int kPer = int(sizeof(Words) / 8);
typedef uint32_t Halves __attribute__((vector_size(sizeof(Words) / 2)));

// words[w * 16 + lane] = word w of block `block + lane`, one group of 16 blocks after the other. Several vectors at a time
// hide the latency of the products; more than registers hold would not.
template <int kGroups>
TP_MATH void groups(RandomStream s, uint32_t* __restrict words) {
  constexpr int kAtOnce = sizeof(Words) == 64 ? 2 * kGroups : 2;
  // A constant: numbers stored one by one and read as a vector would make every group wait for the one before.
  alignas(64) static const unsigned long long lanes[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  Words lane;
  __builtin_memcpy(&lane, lanes, sizeof lane);
  for (int first = 0; first < 16 * kGroups; first += kAtOnce * kPer) {
    Words c0[kAtOnce], c1[kAtOnce], c2[kAtOnce], c3[kAtOnce];
    for (int v = 0; v < kAtOnce; ++v) {
      c0[v] = lane + (s.block + uint64_t(first + v * kPer));
      c1[v] = c0[v] >> 32;
      c2[v] = c3[v] = Words{};
    }
    uint32_t k0 = uint32_t(s.seed), k1 = uint32_t(s.seed >> 32);
#pragma GCC unroll 10
    for (int r = 0; r < 10; ++r) {
      for (int v = 0; v < kAtOnce; ++v) {
        const Words p0 = times(c0[v], Words{} + 0xD2511F53u), p1 = times(c2[v], Words{} + 0xCD9E8D57u);
        c0[v] = (p1 >> 32) ^ c1[v] ^ (Words{} + k0);
        c2[v] = (p0 >> 32) ^ c3[v] ^ (Words{} + k1);
        c1[v] = p1;
        c3[v] = p0;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int v = 0; v < kAtOnce; ++v) {
      const Words all[4] = {c0[v], c1[v], c2[v], c3[v]};
      const int block = first + v * kPer;
      for (int w = 0; w < 4; ++w) {
        const Halves low = __builtin_convertvector(all[w], Halves);
        __builtin_memcpy(words + block / 16 * kRandomWords + w * 16 + block % 16, &low, sizeof(low));
      }
    }
  }
}

// Calls make(words, values) group by group; the last, partial group is copied.
template <class T, int N, class Make>
TP_MATH void fill(RandomStream s, int64_t n, T* out, Make make) {
  uint32_t words[2 * kRandomWords];
  int64_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    groups<2>(s, words);
    make(words, out + i);
    make(words + kRandomWords, out + i + N);
    s.block += 2 * kRandomBlocks;
  }
  for (; i < n; i += N) {
    T values[N];
    groups<1>(s, words);
    make(words, values);
    s.block += kRandomBlocks;
    for (int64_t j = 0; j < N && i + j < n; ++j) out[i + j] = values[j];
  }
}

TP_MATH uint64_t pair(const uint32_t* words, int first, int j) {
  return uint64_t(words[first * 16 + j]) << 32 | words[(first + 1) * 16 + j];
}

// ---- the few functions, of plain operations in a fixed order ---------------------------------------------------------

// log of a normal number in (0, 1]: mantissa near one, then the series of atanh.
TP_MATH float log_unit(float x) {
  const uint32_t bits = m::detail::to_bits(x);
  const int32_t e = int32_t(bits - 0x3f3504f3u) >> 23;  // sqrt(1/2) starts a binade
  const float f = m::detail::from_bits(bits - (uint32_t(e) << 23)) - 1.0f;
  const float s = f / (2.0f + f), z = s * s;
  const float p = ((0x1.c71c72p-3f * z + 0x1.24924ap-2f) * z + 0x1.99999ap-2f) * z + 0x1.555556p-1f;
  return float(e) * 0x1.62e4p-1f + (2.0f * s + (s * z * p + float(e) * 0x1.7f7d1cp-20f));
}
TP_MATH double log_unit(double x) {
  const uint64_t bits = m::detail::to_bits(x);
  // The exponent is small: doing this part in 32 bits lets sets without a 64-bit conversion vectorise.
  const int32_t e = int32_t(uint32_t(bits >> 32) - 0x3fe6a09eu) >> 20;
  const double f = m::detail::from_bits(bits - (uint64_t(int64_t(e)) << 52)) - 1.0;
  const double s = f / (2.0 + f), z = s * s;
  double p = 2.0 / 21;
  p = p * z + 2.0 / 19;
  p = p * z + 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  p = p * z + 2.0 / 5;
  p = p * z + 2.0 / 3;
  return double(e) * 0x1.62e42fee00000p-1 + (2.0 * s + (s * z * p + double(e) * 0x1.a39ef35793c76p-33));
}

// sine and cosine of 2 pi turns, |turns| <= 1/8, then moved by `quarter` right angles.
template <class T>
TP_MATH void turn(T turns, uint32_t quarter, T* sine, T* cosine) {
  const T a = turns * T(6.283185307179586476925286766559), z = a * a;
  T s, c;
  if constexpr (sizeof(T) == 4) {
    s = ((T(1.0 / 362880) * z - T(1.0 / 5040)) * z + T(1.0 / 120)) * z - T(1.0 / 6);
    c = (((T(-1.0 / 3628800) * z + T(1.0 / 40320)) * z - T(1.0 / 720)) * z + T(1.0 / 24)) * z - T(0.5);
  } else {
    s = T(1.0 / 355687428096000);
    s = s * z - T(1.0 / 1307674368000);
    s = s * z + T(1.0 / 6227020800);
    s = s * z - T(1.0 / 39916800);
    s = s * z + T(1.0 / 362880);
    s = s * z - T(1.0 / 5040);
    s = s * z + T(1.0 / 120);
    s = s * z - T(1.0 / 6);
    c = T(1.0 / 20922789888000);
    c = c * z - T(1.0 / 87178291200);
    c = c * z + T(1.0 / 479001600);
    c = c * z - T(1.0 / 3628800);
    c = c * z + T(1.0 / 40320);
    c = c * z - T(1.0 / 720);
    c = c * z + T(1.0 / 24);
    c = c * z - T(0.5);
  }
  const T sn = a + a * z * s, cs = T(1) + z * c;
  const bool swap = (quarter & 1) != 0;
  const T first = swap ? cs : sn, second = swap ? sn : cs;
  *sine = (quarter & 2) != 0 ? -first : first;
  *cosine = ((quarter + 1) & 2) != 0 ? -second : second;
}

// A unit number in (0, 1] that reaches down to 2^-32: the tail of the normal depends on the smallest one.
TP_MATH float open_unit(uint32_t w) { return (float(int32_t(w >> 1)) + 0.5f) * 0x1p-31f; }
TP_MATH double open_unit(uint64_t w) { return (double(int64_t(w >> 11)) + 0.5) * 0x1p-53; }

// ---- fills -----------------------------------------------------------------------------------------------------------

void bits32(RandomStream s, int64_t n, uint32_t* out) {
  fill<uint32_t, 64>(s, n, out, [](const uint32_t* w, uint32_t* to) {
    for (int j = 0; j < 64; ++j) to[j] = w[j];
  });
}
void bits64(RandomStream s, int64_t n, uint64_t* out) {
  fill<uint64_t, 32>(s, n, out, [](const uint32_t* w, uint64_t* to) {
    for (int j = 0; j < 16; ++j) to[j] = pair(w, 0, j);
    for (int j = 0; j < 16; ++j) to[16 + j] = pair(w, 2, j);
  });
}
void uniform_f32(RandomStream s, int64_t n, int bits, float low, float width, float* out) {
  const int shift = 32 - bits;
  const float unit = m::detail::from_bits(uint32_t(127 - bits) << 23);
  fill<float, 64>(s, n, out, [=](const uint32_t* w, float* to) {
    for (int j = 0; j < 64; ++j) to[j] = low + width * (float(int32_t(w[j] >> shift)) * unit);
  });
}
void uniform_f64(RandomStream s, int64_t n, double low, double width, double* out) {
  fill<double, 32>(s, n, out, [=](const uint32_t* w, double* to) {
    for (int j = 0; j < 16; ++j) to[j] = low + width * (double(int64_t(pair(w, 0, j) >> 11)) * 0x1p-53);
    for (int j = 0; j < 16; ++j) to[16 + j] = low + width * (double(int64_t(pair(w, 2, j) >> 11)) * 0x1p-53);
  });
}

// Box and Muller: two independent normals from a radius and an angle.
TP_MATH void normal_pair(uint32_t w0, uint32_t w1, float* a, float* b) {
  const float radius = m::sqrt(-2.0f * log_unit(open_unit(w0)));
  const uint32_t quarter = (w1 + 0x20000000u) >> 30;
  float s, c;
  turn(float(int32_t(w1 - (quarter << 30))) * 0x1p-32f, quarter, &s, &c);
  *a = radius * c;
  *b = radius * s;
}
void normal_f32(RandomStream s, int64_t n, float mean, float deviation, float* out) {
  fill<float, 64>(s, n, out, [=](const uint32_t* __restrict w, float* __restrict to) {
    for (int j = 0; j < 16; ++j) {
      float a, b;
      normal_pair(w[j], w[16 + j], &a, &b);
      to[j] = mean + deviation * a;
      to[16 + j] = mean + deviation * b;
    }
    for (int j = 0; j < 16; ++j) {
      float a, b;
      normal_pair(w[32 + j], w[48 + j], &a, &b);
      to[32 + j] = mean + deviation * a;
      to[48 + j] = mean + deviation * b;
    }
  });
}
void normal_f64(RandomStream s, int64_t n, double mean, double deviation, double* out) {
  fill<double, 32>(s, n, out, [=](const uint32_t* __restrict w, double* __restrict to) {
    for (int j = 0; j < 16; ++j) {
      const double radius = m::sqrt(-2.0 * log_unit(open_unit(pair(w, 0, j))));
      const uint64_t angle = pair(w, 2, j), quarter = (angle + (uint64_t(1) << 61)) >> 62;
      double sine, cosine;
      turn(double(int64_t(angle - (quarter << 62))) * 0x1p-64, uint32_t(quarter), &sine, &cosine);
      to[j] = mean + deviation * (radius * cosine);
      to[16 + j] = mean + deviation * (radius * sine);
    }
  });
}
void exponential_f32(RandomStream s, int64_t n, float scale, float* out) {
  fill<float, 64>(s, n, out, [=](const uint32_t* w, float* to) {
    for (int j = 0; j < 64; ++j) to[j] = scale * -log_unit(open_unit(w[j]));
  });
}
void exponential_f64(RandomStream s, int64_t n, double scale, double* out) {
  fill<double, 32>(s, n, out, [=](const uint32_t* w, double* to) {
    for (int j = 0; j < 16; ++j) to[j] = scale * -log_unit(open_unit(pair(w, 0, j)));
    for (int j = 0; j < 16; ++j) to[16 + j] = scale * -log_unit(open_unit(pair(w, 2, j)));
  });
}
void small_int(RandomStream s, int64_t n, int64_t low, uint32_t range, int64_t* out) {
  fill<int64_t, 64>(s, n, out, [=](const uint32_t* w, int64_t* to) {
    for (int j = 0; j < 64; ++j) to[j] = low + int64_t(uint64_t(w[j]) * range >> 32);
  });
}
void mask(RandomStream s, int64_t n, uint64_t threshold, uint8_t* out) {
  const bool none = threshold > 0xffffffffu;
  const uint32_t t = uint32_t(threshold);
  fill<uint8_t, 64>(s, n, out, [=](const uint32_t* w, uint8_t* to) {
    for (int j = 0; j < 64; ++j) to[j] = !none & (w[j] >= t);
  });
}

// Dropped elements become 0 even where the input is not finite.
template <class T>
void dropout(RandomStream s, int64_t n, uint64_t threshold, T scale, const T* x, T* out, uint8_t* keep) {
  mask(s, n, threshold, keep);
  const T* __restrict from = x;
  T* __restrict to = out;
  const uint8_t* __restrict k = keep;
  for (int64_t i = 0; i < n; ++i) {
    const T v = from[i] * scale;
    to[i] = k[i] ? v : T(0);
  }
}

}  // namespace

extern const RandomTable random_table;
const RandomTable random_table = {bits32,     bits64,     uniform_f32,     uniform_f64,
                                  normal_f32, normal_f64, exponential_f32, exponential_f64,
                                  small_int,  mask,       dropout<float>,  dropout<double>};

}  // namespace TP_ISA
}  // namespace tp
