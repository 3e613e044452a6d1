#pragma once
#include "kernels/vecmath_base.h"
namespace tp {
namespace TP_ISA {
namespace m {
TP_MATH double exp(double x) { return ::exp(x); }
TP_MATH double exp2(double x) { return ::exp2(x); }
TP_MATH double expm1(double x) { return ::expm1(x); }
TP_MATH double log(double x) { return ::log(x); }
TP_MATH double log2(double x) { return ::log2(x); }
TP_MATH double log10(double x) { return ::log10(x); }
TP_MATH double log1p(double x) { return ::log1p(x); }
TP_MATH double sin(double x) { return ::sin(x); }
TP_MATH double cos(double x) { return ::cos(x); }
TP_MATH double tan(double x) { return ::tan(x); }
TP_MATH double asin(double x) { return ::asin(x); }
TP_MATH double acos(double x) { return ::acos(x); }
TP_MATH double atan(double x) { return ::atan(x); }
TP_MATH double sinh(double x) { return ::sinh(x); }
TP_MATH double cosh(double x) { return ::cosh(x); }
TP_MATH double tanh(double x) { return ::tanh(x); }
TP_MATH double asinh(double x) { return ::asinh(x); }
TP_MATH double acosh(double x) { return ::acosh(x); }
TP_MATH double atanh(double x) { return ::atanh(x); }
TP_MATH double erf(double x) { return ::erf(x); }
TP_MATH double erfc(double x) { return ::erfc(x); }
TP_MATH double pow(double x, double y) { return ::pow(x, y); }
TP_MATH double atan2(double x, double y) { return ::atan2(x, y); }
TP_MATH double hypot(double x, double y) { return ::hypot(x, y); }

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
