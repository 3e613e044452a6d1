// Interpolation as weighted taps per dimension: the taps of depth and height make one line, those of width read it.
#include "kernels/resample.h"

#include <algorithm>
#include <cmath>

#include "core/modes.h"
#include "kernels/axis.h"
#include "kernels/index_table.h"
#include "kernels/matrices.h"
#include "kernels/pool_plan.h"
#include "kernels/scratch.h"

namespace tp::kernels {
namespace {

using std::int64_t;

enum class Filter { Nearest, NearestExact, Linear, Cubic };

/// `count` taps for each output along a dimension: input positions and weights, [output, tap].
struct Taps {
  int count = 1;
  std::vector<int64_t> at;
  std::vector<double> weight;
};

double cubic_near(double x, double a) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
double cubic_far(double x, double a) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

Taps make_taps(Filter filter, int64_t in, int64_t out, double factor, bool align_corners) {
  Taps t;
  t.count = filter == Filter::Cubic ? 4 : filter == Filter::Linear ? 2 : 1;
  const double ratio = factor > 0 ? 1 / factor : double(in) / double(out);
  const double aligned = out > 1 ? double(in - 1) / double(out - 1) : 0;
  const auto clamped = [&](int64_t i) { return std::clamp<int64_t>(i, 0, in - 1); };
  const auto add = [&](int64_t i, double w) {
    t.at.push_back(clamped(i));
    t.weight.push_back(w);
  };
  for (int64_t o = 0; o < out; ++o) {
    if (filter == Filter::Nearest || filter == Filter::NearestExact) {
      add(int64_t(std::floor((double(o) + (filter == Filter::NearestExact ? 0.5 : 0)) * ratio)), 1);
      continue;
    }
    double src = align_corners ? double(o) * aligned : (double(o) + 0.5) * ratio - 0.5;
    if (filter == Filter::Linear) {
      src = std::clamp(src, 0.0, double(in - 1));
      const int64_t i = int64_t(src);
      add(i, 1 - (src - double(i)));
      add(i + 1, src - double(i));
      continue;
    }
    const int64_t i = int64_t(std::floor(src));
    const double f = src - double(i), a = -0.75;
    add(i - 1, cubic_far(f + 1, a));
    add(i, cubic_near(f, a));
    add(i + 1, cubic_near(1 - f, a));
    add(i + 2, cubic_far(2 - f, a));
  }
  return t;
}

struct Resampling {
  PoolPlan p;
  Taps taps[3];
};

Resampling plan(const OpSchema& op, const Shape& sizes, const Dims& size, const std::vector<double>& scale,
                Filter filter, bool align_corners) {
  const int dims = sizes.size() - 2;
  if (TP_UNLIKELY(dims < 1 || dims > 3))
    value_error(op.name, ": input must be [N, C, ...] with 3 to 5 dimensions; it is ", sizes);
  if (TP_UNLIKELY(filter == Filter::Cubic && dims != 2))
    value_error(op.name, ": input must be [N, C, H, W]; it is ", sizes);
  if (TP_UNLIKELY(size.size() != 1 && size.size() != dims))
    value_error(op.name, ": size must be one number or ", dims, " numbers; it is ", size);
  if (TP_UNLIKELY(!scale.empty() && int(scale.size()) != dims))
    value_error(op.name, ": scale must have ", dims, " numbers or none; it has ", scale.size());
  Resampling r{plane_plan(op, sizes, dims), {}};
  for (int d = 0; d < 3; ++d) {
    const int i = d - (3 - dims);
    int64_t& out = r.p.g.out[d];
    if (i >= 0) out = size[size.size() == 1 ? 0 : i];
    if (TP_UNLIKELY(out < 1 || r.p.g.in[d] < 1))
      value_error(op.name, ": sizes must be positive: input is ", sizes, ", size is ", size);
    r.taps[d] = i < 0 ? make_taps(Filter::Nearest, 1, 1, 0, false)
                      : make_taps(filter, r.p.g.in[d], out, scale.empty() ? 0 : scale[std::size_t(i)], align_corners);
  }
  return r;
}

/// f(first element of the input line, weight) for the lines that output line (od, oh) is made of.
template <class F>
void over_lines(const Resampling& r, int64_t od, int64_t oh, const F& f) {
  const ConvGeometry& g = r.p.g;
  const Taps &d = r.taps[0], &h = r.taps[1];
  for (int i = 0; i < d.count; ++i)
    for (int j = 0; j < h.count; ++j) {
      const double w = d.weight[std::size_t(od * d.count + i)] * h.weight[std::size_t(oh * h.count + j)];
      if (w == 0) continue;
      f((d.at[std::size_t(od * d.count + i)] * g.in[1] + h.at[std::size_t(oh * h.count + j)]) * g.in[2], w);
    }
}

template <class Body>
void over_planes(const Resampling& r, const Body& body) {
  const double work = double(r.p.g.out_plane()) * r.taps[0].count * r.taps[1].count * r.taps[2].count;
  modes::Unlocked unlocked(work * double(r.p.planes) > 200000);
  parallel_tiles(r.p.planes, grain_for(work), body);
}

Storage forward(const OpSchema& op, const Storage& input, const Dims& size, const std::vector<double>& scale,
                Filter filter, bool align_corners) {
  const Resampling r = plan(op, input.sizes(), size, scale, filter, align_corners);
  const ConvGeometry& g = r.p.g;
  const bool move_only = filter == Filter::Nearest || filter == Filter::NearestExact;
  const Dtype result = move_only && is_integral(input.dtype()) ? input.dtype() : real_float_dtype(op, input.dtype());
  // Integers that are only moved go through double.
  const Storage x = staged_float(input, is_integral(result) ? Dtype::F64 : result);
  Storage out = empty(r.p.output_sizes(), x.dtype());
  with_float(x.dtype(), [&]<class T>(T) {
    over_planes(r, [&](int64_t b, int64_t e) {
      Scratch<T> line(g.in[2]), weights(g.out[2] * r.taps[2].count);
      const Taps& w = r.taps[2];
      std::copy(w.weight.begin(), w.weight.end(), weights.get());
      for (int64_t i = b; i < e; ++i) {
        const T* from = x.data<T>() + i * g.in_plane();
        T* to = out.data<T>() + i * g.out_plane();
        for (int64_t od = 0; od < g.out[0]; ++od)
          for (int64_t oh = 0; oh < g.out[1]; ++oh, to += g.out[2]) {
            bool first = true;
            over_lines(r, od, oh, [&](int64_t at, double weight) {
              const T f = T(weight);
              const T* s = from + at;
              if (first)
                for (int64_t k = 0; k < g.in[2]; ++k) line[k] = f * s[k];
              else
                for (int64_t k = 0; k < g.in[2]; ++k) line[k] += f * s[k];
              first = false;
            });
            const int64_t* at = w.at.data();
            const T* f = weights.get();
            if (w.count == 1) {
              for (int64_t ow = 0; ow < g.out[2]; ++ow) to[ow] = line[at[ow]];
            } else if (w.count == 2) {
              // A tap of weight 0 is left out: what it would multiply may be infinite.
              for (int64_t ow = 0; ow < g.out[2]; ++ow)
                to[ow] =
                    f[2 * ow] * line[at[2 * ow]] + (f[2 * ow + 1] == 0 ? T(0) : f[2 * ow + 1] * line[at[2 * ow + 1]]);
            } else {
              for (int64_t ow = 0; ow < g.out[2]; ++ow) {
                T s = 0;
                for (int k = 0; k < 4; ++k) s += f[4 * ow + k] * line[at[4 * ow + k]];
                to[ow] = s;
              }
            }
          }
      }
    });
  });
  return in_dtype(out, result);
}

Storage slope(const OpSchema& op, const Storage& grad, const Dims& sizes, const std::vector<double>& scale,
              Filter filter, bool align_corners) {
  Dims size;
  for (int i = 2; i < grad.dim(); ++i) size.push_back(grad.size(i));
  if (TP_UNLIKELY(grad.dim() != sizes.size() || grad.dim() < 3))
    value_error(op.name, ": grad of sizes ", grad.sizes(), " does not belong to an input of ", sizes);
  const Resampling r = plan(op, sizes, size, scale, filter, align_corners);
  if (TP_UNLIKELY(!(grad.sizes() == r.p.output_sizes())))
    value_error(op.name, ": grad must have sizes ", r.p.output_sizes(), "; it is ", grad.sizes());
  const ConvGeometry& g = r.p.g;
  const Dtype result = real_float_dtype(op, grad.dtype());
  const Storage s = staged_float(grad, result);
  Storage out = empty(sizes, s.dtype());
  with_float(s.dtype(), [&]<class T>(T) {
    over_planes(r, [&](int64_t b, int64_t e) {
      Scratch<T> line(g.in[2]);
      const Taps& w = r.taps[2];
      for (int64_t i = b; i < e; ++i) {
        const T* from = s.data<T>() + i * g.out_plane();
        T* to = out.data<T>() + i * g.in_plane();
        std::fill_n(to, g.in_plane(), T(0));
        for (int64_t od = 0; od < g.out[0]; ++od)
          for (int64_t oh = 0; oh < g.out[1]; ++oh, from += g.out[2]) {
            std::fill_n(line.get(), g.in[2], T(0));
            for (int64_t ow = 0; ow < g.out[2]; ++ow)
              for (int k = 0; k < w.count; ++k)
                line[w.at[std::size_t(ow * w.count + k)]] += T(w.weight[std::size_t(ow * w.count + k)]) * from[ow];
            over_lines(r, od, oh, [&](int64_t at, double weight) {
              const T f = T(weight);
              for (int64_t k = 0; k < g.in[2]; ++k) to[at + k] += f * line[k];
            });
          }
      }
    });
  });
  return in_dtype(out, result);
}

}  // namespace

Storage upsample_nearest(const OpSchema& op, const Storage& input, const Dims& size, const std::vector<double>& scale,
                         bool exact) {
  return forward(op, input, size, scale, exact ? Filter::NearestExact : Filter::Nearest, false);
}
Storage upsample_nearest_slope(const OpSchema& op, const Storage& grad, const Dims& sizes,
                               const std::vector<double>& scale, bool exact) {
  return slope(op, grad, sizes, scale, exact ? Filter::NearestExact : Filter::Nearest, false);
}
Storage upsample_linear(const OpSchema& op, const Storage& input, const Dims& size, const std::vector<double>& scale,
                        bool align_corners) {
  return forward(op, input, size, scale, Filter::Linear, align_corners);
}
Storage upsample_linear_slope(const OpSchema& op, const Storage& grad, const Dims& sizes,
                              const std::vector<double>& scale, bool align_corners) {
  return slope(op, grad, sizes, scale, Filter::Linear, align_corners);
}
Storage upsample_bicubic(const OpSchema& op, const Storage& input, const Dims& size, const std::vector<double>& scale,
                         bool align_corners) {
  return forward(op, input, size, scale, Filter::Cubic, align_corners);
}
Storage upsample_bicubic_slope(const OpSchema& op, const Storage& grad, const Dims& sizes,
                               const std::vector<double>& scale, bool align_corners) {
  return slope(op, grad, sizes, scale, Filter::Cubic, align_corners);
}

namespace {
double filter_weight(double t, bool cubic) {
  t = std::fabs(t);
  if (!cubic) return std::max(1 - t, 0.0);
  constexpr double a = -0.5;
  if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? (((t - 5) * t + 8) * t - 4) * a : 0;
}
}  // namespace

Storage filter_rows(const OpSchema&, std::int64_t length, std::int64_t size, const std::vector<double>& scale,
                    std::int64_t dim, bool cubic, bool align_corners) {
  const double own = scale.empty() ? 0 : scale[std::size_t(dim)];
  const double ratio = align_corners ? (size > 1 ? double(length - 1) / double(size - 1) : 0)
      : own > 0                      ? 1 / own
                                     : double(length) / double(size);
  const double wide = std::max(ratio, 1.0), reach = (cubic ? 2 : 1) * wide;
  Storage out = zeros_storage({size, length}, Dtype::F64);
  for (std::int64_t i = 0; i < size; ++i) {
    // Centres as image libraries count them, whatever align_corners says.
    const double centre = ratio * (double(i) + 0.5);
    const std::int64_t low = std::max<std::int64_t>(std::int64_t(centre - reach + 0.5), 0);
    const std::int64_t high = std::min(std::int64_t(centre + reach + 0.5), length);
    double* row = out.data<double>() + i * length;
    double total = 0;
    for (std::int64_t j = low; j < high; ++j) total += row[j] = filter_weight((double(j) - centre + 0.5) / wide, cubic);
    for (std::int64_t j = low; j < high && total != 0; ++j) row[j] /= total;
  }
  return out;
}

namespace {

/// Rows of places for C neighbouring channels, which share the loads of index and weight.
template <class T, int C>
void pick_channels(const T* x, int64_t step, const int64_t* index, const T* weight, int64_t places, int64_t taps,
                   T* out) {
  for (int64_t p = 0; p < places; ++p) {
    T sum[C] = {};
    for (int64_t k = 0; k < taps; ++k, ++index, ++weight) {
      const int64_t at = *index;
      const T w = *weight;
      if (TP_UNLIKELY(at < 0)) {
        // A nan weight is a nan place.
        for (int c = 0; c < C; ++c) sum[c] += w * T(0);
        continue;
      }
      for (int c = 0; c < C; ++c) sum[c] += w * x[c * step + at];
    }
    for (int c = 0; c < C; ++c) out[c * places + p] = sum[c];
  }
}

}  // namespace

Storage grid_neighbours(const OpSchema& op, const Storage& low, const Dims& space, int64_t width, int64_t padding,
                        bool align_corners) {
  const int n = space.size();
  if (TP_UNLIKELY(n < 1 || n > 3 || width < 1 || width > 4 || low.dim() < 1 || low.size(low.dim() - 1) != n))
    value_error(op.name, ": places of ", low.sizes(), " do not lie in ", space);
  const Storage x = staged_float(low, Dtype::F64);
  int64_t taps = 1;
  Shape sizes;
  for (int d = 0; d + 1 < x.dim(); ++d) sizes.push_back(x.size(d));
  for (int d = 0; d < n; ++d) taps *= width;
  sizes.push_back(taps);
  Storage out = empty(sizes, Dtype::I64);
  const double* from = x.data<double>();
  int64_t* to = out.data<int64_t>();
  for (int64_t p = 0; p < x.numel() / n; ++p, from += n, to += taps) {
    int64_t count = 1;
    to[0] = 0;
    for (int d = 0; d < n; ++d) {
      const double last = double(space[d] - 1);
      int64_t along[4];
      for (int64_t k = 0; k < width; ++k) {
        double at = from[d] + double(k);
        if (padding == 2) {
          const double start = align_corners ? 0 : -0.5, span = last - 2 * start, way = std::abs(at - start);
          const double turns = span > 0 ? std::floor(way / span) : 0, rest = way - turns * span;
          at = span == 0 ? 0 : start + (std::fmod(turns, 2) == 0 ? rest : span - rest);
        }
        if (padding != 0) at = std::rint(at < 0 ? 0 : at > last ? last : at);
        along[k] = at >= 0 && at <= last ? int64_t(at) : -1;
      }
      // From the back, as every position so far becomes `width` of them.
      for (int64_t i = count - 1; i >= 0; --i)
        for (int64_t k = width - 1; k >= 0; --k)
          to[i * width + k] = to[i] < 0 || along[k] < 0 ? -1 : to[i] * space[d] + along[k];
      count *= width;
    }
  }
  return out;
}

Storage weighted_picks(const OpSchema& op, const Storage& input, const Storage& index, const Storage& weights) {
  if (TP_UNLIKELY(input.dim() < 2 || index.dim() < 2 || weights.dim() < 2 || index.dtype() != Dtype::I64 ||
                  index.size(index.dim() - 2) != weights.size(weights.dim() - 2) ||
                  index.size(index.dim() - 1) != weights.size(weights.dim() - 1)))
    value_error(op.name, ": input of ", input.sizes(), ", index of ", index.sizes(), " and weights of ",
                weights.sizes(), " do not belong together");
  Promotion promotion;
  promotion.add(input.dtype(), false, false);
  promotion.add(weights.dtype(), false, false);
  const Dtype result = real_float_dtype(op, promotion.result());
  const Storage x = staged_float(input, result), at = contiguous(index), w = staged_float(weights, result);
  const int64_t channels = x.size(x.dim() - 2), length = x.size(x.dim() - 1);
  const int64_t places = at.size(at.dim() - 2), taps = at.size(at.dim() - 1);
  if (TP_UNLIKELY(!index_kernels->within(at.data<int64_t>(), at.numel(), -1, length)))
    index_error(op.name, ": an index is out of range for ", length, " elements");
  const Storage* all[] = {&x, &at, &w};
  const Matrices matrices(op, all);
  Storage out = empty(matrices.sizes(channels, places), x.dtype());
  if (out.numel() == 0) return in_dtype(out, result);
  with_float(x.dtype(), [&]<class T>(T) {
    constexpr int64_t kChannels = 4;
    const int64_t groups = (channels + kChannels - 1) / kChannels;
    const double ns = 2.0 * double(places * taps);
    modes::Unlocked unlocked(ns * double(matrices.count() * groups) > 50000);
    parallel_tiles(matrices.count() * groups, grain_for(ns), [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) {
        const int64_t i = t / groups, end = std::min(channels, (t % groups + 1) * kChannels);
        int64_t c = t % groups * kChannels;
        const T* from = x.data<T>() + matrices.at(0, i) * channels * length;
        const int64_t* index = at.data<int64_t>() + matrices.at(1, i) * places * taps;
        const T* weight = w.data<T>() + matrices.at(2, i) * places * taps;
        const auto run = [&]<int C>() {
          pick_channels<T, C>(from + c * length, length, index, weight, places, taps,
                              out.data<T>() + (i * channels + c) * places);
          c += C;
        };
        if (c + kChannels <= end) run.template operator()<kChannels>();
        while (c < end) run.template operator()<1>();
      }
    });
  });
  return in_dtype(out, result);
}

}  // namespace tp::kernels
