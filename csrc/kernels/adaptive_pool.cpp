// Pooling to a given output size: window i covers the input from floor(i * in / out) to ceil((i + 1) * in / out).
#include <algorithm>

#include "core/modes.h"
#include "kernels/axis.h"
#include "kernels/pool.h"
#include "kernels/pool_plan.h"
#include "kernels/scratch.h"

namespace tp::kernels {
namespace {

using std::int64_t;

PoolPlan adaptive_plan(const OpSchema& op, const Shape& sizes, const Dims& output_size) {
  PoolPlan p = plane_plan(op, sizes, pooled_dims(op));
  if (TP_UNLIKELY(output_size.size() != 1 && output_size.size() != p.dims))
    value_error(op.name, ": output_size must be one number or ", p.dims, " numbers; it is ", output_size);
  for (int i = 0; i < p.dims; ++i) {
    const int at = 3 - p.dims + i;
    const int64_t n = output_size[output_size.size() == 1 ? 0 : i];
    if (TP_UNLIKELY(n < -1)) value_error(op.name, ": output_size must not be negative; it is ", output_size);
    p.g.out[at] = n == -1 ? p.g.in[at] : n;
    if (TP_UNLIKELY(p.g.in[at] == 0 && p.g.out[at] != 0))
      value_error(op.name, ": input has no elements to pool: ", sizes);
  }
  return p;
}

int64_t start(const ConvGeometry& g, int d, int64_t o) { return o * g.in[d] / g.out[d]; }
int64_t end(const ConvGeometry& g, int d, int64_t o) { return ((o + 1) * g.in[d] + g.out[d] - 1) / g.out[d]; }

/// f(output index, d0, d1, h0, h1, w0, w1) for every window of a plane.
template <class F>
void over_windows(const ConvGeometry& g, const F& f) {
  int64_t o = 0;
  for (int64_t d = 0; d < g.out[0]; ++d)
    for (int64_t h = 0; h < g.out[1]; ++h)
      for (int64_t w = 0; w < g.out[2]; ++w, ++o)
        f(o, start(g, 0, d), end(g, 0, d), start(g, 1, h), end(g, 1, h), start(g, 2, w), end(g, 2, w));
}

template <class F>
void over_planes(const PoolPlan& p, const F& f) {
  if (p.planes * p.g.out_plane() == 0) return;  // [2^40, 0] windows are none
  modes::Unlocked unlocked(p.planes * p.g.in_plane() > 200000);
  parallel_tiles(p.planes, grain_for(0.5 * double(p.g.in_plane() + p.g.out_plane())), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) f(i);
  });
}

}  // namespace

Storage adaptive_avg_pool(const OpSchema& op, const Storage& input, const Dims& output_size) {
  const PoolPlan p = adaptive_plan(op, input.sizes(), output_size);
  const Dtype result = real_float_dtype(op, input.dtype());
  const Storage x = staged_float(input, result);
  Storage out = empty(p.output_sizes(), x.dtype());
  const ConvGeometry& g = p.g;
  with_float(x.dtype(), [&]<class T>(T) {
    over_planes(p, [&](int64_t i) {
      const T* from = x.data<T>() + i * g.in_plane();
      T* to = out.data<T>() + i * g.out_plane();
      over_windows(g, [&](int64_t o, int64_t d0, int64_t d1, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
        double s = 0;
        for (int64_t d = d0; d < d1; ++d)
          for (int64_t h = h0; h < h1; ++h)
            for (int64_t w = w0; w < w1; ++w) s += double(from[(d * g.in[1] + h) * g.in[2] + w]);
        to[o] = T(s / double((d1 - d0) * (h1 - h0) * (w1 - w0)));
      });
    });
  });
  return in_dtype(out, result);
}

Storage adaptive_avg_pool_slope(const OpSchema& op, const Storage& grad, const Dims& sizes) {
  const int dims = pooled_dims(op);
  Dims output_size;
  for (int i = std::max(0, grad.dim() - dims); i < grad.dim(); ++i) output_size.push_back(grad.size(i));
  const PoolPlan p = adaptive_plan(op, sizes, output_size);
  if (TP_UNLIKELY(!(grad.sizes() == p.output_sizes())))
    value_error(op.name, ": grad of sizes ", grad.sizes(), " does not belong to an input of ", sizes);
  const Dtype result = real_float_dtype(op, grad.dtype());
  const Storage s = staged_float(grad, result);
  Storage out = empty(sizes, s.dtype());
  const ConvGeometry& g = p.g;
  with_float(s.dtype(), [&]<class T>(T) {
    over_planes(p, [&](int64_t i) {
      const T* from = s.data<T>() + i * g.out_plane();
      T* to = out.data<T>() + i * g.in_plane();
      std::fill_n(to, g.in_plane(), T(0));
      over_windows(g, [&](int64_t o, int64_t d0, int64_t d1, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
        const T share = from[o] / T((d1 - d0) * (h1 - h0) * (w1 - w0));
        for (int64_t d = d0; d < d1; ++d)
          for (int64_t h = h0; h < h1; ++h)
            for (int64_t w = w0; w < w1; ++w) to[(d * g.in[1] + h) * g.in[2] + w] += share;
      });
    });
  });
  return in_dtype(out, result);
}

std::array<Storage, 2> adaptive_max_pool(const OpSchema& op, const Storage& input, const Dims& output_size) {
  const PoolPlan p = adaptive_plan(op, input.sizes(), output_size);
  const Dtype result = real_float_dtype(op, input.dtype());
  const Storage x = staged_float(input, result);
  Storage out = empty(p.output_sizes(), x.dtype()), at = empty(p.output_sizes(), Dtype::I64);
  const ConvGeometry& g = p.g;
  with_float(x.dtype(), [&]<class T>(T) {
    over_planes(p, [&](int64_t i) {
      const T* from = x.data<T>() + i * g.in_plane();
      over_windows(g, [&](int64_t o, int64_t d0, int64_t d1, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
        int64_t where = (d0 * g.in[1] + h0) * g.in[2] + w0;
        T best = from[where];
        for (int64_t d = d0; d < d1; ++d)
          for (int64_t h = h0; h < h1; ++h)
            for (int64_t w = w0; w < w1; ++w) {
              const int64_t here = (d * g.in[1] + h) * g.in[2] + w;
              const T v = from[here];
              // A NaN wins over every number and is not replaced.
              if (v > best || (v != v && best == best)) {
                best = v;
                where = here;
              }
            }
        out.data<T>()[i * g.out_plane() + o] = best;
        at.data<int64_t>()[i * g.out_plane() + o] = where;
      });
    });
  });
  return {in_dtype(out, result), at};
}

}  // namespace tp::kernels
