// Derivatives of special functions in their order or exponent, of any number: sums and continued fractions run over
// truncated power series in that parameter instead of numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "kernels/euler_maclaurin.h"
#include "kernels/special_functions.h"

namespace tp::special {
namespace {

using Wide = long double;  // more digits than double where there are any, so that the sums cancel unseen
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kMost = 16;  // coefficients: derivatives up to the 15th
constexpr double kNear = 20;

/// A power series in t, cut behind t^last.
struct Series {
  int last;
  std::array<Wide, kMost> c{};

  explicit Series(int last, Wide first = 0, Wide second = 0) : last(last) {
    c[0] = first;
    if (last > 0) c[1] = second;
  }
  Wide& operator[](int i) { return c[std::size_t(i)]; }
  Wide operator[](int i) const { return c[std::size_t(i)]; }

  /// Product with b + t, and quotient by it.
  void times(Wide b) {
    for (int i = last; i > 0; --i) (*this)[i] = b * (*this)[i] + (*this)[i - 1];
    (*this)[0] *= b;
  }
  void over(Wide b) {
    (*this)[0] /= b;
    for (int i = 1; i <= last; ++i) (*this)[i] = ((*this)[i] - (*this)[i - 1]) / b;
  }
  void scale(Wide f) {
    for (int i = 0; i <= last; ++i) (*this)[i] *= f;
  }
  void add(const Series& o, Wide f = 1) {
    for (int i = 0; i <= last; ++i) (*this)[i] += f * o[i];
  }
  bool negligible(const Series& beside) const {
    for (int i = 0; i <= last; ++i)
      if (std::fabs((*this)[i]) > 1e-20L * std::fabs(beside[i])) return false;
    return true;
  }
  double derivative() const {
    Wide out = (*this)[last];
    for (int i = 2; i <= last; ++i) out *= i;
    return double(out);
  }
};

Series operator*(const Series& a, const Series& b) {
  Series out(a.last);
  for (int i = 0; i <= a.last; ++i)
    for (int j = 0; j <= i; ++j) out[i] += a[j] * b[i - j];
  return out;
}

Series reciprocal(const Series& a) {
  Series out(a.last, 1 / a[0]);
  for (int i = 1; i <= a.last; ++i) {
    for (int j = 1; j <= i; ++j) out[i] -= a[j] * out[i - j];
    out[i] /= a[0];
  }
  return out;
}

Series exp(const Series& a) {
  Series out(a.last, std::exp(a[0]));
  for (int i = 1; i <= a.last; ++i) {
    for (int j = 1; j <= i; ++j) out[i] += j * a[j] * out[i - j];
    out[i] /= i;
  }
  return out;
}

/// log(1 + m) - m without cancellation.
Wide log1p_less(Wide m) {
  if (std::fabs(m) > 0.3L) return std::log1p(m) - m;
  Wide sum = 0, power = m * m;
  for (int k = 2; k < 200 && power != 0; ++k, power *= m) {
    sum += (k % 2 ? power : -power) / k;
    if (std::fabs(power) < 1e-22L * std::fabs(sum)) break;
  }
  return sum;
}

/// x^z exp(-x) / Gamma(z + 1) at z = a + t for x > 0, by Stirling's series from where it converges.
Series gamma_factor(Wide a, Wide x, int last) {
  const Wide shift = a < kNear ? std::ceil(Wide(kNear) - a) : 0, z = a + shift;
  const Wide ratio = (x - z) / z;
  // z log(x / z) - (x - z), whose slope is log(x / z).
  Series power(last, z * log1p_less(ratio), std::log(x / z));
  Wide inverse = 1 / z, slope = inverse;  // derivatives of log z: (-1)^(i - 1) / (i z^i)
  for (int i = 2; i <= last; ++i, slope *= -inverse) power[i] = -slope / (Wide(i) * (i - 1));
  power[0] -= (std::log(z) + 1.83787706640934548356065947281123527972L) / 2;
  slope = inverse;
  for (int i = 1; i <= last; ++i, slope *= -inverse) power[i] -= slope / (2 * Wide(i));
  // Bernoulli numbers over 2 k (2 k - 1), beside z^(1 - 2 k).
  static constexpr Wide terms[] = {1.0L / 12,         -1.0L / 360,         1.0L / 1260,    -1.0L / 1680,
                                   1.0L / 1188,       -691.0L / 360360,    1.0L / 156,     -3617.0L / 122400,
                                   43867.0L / 244188, -174611.0L / 125400, 77683.0L / 5796};
  Wide odd = inverse;
  for (int k = 0; k < int(std::size(terms)); ++k, odd *= inverse * inverse) {
    Wide term = terms[k] * odd;
    for (int i = 0; i <= last; ++i) {
      power[i] -= term;
      term *= -Wide(2 * k + 1 + i) / (i + 1) * inverse;
    }
  }
  Series out = exp(power);
  // From z back to a: each step takes x / (a + i + t) away.
  for (Wide i = shift; i > 0; --i) {
    out.times(a + i);
    out.scale(1 / x);
  }
  return out;
}

/// The lower function over that factor: the sum of x^n / ((a + 1) ... (a + n)).
Series lower_sum(Wide a, Wide x, int last) {
  Series sum(last, 1), term(last, 1);
  for (Wide n = 1; n < 1e7L; ++n) {
    term.over(a + n);
    term.scale(x);
    sum.add(term);
    if (n > 2 && term.negligible(sum)) break;
  }
  return sum;
}

/// The upper function over a + t times that factor: Legendre's continued fraction (modified Lentz).
Series upper_fraction(Wide a, Wide x, int last) {
  Series b(last, x + 1 - a, -1), d = reciprocal(b), h = d, c(last, 1e300L);
  for (Wide i = 1; i < 1e6L; ++i) {
    const Series factor(last, -i * (i - a), i);
    b[0] += 2;
    d = factor * d;
    d.add(b);
    c = factor * reciprocal(c);
    c.add(b);
    d = reciprocal(d);
    const Series step = c * d;
    Series change = h * step;
    std::swap(h, change);
    change.add(h, -1);
    if (change.negligible(h)) break;
  }
  return h;
}

double alternating(int order) { return order % 2 ? -1 : 1; }

}  // namespace

double igamma_order(double a, double x, int order) {
  if (order == 0) return igamma(a, x);
  if (!(a >= 0) || !(x >= 0) || order < 0 || order >= kMost) return kNan;
  if (x == 0) return a == 0 ? kNan : 0;
  if (x == kInf || a == kInf) return a == x ? kNan : 0;
  Series out = gamma_factor(a, x, order);
  if (x < 1.5 || x < a + 1) return (out * lower_sum(a, x, order)).derivative();
  out.times(a);
  return -(out * upper_fraction(a, x, order)).derivative();
}

double gamma_density(double a, double x, int order) {
  constexpr double kLeast = -1e5;  // each whole number below zero is a step; derivatives of igamma go a few
  if (a != a || (a < kLeast && a != -kInf) || !(x >= 0) || order < 0 || order >= kMost) return kNan;
  if (x == 0) return a > 1 ? 0 : a == 1 && order == 0 ? 1 : a > 0 ? alternating(order) * kInf : kNan;
  if (x == kInf || std::fabs(a) == kInf) return std::fabs(a) == x ? kNan : a < 0 ? kNan : 0;
  Series out = gamma_factor(a, x, order);
  out.times(a);
  return out.derivative() / x;
}

double zeta_order(double s, double q, int order) {
  if (order == 0) return zeta(s, q);
  if (order == -1) return 0;  // what a product rule asks for, times 0
  if (!(s >= 1) || !(q > 0) || order < 0 || order >= kMost) return kNan;
  if (s == 1) return alternating(order) * kInf;
  if (s == kInf || q == kInf) return 0;
  const auto power = [&](Wide base) {  // base^-(s + t)
    return exp(Series(order, -Wide(s) * std::log(base), -std::log(base)));
  };
  Series sum(order);
  Wide a = q;
  for (int i = 0; i < 100000 && (i < 9 || a <= 10 + s / 8); ++i, a += 1) {
    const Series term = power(a);
    sum.add(term);
    if (i > 1 && term.negligible(sum)) return sum.derivative();
  }
  Series tail = power(a), whole = tail;
  whole.over(Wide(s) - 1);
  sum.add(whole, a);
  sum.add(tail, 0.5L);
  for (int k = 0; k < int(std::size(kEulerMaclaurin)); ++k) {
    tail.times(Wide(s) + 2 * k);
    tail.scale(1 / a);
    sum.add(tail, 1 / kEulerMaclaurin[k]);
    tail.times(Wide(s) + 2 * k + 1);
    tail.scale(1 / a);
  }
  return sum.derivative();
}

}  // namespace tp::special
