// Fourier passes of one instruction set: butterflies of a fixed radix over planes of real and imaginary parts, in loops
// that the compiler turns into vector code. Only forward; the inverse exchanges the planes.
#include "kernels/fft_table.h"

#include "kernels/isa/vectors.h"

namespace tp {
namespace TP_ISA {
namespace {

using std::int64_t;

// cos and sin of 2 pi k / R for k = 0 ... (R - 1) / 2.
template <int R>
struct Roots;
template <>
struct Roots<3> {
  static constexpr double cos[] = {1, -0.5};
  static constexpr double sin[] = {0, 0.8660254037844386468};
};
template <>
struct Roots<5> {
  static constexpr double cos[] = {1, 0.30901699437494742410, -0.80901699437494742410};
  static constexpr double sin[] = {0, 0.95105651629515357212, 0.58778525229247312917};
};
template <>
struct Roots<7> {
  static constexpr double cos[] = {1, 0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624};
  static constexpr double sin[] = {0, 0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048};
};
template <>
struct Roots<11> {
  static constexpr double cos[] = {1,
                                   0.84125353283118116886,
                                   0.41541501300188642553,
                                   -0.14231483827328514044,
                                   -0.65486073394528506406,
                                   -0.95949297361449738989};
  static constexpr double sin[] = {0,
                                   0.54064081745559758211,
                                   0.90963199535451837141,
                                   0.98982144188093273238,
                                   0.75574957435425828377,
                                   0.28173255684142969771};
};
template <>
struct Roots<13> {
  static constexpr double cos[] = {1,
                                   0.88545602565320989590,
                                   0.56806474673115580251,
                                   0.12053668025532305335,
                                   -0.35460488704253562597,
                                   -0.74851074817110109863,
                                   -0.97094181742605202716};
  static constexpr double sin[] = {0,
                                   0.46472317204376854566,
                                   0.82298386589365639458,
                                   0.99270887409805399280,
                                   0.93501624268541482344,
                                   0.66312265824079520238,
                                   0.23931566428755776715};
};

template <int R, class T>
TP_FORCE void butterfly(T (&r)[R], T (&i)[R]) {
  if constexpr (R == 2) {
    const T tr = r[0] - r[1], ti = i[0] - i[1];
    r[0] += r[1];
    i[0] += i[1];
    r[1] = tr;
    i[1] = ti;
  } else if constexpr (R == 4) {
    const T ar = r[0] + r[2], ai = i[0] + i[2], br = r[0] - r[2], bi = i[0] - i[2];
    const T cr = r[1] + r[3], ci = i[1] + i[3], dr = r[1] - r[3], di = i[1] - i[3];
    r[0] = ar + cr;
    i[0] = ai + ci;
    r[2] = ar - cr;
    i[2] = ai - ci;
    r[1] = br + di;
    i[1] = bi - dr;
    r[3] = br - di;
    i[3] = bi + dr;
  } else if constexpr (R == 8) {
    T er[4] = {r[0], r[2], r[4], r[6]}, ei[4] = {i[0], i[2], i[4], i[6]};
    T odd_r[4] = {r[1], r[3], r[5], r[7]}, odd_i[4] = {i[1], i[3], i[5], i[7]};
    butterfly<4>(er, ei);
    butterfly<4>(odd_r, odd_i);
    constexpr T h = T(0.70710678118654752440);
    const T fr[4] = {odd_r[0], h * (odd_r[1] + odd_i[1]), odd_i[2], h * (odd_i[3] - odd_r[3])};
    const T fi[4] = {odd_i[0], h * (odd_i[1] - odd_r[1]), -odd_r[2], -h * (odd_r[3] + odd_i[3])};
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      r[k] = er[k] + fr[k];
      i[k] = ei[k] + fi[k];
      r[k + 4] = er[k] - fr[k];
      i[k + 4] = ei[k] - fi[k];
    }
  } else {
    constexpr int H = (R - 1) / 2;
    T sr[H + 1], si[H + 1], dr[H + 1], di[H + 1];
    T zr = r[0], zi = i[0];
#pragma GCC unroll 8
    for (int k = 1; k <= H; ++k) {
      sr[k] = r[k] + r[R - k];
      si[k] = i[k] + i[R - k];
      dr[k] = r[k] - r[R - k];
      di[k] = i[k] - i[R - k];
      zr += sr[k];
      zi += si[k];
    }
#pragma GCC unroll 8
    for (int j = 1; j <= H; ++j) {
      T cr = r[0], ci = i[0], tr = 0, ti = 0;
#pragma GCC unroll 8
      for (int k = 1; k <= H; ++k) {
        const int jk = j * k % R, at = jk <= H ? jk : R - jk;
        const T c = T(Roots<R>::cos[at]), s = T(jk <= H ? Roots<R>::sin[at] : -Roots<R>::sin[at]);
        cr += sr[k] * c;
        ci += si[k] * c;
        tr += di[k] * s;
        ti += dr[k] * s;
      }
      r[j] = cr + tr;
      i[j] = ci - ti;
      r[R - j] = cr - tr;
      i[R - j] = ci + ti;
      // r[0] and i[0] are read by every j; rows 1 ... R - 1 are not read again.
    }
    r[0] = zr;
    i[0] = zi;
  }
}

template <int R, class T>
void pass(int64_t m, int64_t s, const T* __restrict xr, const T* __restrict xi, T* __restrict yr, T* __restrict yi,
          const T* __restrict w) {
  const T *wr = w, *wi = w + (R - 1) * m;
  if (s == 1) {
    for (int64_t p = 0; p < m; ++p) {
      T r[R], i[R];
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) {
        r[k] = xr[p + k * m];
        i[k] = xi[p + k * m];
      }
      butterfly<R>(r, i);
      yr[R * p] = r[0];
      yi[R * p] = i[0];
#pragma GCC unroll 16
      for (int j = 1; j < R; ++j) {
        const T c = wr[(j - 1) * m + p], d = wi[(j - 1) * m + p];
        yr[R * p + j] = r[j] * c - i[j] * d;
        yi[R * p + j] = r[j] * d + i[j] * c;
      }
    }
    return;
  }
  for (int64_t p = 0; p < m; ++p) {
    T c[R], d[R];
#pragma GCC unroll 16
    for (int j = 1; j < R; ++j) {
      c[j] = wr[(j - 1) * m + p];
      d[j] = wi[(j - 1) * m + p];
    }
    const T *ar = xr + p * s, *ai = xi + p * s;
    T *br = yr + R * p * s, *bi = yi + R * p * s;
    const int64_t step = m * s;
#pragma GCC ivdep
    for (int64_t q = 0; q < s; ++q) {
      T r[R], i[R];
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) {
        r[k] = ar[q + k * step];
        i[k] = ai[q + k * step];
      }
      butterfly<R>(r, i);
      br[q] = r[0];
      bi[q] = i[0];
#pragma GCC unroll 16
      for (int j = 1; j < R; ++j) {
        br[q + j * s] = r[j] * c[j] - i[j] * d[j];
        bi[q + j * s] = r[j] * d[j] + i[j] * c[j];
      }
    }
  }
}

