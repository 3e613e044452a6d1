// Loops of the longer special functions, compiled per instruction set.
#include "kernels/special_table.h"

#include "kernels/vecmath_cylinder.h"
#include "kernels/vecmath_gamma.h"
#include "kernels/vecmath_rare.h"
#include "kernels/vecmath_special.h"
#if defined(__AVX512F__) && !defined(TP_SCALAR_LOOPS)
#include "kernels/vecmath_pieces.h"
#define TP_PIECES(...) m::detail::each_piece<m::detail::__VA_ARGS__>
#else
#define TP_PIECES(...) nullptr
#endif

namespace tp {
namespace TP_ISA {
namespace {

#if defined(TP_SCALAR_LOOPS)
template <class T>
constexpr int64_t kLanes = 1;
#else
template <class T>
constexpr int64_t kLanes = 64 / sizeof(T);
#endif
constexpr int64_t kBlock = 256;

/// Whole steps, so that the compiler makes no remainders; the last elements fill a step with copies of the first of them.
template <class F, class T>
void each(int64_t n, const T* x, T* out) {
  const int64_t whole = n & -kLanes<T>;
#pragma GCC ivdep
  for (int64_t i = 0; i < whole; ++i) out[i] = T(F::value(x[i]));
  if (whole == n) return;
  T pad[kLanes<T>];
  for (int64_t j = 0; j < kLanes<T>; ++j) pad[j] = x[whole + j < n ? whole + j : whole];
  each<F>(kLanes<T>, pad, pad);
  for (int64_t i = whole; i < n; ++i) out[i] = pad[i - whole];
}

/// Where a block has arguments outside of F's domain, G takes all of it, and what that cannot do is done one by one.
template <class F, class G, class T>
void each_of(int64_t n, const T* x, T* out) {
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t count = n - from < kBlock ? n - from : kBlock;
    int outside = 0;
    for (int64_t i = from; i < from + count; ++i) outside |= F::outside(x[i]) ? 1 : 0;
    if (!outside) {
      each<F>(count, x + from, out + from);
      continue;
    }
    T values[kBlock];
    each<G>(count, x + from, values);
    for (int64_t i = 0; i < count; ++i) {
      const T v = x[from + i];
      out[from + i] = G::alone(v, values[i]) ? T(G::exact(v)) : values[i];
    }
  }
}

#define TP_VALUE(expression) \
  static inline __attribute__((always_inline)) double value(double x) { return expression; }

struct Lgamma {
  TP_VALUE(m::lgamma_fast(x))
  static bool alone(double x, double value) { return m::lgamma_cancels(x, value, false); }
  static double exact(double x) { return m::lgamma_exact(x); }
};
struct LgammaPositive {
  TP_VALUE(m::lgamma_positive(x))
  static bool outside(double x) { return x < 0; }
};
struct LgammaPositiveFloat {
  TP_VALUE(m::lgamma_positive_float(x))
  static bool outside(double x) { return x < 0; }
};
struct LgammaFloat {
  TP_VALUE(TP_EITHER(x < 0, m::lgamma_fast(x), m::lgamma_positive_float(x)))
  static bool alone(double x, double value) { return m::lgamma_cancels(x, value, true); }
  static double exact(double x) { return m::lgamma_exact(x); }
};

#define TP_LOOP(Name, expression) \
  struct Name {                   \
    TP_VALUE(expression)          \
  };
TP_LOOP(Digamma, m::digamma(x))
TP_LOOP(Trigamma, m::trigamma(x))
TP_LOOP(Erfinv, m::erfinv(x))
TP_LOOP(ErfinvFloat, m::erfinv_float(x))
TP_LOOP(Ndtri, m::ndtri(x))
TP_LOOP(Erfcx, m::erfcx(x))
TP_LOOP(LogNdtr, m::log_ndtr(x))
TP_LOOP(I0, m::i0(x))
TP_LOOP(I0e, m::i0e(x))
TP_LOOP(I1, m::i1(x))
TP_LOOP(I1e, m::i1e(x))
TP_LOOP(K0, (m::detail::bessel_k<0, false>(x)))
TP_LOOP(K1, (m::detail::bessel_k<1, false>(x)))
TP_LOOP(ScaledK0, (m::detail::bessel_k<0, true>(x)))
TP_LOOP(ScaledK1, (m::detail::bessel_k<1, true>(x)))

#define TP_WAVE(Name, function, near)                             \
  struct Name {                                                   \
    TP_VALUE(m::detail::function(x))                              \
    static bool outside(double x) { return !m::detail::near(x); } \
    static bool alone(double x, double) { return outside(x); }    \
    static double exact(double x) { return m::function(x); }      \
  };
TP_WAVE(J0, bessel_j0, wave_near)
TP_WAVE(J1, bessel_j1, wave_near)
TP_WAVE(Y0, bessel_y0, wave_near)
TP_WAVE(Y1, bessel_y1, wave_near)
TP_WAVE(SphericalJ0, spherical_bessel_j0, wave_near)
TP_WAVE(Airy, airy_ai, airy_near)

void through_float64(SpecialTable::Loop loop, int64_t n, const float* x, float* out) {
  double values[kBlock];
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t count = n - from < kBlock ? n - from : kBlock;
    for (int64_t i = 0; i < count; ++i) values[i] = x[from + i];
    loop(count, values, values);
    for (int64_t i = 0; i < count; ++i) out[from + i] = float(values[i]);
  }
}

}  // namespace

extern const SpecialTable special_table = {
    .lgamma = each_of<LgammaPositive, Lgamma>,
    .digamma = each<Digamma>,
    .trigamma = each<Trigamma>,
    .erfinv = each<Erfinv>,
    .ndtri = each<Ndtri>,
    .erfcx = each<Erfcx>,
    .log_ndtr = each<LogNdtr>,
    .i0 = each<I0>,
    .i0e = each<I0e>,
    .i1 = each<I1>,
    .i1e = each<I1e>,
    .bessel_j0 = each_of<J0, J0>,
    .bessel_j1 = each_of<J1, J1>,
    .bessel_y0 = each_of<Y0, Y0>,
    .bessel_y1 = each_of<Y1, Y1>,
    .modified_bessel_k0 = each<K0>,
    .modified_bessel_k1 = each<K1>,
    .scaled_modified_bessel_k0 = each<ScaledK0>,
    .scaled_modified_bessel_k1 = each<ScaledK1>,
    .spherical_bessel_j0 = each_of<SphericalJ0, SphericalJ0>,
    .airy_ai = each_of<Airy, Airy>,
    .lgamma_float = each_of<LgammaPositiveFloat, LgammaFloat>,
    .erfinv_float = each<ErfinvFloat>,
    .erfcx_float = each<Erfcx>,
    .log_ndtr_float = each<LogNdtr>,
    .i0_float = each<I0>,
    .i0e_float = each<I0e>,
    .i1_float = each<I1>,
    .i1e_float = each<I1e>,
    .ndtr_float = TP_PIECES(NdtrPieces<false>),
    .times_ndtr_float = TP_PIECES(NdtrPieces<true>),
    .through_float64 = through_float64,
};

}  // namespace TP_ISA
}  // namespace tp
