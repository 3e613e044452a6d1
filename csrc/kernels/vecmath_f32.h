#pragma once
#include "kernels/vecmath_base.h"
namespace tp {
namespace TP_ISA {
namespace m {
TP_MATH float exp(float x) { return ::expf(x); }
TP_MATH float exp2(float x) { return ::exp2f(x); }
TP_MATH float expm1(float x) { return ::expm1f(x); }
TP_MATH float log(float x) { return ::logf(x); }
TP_MATH float log2(float x) { return ::log2f(x); }
TP_MATH float log10(float x) { return ::log10f(x); }
TP_MATH float log1p(float x) { return ::log1pf(x); }
TP_MATH float sin(float x) { return ::sinf(x); }
TP_MATH float cos(float x) { return ::cosf(x); }
TP_MATH float tan(float x) { return ::tanf(x); }
TP_MATH float asin(float x) { return ::asinf(x); }
TP_MATH float acos(float x) { return ::acosf(x); }
TP_MATH float atan(float x) { return ::atanf(x); }
TP_MATH float sinh(float x) { return ::sinhf(x); }
TP_MATH float cosh(float x) { return ::coshf(x); }
TP_MATH float tanh(float x) { return ::tanhf(x); }
TP_MATH float asinh(float x) { return ::asinhf(x); }
TP_MATH float acosh(float x) { return ::acoshf(x); }
TP_MATH float atanh(float x) { return ::atanhf(x); }
TP_MATH float erf(float x) { return ::erff(x); }
TP_MATH float erfc(float x) { return ::erfcf(x); }
TP_MATH float pow(float x, float y) { return ::powf(x, y); }
TP_MATH float atan2(float x, float y) { return ::atan2f(x, y); }
TP_MATH float hypot(float x, float y) { return ::hypotf(x, y); }

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
