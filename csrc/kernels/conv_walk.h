// Walks the lines of an output under each tap of a kernel. Included by code compiled per instruction set and by the rest,
// so everything is forced inline.
#pragma once
#include "kernels/conv_table.h"

#define TP_WALK static inline __attribute__((always_inline))

namespace tp {
namespace conv_walk {

TP_WALK std::int64_t at_least(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
TP_WALK std::int64_t at_most(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
// ceil(a / b) for b > 0
TP_WALK std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

struct Range {
  std::int64_t lo, hi;  // empty when hi <= lo
};
/// The outputs along dimension d whose input under tap k is inside, within [first, end).
TP_WALK Range inside(const ConvGeometry& g, int d, std::int64_t k, std::int64_t first, std::int64_t end) {
  const std::int64_t shift = g.padding[d] - k * g.dilation[d];
  const std::int64_t lo = at_least(first, ceil_div(shift, g.stride[d]));
  const std::int64_t hi = at_most(end, ceil_div(g.in[d] + shift, g.stride[d]));
  return {lo, at_least(lo, hi)};
}
/// The input index under output o and tap k.
TP_WALK std::int64_t input_at(const ConvGeometry& g, int d, std::int64_t o, std::int64_t k) {
  return o * g.stride[d] - g.padding[d] + k * g.dilation[d];
}

/// f(output line, offset of its first input element in the plane, tap number, valid outputs) for each tap and line with a
/// valid input; the offset belongs to output range.lo.
template <class F>
TP_WALK void over_taps(const ConvGeometry& g, const F& f) {
  std::int64_t tap = 0;
  for (std::int64_t kd = 0; kd < g.kernel[0]; ++kd)
    for (std::int64_t kh = 0; kh < g.kernel[1]; ++kh)
      for (std::int64_t kw = 0; kw < g.kernel[2]; ++kw, ++tap) {
        const Range d = inside(g, 0, kd, 0, g.out[0]), h = inside(g, 1, kh, 0, g.out[1]),
                    w = inside(g, 2, kw, 0, g.out[2]);
        if (w.lo == w.hi) continue;
        for (std::int64_t od = d.lo; od < d.hi; ++od)
          for (std::int64_t oh = h.lo; oh < h.hi; ++oh)
            f(od * g.out[1] + oh,
              (input_at(g, 0, od, kd) * g.in[1] + input_at(g, 1, oh, kh)) * g.in[2] + input_at(g, 2, w.lo, kw), tap, w);
      }
}

}  // namespace conv_walk
}  // namespace tp