// ---- ends --------------------------------------------------------------------------------------------------------

// Of c * x - d * y beside d * x + c * y some compilers make one fused instruction, though told not to: its last bit would
// differ from that of other instruction sets.
#pragma GCC push_options
#pragma GCC optimize("no-tree-slp-vectorize")

template <class T>
void split(int64_t n, const T* __restrict pairs, T* __restrict re, T* __restrict im) {
  for (int64_t i = 0; i < n; ++i) {
    re[i] = pairs[2 * i];
    im[i] = pairs[2 * i + 1];
  }
}
template <class T>
void pair(int64_t n, const T* __restrict re, const T* __restrict im, T* __restrict pairs, T scale) {
  for (int64_t i = 0; i < n; ++i) {
    pairs[2 * i] = re[i] * scale;
    pairs[2 * i + 1] = im[i] * scale;
  }
}

template <class T, bool whole>
TP_FORCE void spectrum_rows(int64_t h, int64_t s, const T* __restrict re, const T* __restrict im,
                            const T* __restrict roots, T scale, T turn, T* __restrict pairs) {
  const int64_t n = 2 * h, row = 2 * s;
  for (int64_t q = 0; q < s; ++q) {
    pairs[2 * q] = (re[q] + im[q]) * scale;
    pairs[h * row + 2 * q] = (re[q] - im[q]) * scale;
    pairs[2 * q + 1] = pairs[h * row + 2 * q + 1] = T(0) * turn;
  }
  for (int64_t k = 1; 2 * k <= h; ++k) {
    const int64_t other = h - k;
    const T c = roots[2 * k], d = roots[2 * k + 1];
    const T *xr = re + k * s, *xi = im + k * s, *yr = re + other * s, *yi = im + other * s;
    // Where both are the same row its second values are written first, and stay the first's.
    T *low = pairs + k * row, *high = pairs + other * row;
    T *low_mirror = pairs + (n - k) * row, *high_mirror = pairs + (n - other) * row;
    const bool two = other != k;
#pragma GCC ivdep
    for (int64_t q = 0; q < s; ++q) {
      const T er = T(0.5) * (xr[q] + yr[q]), ei = T(0.5) * (xi[q] - yi[q]);  // the even samples' spectrum
      const T dr = T(0.5) * (xi[q] + yi[q]), di = T(0.5) * (yr[q] - xr[q]);  // the odd samples'
      const T tr = dr * c - di * d, ti = dr * d + di * c;
      const T ar = (er + tr) * scale, ai = ei + ti;
      const T br = two ? (er - tr) * scale : ar, bi = two ? ti - ei : ai;
      low[2 * q] = ar;
      low[2 * q + 1] = ai * turn;
      high[2 * q] = br;
      high[2 * q + 1] = bi * turn;
      if constexpr (whole) {
        low_mirror[2 * q] = ar;
        low_mirror[2 * q + 1] = -ai * turn;
        high_mirror[2 * q] = br;
        high_mirror[2 * q + 1] = -bi * turn;
      }
    }
  }
}
template <class T>
void spectrum(int64_t h, int64_t s, const T* re, const T* im, const T* roots, T scale, T turn, bool whole, T* pairs) {
  if (whole)
    spectrum_rows<T, true>(h, s, re, im, roots, scale, turn, pairs);
  else
    spectrum_rows<T, false>(h, s, re, im, roots, scale, turn, pairs);
}

