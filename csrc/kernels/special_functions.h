// Scalar special functions in double that are too long to be inlined into loops. Known by the vector maths alone, which
// wraps them; all are thread-safe and raise nothing: outside the domain they are NaN.
#pragma once
#include "core/api.h"

namespace tp::special {

/// Airy function Ai and its derivative.
TP_API double airy_ai(double x);
TP_API double airy_ai_prime(double x);

/// Regularised lower and upper incomplete gamma functions of order a at x.
TP_API double igamma(double a, double x);
TP_API double igammac(double a, double x);

/// Inverse of the normal distribution function to 4 ulp, for what takes one value at a time.
TP_API double normal_quantile(double p);

/// Hurwitz zeta function, the sum of (k + q)^-s.
TP_API double zeta(double s, double q);

/// Derivatives in the first argument: of igamma in a, of its slope in x (any a), and of zeta in s; NaN from the 16th on.
TP_API double igamma_order(double a, double x, int order);
TP_API double gamma_density(double a, double x, int order);
TP_API double zeta_order(double s, double q, int order);

/// The k-th derivative in x of the n-th polynomial of a family; n is truncated, a negative one gives 0.
enum class Polynomials { ChebyshevT, ChebyshevU, ChebyshevV, ChebyshevW, HermiteH, HermiteHe, Laguerre, Legendre };
TP_API double polynomial(Polynomials family, double x, double n, double k);

}  // namespace tp::special
