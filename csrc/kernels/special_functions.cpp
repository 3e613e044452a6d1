// Series, continued fractions and asymptotic forms of the rarer special functions.
#include "kernels/special_functions.h"

#include <cmath>
#include <iterator>
#include <limits>

#include "kernels/euler_maclaurin.h"

namespace tp::special {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;

// Bessel functions of order nu (0, 1/3, 2/3) in extended precision where there is one, so that the sums cancel unseen.
using Wide = long double;
constexpr Wide kWidePi = 3.14159265358979323846264338327950288L;

struct Pair {
  Wide first, second;
};

/// exp(x) K_nu(x) and exp(x) K_(nu + 1)(x) for x >= 2: Steed's second continued fraction (Thompson and Barnett 1987).
Pair scaled_k_far(Wide nu, Wide x) {
  Wide b = 2 * (1 + x), d = 1 / b, h = d, delta = d;
  Wide q1 = 0, q2 = 1, a1 = 0.25L - nu * nu, q = a1, c = a1, a = -a1, s = 1 + q * delta;
  for (int i = 2; i < 10000; ++i) {
    a -= 2 * (i - 1);
    c = -a * c / i;
    const Wide next = (q1 - b * q2) / a;
    q1 = q2;
    q2 = next;
    q += c * next;
    b += 2;
    d = 1 / (b + a * d);
    delta = (b * d - 1) * delta;
    h += delta;
    const Wide ds = q * delta;
    s += ds;
    if (std::fabs(ds / s) < 1e-20L) break;
  }
  h = a1 * h;
  const Wide k = std::sqrt(kWidePi / (2 * x)) / s;
  return {k, k * (nu + x + 0.5L - h) / x};
}

// Ai and its derivative at -10, -9, ... 2.
constexpr Pair kAiry[] = {
    {0.0402412384864431906894303L, 0.996265044132790055904573L},
    {-0.0221337215473414036741692L, -0.97566398092633159471266L},
    {-0.0527050503563862026220827L, 0.935560938198306551025522L},
    {0.184280835250505637279942L, -0.771008168410126547731252L},
    {-0.329145173629823105231449L, 0.345935487281342894929779L},
    {0.350761009024114319788016L, 0.327192818554443136794879L},
    {-0.0702655329492895150990843L, -0.790628575368581380296454L},
    {-0.378814293677658074347244L, 0.314583769216598813650787L},
    {0.227407428201685575991924L, 0.618259020741691041406264L},
    {0.535560883292352118799517L, -0.0101605671166452093950455L},
    {0.355028053887817239260063L, -0.258819403792806798405184L},
    {0.135292416312881415524147L, -0.1591474412967932127875L},
    {0.0349241304232743791353221L, -0.0530903844336536317039992L},
};

/// Taylor series around the nearest of them, from Ai'' = x Ai.
double airy_near(double x, bool slope) {
  const int centre = int(std::lround(x));
  const Wide c = centre, h = Wide(x) - c;
  Wide a0 = kAiry[centre + 10].first, a1 = kAiry[centre + 10].second, a2 = c * a0 / 2;
  Wide value = a0 + h * (a1 + h * a2), derivative = a1 + 2 * h * a2, power = h * h;
  for (int n = 1; n < 60; ++n) {
    const Wide a3 = (c * a1 + a0) / (Wide(n + 2) * (n + 1));
    derivative += (n + 2) * a3 * power;
    power *= h;
    value += a3 * power;
    a0 = a1;
    a1 = a2;
    a2 = a3;
  }
  return double(slope ? derivative : value);
}

/// Asymptotic series for x < 0 far out (DLMF 9.7.9, 9.7.10); z = -x.
double airy_wave(Wide z, bool slope) {
  const Wide zeta = z * std::sqrt(z) * 2 / 3;
  Wide even = 0, odd = 0, term = 1;
  for (int k = 0; k < 60; ++k) {
    // u_k / zeta^k, and v_k = u_k (6 k + 1) / (1 - 6 k) for the derivative.
    const Wide value = slope && k > 0 ? term * (6 * k + 1) / (1 - 6 * k) : term;
    (k % 2 ? odd : even) += k / 2 % 2 ? -value : value;
    const Wide next = term * (6 * k + 1) * (6 * k + 3) * Wide(6 * k + 5) / (216 * Wide(k + 1) * (2 * k + 1) * zeta);
    if (std::fabs(next) >= std::fabs(term) || std::fabs(next) < 1e-22L) break;
    term = next;
  }
  const Wide angle = zeta - kWidePi / 4, c = std::cos(angle), s = std::sin(angle), root = std::sqrt(std::sqrt(z));
  if (slope) return double(root * (s * even - c * odd) / std::sqrt(kWidePi));
  return double((c * even + s * odd) / (std::sqrt(kWidePi) * root));
}

double airy(double x, bool slope) {
  if (x != x) return x;
  if (x == kInf) return slope ? -0.0 : 0.0;
  if (x == -kInf) return slope ? kNan : 0.0;
  if (x < -10.4) return airy_wave(-Wide(x), slope);
  if (x < 2.4) return airy_near(x, slope);
  const Wide zeta = Wide(x) * std::sqrt(Wide(x)) * 2 / 3;
  if (zeta > 750) return slope ? -0.0 : 0.0;
  // Ai = sqrt(x / 3) K_1/3 / pi, Ai' = -x K_2/3 / (pi sqrt 3); both decay together.
  const Wide decay = std::exp(-zeta);
  if (!slope) return double(std::sqrt(Wide(x) / 3) * scaled_k_far(1 / Wide(3), zeta).first * decay / kWidePi);
  return double(-Wide(x) * scaled_k_far(2 / Wide(3), zeta).first * decay / (kWidePi * std::sqrt(Wide(3))));
}

// ---- incomplete gamma ------------------------------------------------------------------------------------------------

/// x^a exp(-x) / Gamma(a + 1), without the overflow or cancellation of its factors.
double gamma_factor(double a, double x) {
  if (a < 30) {
    const double direct = std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
    if (std::isfinite(direct) && direct > 1e-280) return direct;
    return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
  }
  // Stirling: exp(-a phi) / sqrt(2 pi a) over exp(1 / (12 a) - ...), phi = x / a - 1 - log(x / a).
  const double mu = (x - a) / a;
  double phi;
  if (std::fabs(mu) < 0.3) {
    // mu - log1p(mu) by its series, where the difference would cancel.
    const Wide m = (Wide(x) - a) / a;
    Wide sum = 0, power = m * m;
    for (int k = 2; k < 60; ++k) {
      sum += (k % 2 ? -power : power) / k;
      power *= m;
      if (std::fabs(power) < 1e-22L * std::fabs(sum)) break;
    }
    phi = double(sum);
  } else {
    phi = mu - std::log1p(mu);
  }
  const double r = 1 / a, r2 = r * r;
  const double stirling = r * (1. / 12 - r2 * (1. / 360 - r2 * (1. / 1260 - r2 * (1. / 1680))));
  return std::exp(-a * phi - stirling) / std::sqrt(2 * kPi * a);
}

/// Lower function by its power series, for x < a + 1 or so.
double igamma_series(double a, double x) {
  Wide sum = 1, term = 1;
  for (Wide k = 1; k < 1e6L; ++k) {
    term *= x / (a + k);
    sum += term;
    if (term < sum * 1e-17L) break;
  }
  return double(gamma_factor(a, x) * sum);
}

/// Upper function by Legendre's continued fraction (modified Lentz), for x > a + 1 or so.
double igammac_fraction(double a, double x) {
  // Products of hundreds of terms near 1 round in the wide type.
  Wide b = Wide(x) + 1 - a, c = 1e300L, d = 1 / b, h = d;
  for (Wide i = 1; i < 1e6L; ++i) {
    const Wide an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (std::fabs(d) < 1e-300L) d = 1e-300L;
    c = b + an / c;
    if (std::fabs(c) < 1e-300L) c = 1e-300L;
    d = 1 / d;
    const Wide delta = d * c;
    h *= delta;
    if (std::fabs(delta - 1) < 1e-16L) break;
  }
  return double(gamma_factor(a, x) * (a * h));
}

/// Upper function for small a and x, where 1 - P would cancel: 1 - x^a / Gamma(a + 1) (1 + sum).
double igammac_small(double a, double x) {
  Wide sum = 0, term = 1;
  for (int n = 1; n < 500; ++n) {
    term *= -Wide(x) / n;
    const Wide step = term / (a + n);
    sum += step;
    if (std::fabs(step) <= 1e-21L * std::fabs(sum)) break;
  }
  const Wide log_factor = a * std::log(Wide(x)) - std::lgamma(Wide(a) + 1);
  return double(-std::expm1(log_factor) - std::exp(log_factor) * a * sum);
}

// Whether a and x lie where neither form converges soon: the normal approximation of Temme, to first order, for huge a.
bool huge(double a, double x) { return a > 1e9 && std::fabs(x - a) < 0.3 * a; }
double igamma_huge(double a, double x, bool upper) {
  const double mu = (x - a) / a;
  double phi = 0, power = mu * mu;
  for (int k = 2; k < 60 && power != 0; ++k, power *= mu) phi += (k % 2 ? -power : power) / k;
  const double eta = std::copysign(std::sqrt(2 * phi), mu);
  const double first = std::fabs(eta) < 1e-4 ? -1. / 3 + eta / 12 : 1 / mu - 1 / eta;
  const double rest = std::exp(-a * phi) / std::sqrt(2 * kPi * a) * first;
  const double sign = upper ? 1 : -1;
  return 0.5 * std::erfc(sign * eta * std::sqrt(a / 2)) + sign * rest;
}

bool outside(double a, double x) { return !(a >= 0) || !(x >= 0) || (a == kInf && x == kInf); }

}  // namespace

