// The portable vector maths: scalar inline functions that the compiler turns into vector code when a plain loop calls
// them. Compiled once per instruction set: TP_ISA names the namespace, so no definition is shared between two of them.
//
// Rules of the group: at most 2 ulp unless the function says otherwise; NaN, infinities, signed zeros, subnormals and
// overflow edges as in C (Annex F); no dependence on neighbours, so a vector body and its scalar tail give the same bits;
// no templates of the standard library (a weak AVX-512 copy could be chosen for every processor). tests/core/ulp measures.
//
// Flags a loop needs: -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off, never -ffast-math. A selection is written
// as one ternary between two values that are ready: computing inside its arms makes branches, which come back as masks.
//
// Every function works in a plain loop for every argument. These have block forms name_block(n, x, out) that look at the
// block first and are faster when no argument is huge:
//   sin cos tan      float32 |x| <= 2^17 (tan 2^20), float64 |x| <= 2^30 (2^20 without FMA): 3 to 6 times faster
// name_fast is the inner form, right only inside that range. float32 exp, log and ndtr have inner forms of the same bits
// for results that need no care at the ends; name_near(n, x) tells whether a whole block may take them, and the generator
// writes both loops.
//
// The longest (vecmath_block.h) have a block form that is compiled beside the loops, for its size. It is vector code also
// where name itself is not: for the few arguments that the C library or a scalar series has to take.
//
// Not vector code: polygamma beyond n = 1, fmod and what rests on it (remainder, floor_divide), division of large integers,
// gcd, complex functions, and sin, cos, tan without FMA.
//
//   vecmath_base.h     classification, selection, rounding, sign, remainders, powi
//   vecmath_f32.h      float32 exp and log families, tanh, sigmoid, erf, erfc
//   vecmath_f64.h      float64 exp and log families, hyperbolic functions, erf, erfc
//   vecmath_reduce.h   angles modulo pi/2          vecmath_trig.h     sin ... atan2, hypot, sinc
//   vecmath_pow.h      pow                         vecmath_special.h  logistic and normal helpers, erfinv, ndtri
//   vecmath_gamma.h    gamma family                vecmath_bessel.h   i0 i0e i1 i1e
//   vecmath_int.h      integers and bool           vecmath_complex.h  c64, c128
//   vecmath_cylinder.h Bessel J Y K, Airy          vecmath_block.h    block forms of the longest
//   vecmath_pieces.h   float32 loops of polynomials from registers, AVX-512
//   vecmath_rare.h     erfcx; scalar: Ai', incomplete gamma, zeta, orthogonal polynomials
#pragma once
#include "kernels/vecmath_base.h"
#include "kernels/vecmath_bessel.h"
#include "kernels/vecmath_block.h"
#include "kernels/vecmath_complex.h"
#include "kernels/vecmath_cylinder.h"
#include "kernels/vecmath_f32.h"
#include "kernels/vecmath_f64.h"
#include "kernels/vecmath_gamma.h"
#include "kernels/vecmath_int.h"
#include "kernels/vecmath_pow.h"
#include "kernels/vecmath_rare.h"
#include "kernels/vecmath_reduce.h"
#include "kernels/vecmath_special.h"
#include "kernels/vecmath_trig.h"
