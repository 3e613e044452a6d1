// Owns the two complex element types and their arithmetic. Knows no dtype tags, no kernels, no std::complex.
// Everything is forced inline: these operators are compiled into every instruction set, and an out-of-line copy
// of one of them could be the copy the linker keeps for all.
#pragma once

namespace tp {

#define TP_COMPLEX_INLINE __attribute__((always_inline)) constexpr

struct c128;

struct c64 {
  float re, im;
  TP_COMPLEX_INLINE explicit operator c128() const;
};

struct c128 {
  double re, im;
  TP_COMPLEX_INLINE explicit operator c64() const { return c64{float(re), float(im)}; }
};

TP_COMPLEX_INLINE c64::operator c128() const { return c128{re, im}; }

namespace complex_detail {
TP_COMPLEX_INLINE double magnitude(double x) { return x < 0 ? -x : x; }

// Smith's method: dividing by the larger part first keeps |c|^2 from overflowing or vanishing.
TP_COMPLEX_INLINE c128 divide(c128 a, c128 b) {
  // Near the top of the range the sums below may overflow where the quotient does not; a quarter of both divides alike.
  const bool huge = magnitude(a.re) >= 0x1p1021 || magnitude(a.im) >= 0x1p1021 || magnitude(b.re) >= 0x1p1021 ||
      magnitude(b.im) >= 0x1p1021;
  const double scale_down = huge ? 0.25 : 1.0;
  a = {a.re * scale_down, a.im * scale_down};
  b = {b.re * scale_down, b.im * scale_down};
  const double ar = magnitude(b.re), ai = magnitude(b.im);
  const bool real_is_larger = ar >= ai;
  const double large = real_is_larger ? b.re : b.im, small = real_is_larger ? b.im : b.re;
  // Division by zero gives infinities along the parts of a, as real division does.
  const double ratio = large == 0 ? 0.0 : small / large;
  const double scale = large + small * ratio;
  const double re = real_is_larger ? a.re + a.im * ratio : a.re * ratio + a.im;
  const double im = real_is_larger ? a.im - a.re * ratio : a.im * ratio - a.re;
  return {re / scale, im / scale};
}
}  // namespace complex_detail

// T: the complex type, R: its real type.
#define TP_COMPLEX_OPERATORS(T, R)                                                                           \
  TP_COMPLEX_INLINE T operator+(T a) { return a; }                                                           \
  TP_COMPLEX_INLINE T operator-(T a) { return {-a.re, -a.im}; }                                              \
  TP_COMPLEX_INLINE T operator+(T a, T b) { return {a.re + b.re, a.im + b.im}; }                             \
  TP_COMPLEX_INLINE T operator-(T a, T b) { return {a.re - b.re, a.im - b.im}; }                             \
  TP_COMPLEX_INLINE T operator*(T a, T b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; } \
  TP_COMPLEX_INLINE T operator/(T a, T b) { return T(complex_detail::divide(c128(a), c128(b))); }            \
  TP_COMPLEX_INLINE T operator+(T a, R b) { return {a.re + b, a.im}; }                                       \
  TP_COMPLEX_INLINE T operator-(T a, R b) { return {a.re - b, a.im}; }                                       \
  TP_COMPLEX_INLINE T operator*(T a, R b) { return {a.re * b, a.im * b}; }                                   \
  TP_COMPLEX_INLINE T operator/(T a, R b) { return {a.re / b, a.im / b}; }                                   \
  TP_COMPLEX_INLINE T operator+(R a, T b) { return {a + b.re, b.im}; }                                       \
  TP_COMPLEX_INLINE T operator-(R a, T b) { return {a - b.re, -b.im}; }                                      \
  TP_COMPLEX_INLINE T operator*(R a, T b) { return {a * b.re, a * b.im}; }                                   \
  TP_COMPLEX_INLINE T operator/(R a, T b) { return T{a, 0} / b; }                                            \
  TP_COMPLEX_INLINE T& operator+=(T& a, T b) { return a = a + b; }                                           \
  TP_COMPLEX_INLINE T& operator-=(T& a, T b) { return a = a - b; }                                           \
  TP_COMPLEX_INLINE T& operator*=(T& a, T b) { return a = a * b; }                                           \
  TP_COMPLEX_INLINE T& operator/=(T& a, T b) { return a = a / b; }                                           \
  TP_COMPLEX_INLINE bool operator==(T a, T b) { return a.re == b.re && a.im == b.im; }                       \
  TP_COMPLEX_INLINE bool operator!=(T a, T b) { return !(a == b); }                                          \
  TP_COMPLEX_INLINE bool operator==(T a, R b) { return a.re == b && a.im == 0; }                             \
  TP_COMPLEX_INLINE bool operator!=(T a, R b) { return !(a == b); }

TP_COMPLEX_OPERATORS(c64, float)
TP_COMPLEX_OPERATORS(c128, double)
#undef TP_COMPLEX_OPERATORS
#undef TP_COMPLEX_INLINE

}  // namespace tp
