// The table of the loops over float64 elements of the longer special functions, so that each is compiled once per
// instruction set. Knows no Storage and no threads.
#pragma once
#include <cstdint>

#include "core/api.h"
#include "kernels/isa_table.h"

namespace tp {

/// All of them, and those that have a loop over float32 elements too: a shorter form, or twice as many elements at a time.
#define TP_SPECIAL_LOOPS(X)    \
  X(lgamma)                    \
  X(digamma)                   \
  X(trigamma)                  \
  X(erfinv)                    \
  X(ndtri)                     \
  X(erfcx)                     \
  X(log_ndtr)                  \
  X(i0)                        \
  X(i0e)                       \
  X(i1)                        \
  X(i1e)                       \
  X(bessel_j0)                 \
  X(bessel_j1)                 \
  X(bessel_y0)                 \
  X(bessel_y1)                 \
  X(modified_bessel_k0)        \
  X(modified_bessel_k1)        \
  X(scaled_modified_bessel_k0) \
  X(scaled_modified_bessel_k1) \
  X(spherical_bessel_j0)       \
  X(airy_ai)
#define TP_SPECIAL_LOOPS_FLOAT(X) \
  X(lgamma)                       \
  X(erfinv)                       \
  X(erfcx)                        \
  X(log_ndtr)                     \
  X(i0)                           \
  X(i0e)                          \
  X(i1)                           \
  X(i1e)

/// Loops over float32 elements that only AVX-512 has (vecmath_pieces.h); the others leave them out.
#define TP_SPECIAL_LOOPS_PIECES(X) \
  X(ndtr)                          \
  X(times_ndtr)

struct SpecialTable {
  using Loop = void (*)(std::int64_t n, const double* x, double* out);  // out may be x
  using LoopFloat = void (*)(std::int64_t n, const float* x, float* out);
#define TP_SPECIAL_MEMBER(name) Loop name;
  TP_SPECIAL_LOOPS(TP_SPECIAL_MEMBER)
#undef TP_SPECIAL_MEMBER
#define TP_SPECIAL_MEMBER(name) LoopFloat name##_float;
  TP_SPECIAL_LOOPS_FLOAT(TP_SPECIAL_MEMBER)
  TP_SPECIAL_LOOPS_PIECES(TP_SPECIAL_MEMBER)
#undef TP_SPECIAL_MEMBER
  /// A loop on float32 elements, for the others.
  void (*through_float64)(Loop loop, std::int64_t n, const float* x, float* out);
};
TP_DECLARE_TABLE(SpecialTable, special_table)

/// Those of this processor.
TP_API const SpecialTable& special_loops();

}  // namespace tp
