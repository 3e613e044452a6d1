// The table of the loops over float64 elements of the longer special functions, so that each is compiled once per
// instruction set. Knows no Storage and no threads.
#pragma once
#include <cstdint>

#include "core/api.h"
#include "kernels/isa_table.h"

namespace tp {

/// The *_float are good enough for results that are rounded to float32.
#define TP_SPECIAL_LOOPS(X)    \
  X(lgamma)                    \
  X(lgamma_float)              \
  X(digamma)                   \
  X(trigamma)                  \
  X(erfinv)                    \
  X(erfinv_float)              \
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

struct SpecialTable {
  using Loop = void (*)(std::int64_t n, const double* x, double* out);  // out may be x
#define TP_SPECIAL_MEMBER(name) Loop name;
  TP_SPECIAL_LOOPS(TP_SPECIAL_MEMBER)
#undef TP_SPECIAL_MEMBER
  /// A loop on float32 elements.
  void (*float32)(Loop loop, std::int64_t n, const float* x, float* out);
};
TP_DECLARE_TABLE(SpecialTable, special_table)

/// Those of this processor.
TP_API const SpecialTable& special_loops();

}  // namespace tp
