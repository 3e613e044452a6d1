// Pooling to a given output size: window i covers the input from floor(i * in / out) to ceil((i + 1) * in / out).
#include <algorithm>
#include <vector>

#include "core/modes.h"
#include "kernels/axis.h"
#include "kernels/pool.h"
#include "kernels/pool_plan.h"
#include "kernels/pool_table.h"
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

// Where the windows begin and end along each dimension, worked out once for all planes: it takes divisions.
struct Windows {
  std::vector<int64_t> begin[3], end[3];
  explicit Windows(const ConvGeometry& g) {
    for (int d = 0; d < 3; ++d)
      for (int64_t o = 0; o < g.out[d]; ++o) {
        begin[d].push_back(o * g.in[d] / g.out[d]);
        end[d].push_back(((o + 1) * g.in[d] + g.out[d] - 1) / g.out[d]);
      }
  }
};

/// f(output index, d0, d1, h0, h1, w0, w1) for every window of a plane.
template <class F>
void over_windows(const Windows& at, const F& f) {
  int64_t o = 0;
  for (std::size_t d = 0; d < at.begin[0].size(); ++d)
    for (std::size_t h = 0; h < at.begin[1].size(); ++h)
      for (std::size_t w = 0; w < at.begin[2].size(); ++w, ++o)
        f(o, at.begin[0][d], at.end[0][d], at.begin[1][h], at.end[1][h], at.begin[2][w], at.end[2][w]);
}

template <class F>
void over_planes(const PoolPlan& p, const F& f) {
  if (p.planes * p.g.out_plane() == 0) return;  // [2^40, 0] windows are none
  modes::Unlocked unlocked(p.planes * p.g.in_plane() > 200000);
  parallel_tiles(p.planes, grain_for(0.5 * double(p.g.in_plane() + p.g.out_plane())), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) f(i);
  });
}

const PoolTable& table() {
  static const PoolTable& picked = TP_PICK_TABLE(pool_table);
  return picked;
}
template <class T>
double box_sum(const T* x, const int64_t* n, int64_t plane, int64_t line) {
  if (n[2] >= 16 || (n[2] == line && n[1] * n[2] >= 16)) {
    if constexpr (std::is_same_v<T, float>)
      return table().box_f32(x, n, plane, line);
    else
      return table().box_f64(x, n, plane, line);
  }
  double s = 0;
  for (int64_t d = 0; d < n[0]; ++d)
    for (int64_t h = 0; h < n[1]; ++h)
      for (int64_t w = 0; w < n[2]; ++w) s += double(x[d * plane + h * line + w]);
  return s;
}

}  // namespace

Storage adaptive_avg_pool(const OpSchema& op, const Storage& input, const Dims& output_size) {
  const PoolPlan p = adaptive_plan(op, input.sizes(), output_size);
  const Dtype result = real_float_dtype(op, input.dtype());
  const Storage x = staged_float(input, result);
  Storage out = empty(p.output_sizes(), x.dtype());
  const ConvGeometry& g = p.g;
  const Windows windows(p.planes == 0 ? ConvGeometry{} : g);
  with_float(x.dtype(), [&]<class T>(T) {
    over_planes(p, [&](int64_t i) {
      const T* from = x.data<T>() + i * g.in_plane();
      T* to = out.data<T>() + i * g.out_plane();
      over_windows(windows, [&](int64_t o, int64_t d0, int64_t d1, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
        const int64_t n[3] = {d1 - d0, h1 - h0, w1 - w0}, line = g.in[2], plane = g.in[1] * line;
        to[o] = T(box_sum(from + d0 * plane + h0 * line + w0, n, plane, line) / double(n[0] * n[1] * n[2]));
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
  const Windows windows(p.planes == 0 ? ConvGeometry{} : g);
  with_float(s.dtype(), [&]<class T>(T) {
    over_planes(p, [&](int64_t i) {
      const T* from = s.data<T>() + i * g.out_plane();
      T* to = out.data<T>() + i * g.in_plane();
      std::fill_n(to, g.in_plane(), T(0));
      over_windows(windows, [&](int64_t o, int64_t d0, int64_t d1, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
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
  const Windows windows(p.planes == 0 ? ConvGeometry{} : g);
  with_float(x.dtype(), [&]<class T>(T) {
    over_planes(p, [&](int64_t i) {
      const T* from = x.data<T>() + i * g.in_plane();
      over_windows(windows, [&](int64_t o, int64_t d0, int64_t d1, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
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