template <class T>
void turn(int64_t n, int64_t s, const T* xr, const T* xi, const T* c, const T* d, T* yr, T* yi) {
  for (int64_t k = 0; k < n; ++k)
#pragma GCC ivdep
    for (int64_t q = k * s; q < (k + 1) * s; ++q) {
      const T x = xr[q], y = xi[q];
      yr[q] = x * c[k] - y * d[k];
      yi[q] = x * d[k] + y * c[k];
    }
}

template <class T>
void halves(int64_t h, int64_t s, const T* __restrict pairs, const T* __restrict roots, T turn, T* __restrict re,
            T* __restrict im) {
  const int64_t row = 2 * s;
  for (int64_t q = 0; q < s; ++q) {
    const T zero = pairs[2 * q], last = pairs[h * row + 2 * q];
    re[q] = zero + last;
    im[q] = zero - last;
  }
  for (int64_t k = 1; 2 * k <= h; ++k) {
    const int64_t other = h - k;
    const T *a = pairs + k * row, *b = pairs + other * row;
    const T c = roots[2 * k], d = -roots[2 * k + 1];
    T *xr = re + k * s, *xi = im + k * s, *yr = re + other * s, *yi = im + other * s;
    const bool two = other != k;
#pragma GCC ivdep
    for (int64_t q = 0; q < s; ++q) {
      const T ai = a[2 * q + 1] * turn, bi = b[2 * q + 1] * turn;
      const T er = a[2 * q] + b[2 * q], ei = ai - bi, dr = a[2 * q] - b[2 * q], di = ai + bi;
      // i exp(2 pi i k / n) (a - conj b)
      const T tr = dr * c - di * d, ti = dr * d + di * c;
      const T ar = er - ti, bi_ = ei + tr;
      xr[q] = ar;
      xi[q] = bi_;
      yr[q] = two ? er + ti : ar;
      yi[q] = two ? tr - ei : bi_;
    }
  }
}

template <class T>
constexpr FftEnds<T> ends() {
  return {split<T>, pair<T>, spectrum<T>, turn<T>, halves<T>};
}
#pragma GCC pop_options

}  // namespace

extern const FftTable fft_table = {{pass<8, float>, pass<4, float>, pass<2, float>, pass<3, float>, pass<5, float>,
                                    pass<7, float>, pass<11, float>, pass<13, float>},
                                   {pass<8, double>, pass<4, double>, pass<2, double>, pass<3, double>, pass<5, double>,
                                    pass<7, double>, pass<11, double>, pass<13, double>},
                                   ends<float>(),
                                   ends<double>()};

}  // namespace TP_ISA
}  // namespace tp