double airy_ai(double x) { return airy(x, false); }
double airy_ai_prime(double x) { return airy(x, true); }

double igamma(double a, double x) {
  if (outside(a, x)) return kNan;
  if (a == 0) return x > 0 ? 1 : kNan;
  if (x == 0 || a == kInf) return 0;
  if (x == kInf) return 1;
  if (huge(a, x)) return igamma_huge(a, x, false);
  if (x > 1 && x > a) return 1 - igammac(a, x);
  return igamma_series(a, x);
}

double igammac(double a, double x) {
  if (outside(a, x)) return kNan;
  if (a == 0) return x > 0 ? 0 : kNan;
  if (x == 0 || a == kInf) return 1;
  if (x == kInf) return 0;
  if (huge(a, x)) return igamma_huge(a, x, true);
  if (x > 1.1) return x < a ? 1 - igamma_series(a, x) : igammac_fraction(a, x);
  const bool series = x <= 0.5 ? -0.4 / std::log(x) < a : x * 1.1 < a;
  return series ? 1 - igamma_series(a, x) : igammac_small(a, x);
}

// Wichura 1988, algorithm AS 241, to about 1e-16.
double normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0) return -kInf;
  if (p == 1) return kInf;
  const auto ratio = [](double r, const double (&a)[8], const double (&b)[8]) {
    double x = a[7], y = b[7];
    for (int i = 6; i >= 0; --i) {
      x = x * r + a[i];
      y = y * r + b[i];
    }
    return x / y;
  };
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    static constexpr double a[] = {3.3871328727963666080,    1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                   1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                   3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static constexpr double b[] = {1.0,
                                   4.2313330701600911252e+1,
                                   6.8718700749205790830e+2,
                                   5.3941960214247511077e+3,
                                   2.1213794301586595867e+4,
                                   3.9307895800092710610e+4,
                                   2.8729085735721942674e+4,
                                   5.2264952788528545610e+3};
    return q * ratio(0.180625 - q * q, a, b);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  double x;
  if (r <= 5) {
    static constexpr double a[] = {1.42343711074968357734,    4.63033784615654529590,   5.76949722146069140550,
                                   3.64784832476320460504,    1.27045825245236838258,   2.41780725177450611770e-1,
                                   2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static constexpr double b[] = {1.0,
                                   2.05319162663775882187,
                                   1.67638483018380384940,
                                   6.89767334985100004550e-1,
                                   1.48103976427480074590e-1,
                                   1.51986665636164571966e-2,
                                   5.47593808499534494600e-4,
                                   1.05075007164441684324e-9};
    x = ratio(r - 1.6, a, b);
  } else {
    static constexpr double a[] = {6.65790464350110377720,    5.46378491116411436990,    1.78482653991729133580,
                                   2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                   2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr double b[] = {1.0,
                                   5.99832206555887937690e-1,
                                   1.36929880922735805310e-1,
                                   1.48753612908506148525e-2,
                                   7.86869131145613259100e-4,
                                   1.84631831751005468180e-5,
                                   1.42151175831644588870e-7,
                                   2.04426310338993978564e-15};
    x = ratio(r - 5, a, b);
  }
  return q < 0 ? -x : x;
}

double zeta(double s, double q) {
  if (s != s || q != q) return kNan;
  if (s == 1) return kInf;
  if (s < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (s != std::floor(s)) return kNan;
  }
  if (q == kInf) return 0;
  // Terms one by one up to where the Euler-Maclaurin sum converges.
  Wide sum = 0, a = q;
  for (int i = 0; i < 100000 && (i < 9 || a <= 10 + s / 8); ++i, a += 1) {
    const Wide term = std::pow(a, -Wide(s));
    sum += term;
    if (a > 0 && std::fabs(term) < 1e-20L * std::fabs(sum)) return double(sum);
  }
  const Wide last = std::pow(a, -Wide(s));
  sum += last * a / (Wide(s) - 1) + last / 2;
  Wide factor = s, power = last / a;
  for (int k = 0; k < int(std::size(kEulerMaclaurin)); ++k) {
    const Wide term = factor * power / kEulerMaclaurin[k];
    sum += term;
    if (std::fabs(term) < 1e-21L * std::fabs(sum)) break;
    factor *= (Wide(s) + 2 * k + 1) * (Wide(s) + 2 * k + 2);
    power /= a * a;
  }
  return double(sum);
}

double polynomial(Polynomials family, double x, double n_, double k_) {
  constexpr int kMost = 16;
  if (x != x || n_ != n_ || !(k_ >= 0 && k_ <= kMost)) return kNan;
  const int k = int(k_);
  const double n = std::trunc(n_);
  if (n < 0 || n < k) return 0;
  if (n > 1e7) return kNan;
  // now and before: the derivatives of order 0 ... k of P_i and P_(i-1), P_(i+1) = (a x + b) P_i - c P_(i-1).
  double before[kMost + 1] = {}, now[kMost + 1] = {}, next[kMost + 1] = {};
  now[0] = 1;
  for (double i = 0; i < n; i += 1) {
    double a = 2, b = 0, c = 1;
    switch (family) {
      case Polynomials::ChebyshevT: a = i == 0 ? 1 : 2; break;
      case Polynomials::ChebyshevU: break;
      case Polynomials::ChebyshevV: b = i == 0 ? -1 : 0; break;
      case Polynomials::ChebyshevW: b = i == 0 ? 1 : 0; break;
      case Polynomials::HermiteH: c = 2 * i; break;
      case Polynomials::HermiteHe:
        a = 1;
        c = i;
        break;
      case Polynomials::Laguerre:
        a = -1 / (i + 1);
        b = (2 * i + 1) / (i + 1);
        c = i / (i + 1);
        break;
      case Polynomials::Legendre:
        a = (2 * i + 1) / (i + 1);
        c = i / (i + 1);
        break;
    }
    for (int j = 0; j <= k; ++j)
      next[j] = (a * x + b) * now[j] + (j ? j * a * now[j - 1] : 0.0) - (i == 0 ? 0.0 : c * before[j]);
    for (int j = 0; j <= k; ++j) {
      before[j] = now[j];
      now[j] = next[j];
    }
  }
  return now[k];
}

}  // namespace tp::special
