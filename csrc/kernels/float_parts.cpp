// The loops of float_parts.h.
#include "kernels/float_parts.h"

#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/staging.h"
#include "kernels/views.h"

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

Storage nextafter_half(const OpSchema& op, const Storage& input, const Storage& other) {
  const Storage* operands[] = {&input, &other};
  const Shape sizes = broadcast_shapes(op.name, operands);
  const Storage x = contiguous(expand(op, input, sizes)), y = contiguous(expand(op, other, sizes));
  const Storage from = cast(x, Dtype::F32), to = cast(y, Dtype::F32);
  Storage out = empty(sizes, input.dtype());
  const auto* bits = reinterpret_cast<const std::uint16_t*>(x.raw());
  const auto* goal = reinterpret_cast<const std::uint16_t*>(y.raw());
  auto* next = reinterpret_cast<std::uint16_t*>(out.raw());
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    const float a = from.data<float>()[i], b = to.data<float>()[i];
    // Sign and magnitude: the larger magnitude is the larger number of bits.
    if (a != a || b != b)
      next[i] = a != a ? bits[i] : goal[i];
    else if (a == b)
      next[i] = goal[i];
    else if (a == 0)
      next[i] = b > 0 ? 0x0001 : 0x8001;
    else
      next[i] = std::uint16_t((b > a) == (a > 0) ? bits[i] + 1 : bits[i] - 1);
  }
  return out;
}

}  // namespace tp::kernels
