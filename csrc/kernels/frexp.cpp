// The loop of frexp.h.
#include "kernels/frexp.h"

#include <cmath>

#include "kernels/staging.h"

namespace tp::kernels {

std::array<Storage, 2> frexp(const OpSchema&, const Storage& input) {
  // A double holds every smaller float exactly and with a full mantissa.
  const Storage x = contiguous(cast(input, Dtype::F64));
  Storage mantissa = empty(x.sizes(), Dtype::F64), exponent = empty(x.sizes(), Dtype::I32);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const double v = x.data<double>()[i];
    int e = 0;
    mantissa.data<double>()[i] = std::isfinite(v) ? std::frexp(v, &e) : v;
    exponent.data<std::int32_t>()[i] = e;
  }
  return {cast(mantissa, input.dtype()), exponent};
}

}  // namespace tp::kernels
