// The portable vector maths: scalar inline functions that the compiler turns into vector code when a plain loop calls
// them. Compiled once per instruction set: TP_ISA names the namespace, so no definition is shared between two of them.
//
// Rules of the group: at most 2 ulp unless the function says otherwise; NaN, infinities, signed zeros, subnormals and
// overflow edges as in C (Annex F); no dependence on neighbours, so a vector body and its scalar tail give the same
// bits; no templates of the standard library (a weak AVX-512 copy could be chosen for every processor).
#pragma once
#include "kernels/vecmath_base.h"
#include "kernels/vecmath_bessel.h"
#include "kernels/vecmath_complex.h"
#include "kernels/vecmath_f32.h"
#include "kernels/vecmath_f64.h"
#include "kernels/vecmath_gamma.h"
#include "kernels/vecmath_int.h"
#include "kernels/vecmath_pow.h"
#include "kernels/vecmath_special.h"
#include "kernels/vecmath_trig.h"
