// Convolution as matrix products: columns of the input are laid out tile by tile in memory that stays in cache.
#include <algorithm>

#include "core/modes.h"
#include "kernels/conv_direct.h"
#include "kernels/conv_plan.h"
#include "kernels/conv_walk.h"
#include "kernels/gemm.h"
#include "kernels/scratch.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

using std::int64_t;

template <class T>
inline constexpr bool kReal = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T>
T unit() {
  if constexpr (std::is_same_v<T, c64> || std::is_same_v<T, c128>)
    return T{1, 0};
  else
    return T(1);
}

/// The output cut into tiles whose columns take about half a megabyte.
struct Tiles {
  int64_t lines_each, widths, width, count;
  const ConvGeometry* g;
  Tiles(const ConvGeometry& geometry, int64_t depth, std::size_t item, bool pointwise) : g(&geometry) {
    const int64_t budget = std::max<int64_t>(64, (int64_t(1) << 19) / int64_t(item) / std::max<int64_t>(depth, 1));
    const int64_t most = std::min<int64_t>(budget, pointwise ? 2048 : 1024), out_width = g->out[2];
    if (out_width > most) {
      lines_each = 1;
      widths = (out_width + most - 1) / most;
      width = (out_width + widths - 1) / widths;
      width = (width + 15) / 16 * 16;
      widths = (out_width + width - 1) / width;
    } else {
      lines_each = std::clamp<int64_t>(most / std::max<int64_t>(out_width, 1), 1, g->lines());
      widths = 1;
      width = out_width;
    }
    count = (g->lines() + lines_each - 1) / lines_each * widths;
  }
  ConvTile at(int64_t i) const {
    const int64_t line = i / widths * lines_each, first = i % widths * width;
    return {line, std::min(lines_each, g->lines() - line), first, std::min(width, g->out[2] - first)};
  }
  int64_t largest() const { return lines_each * width; }
  int64_t start(const ConvTile& t) const { return t.line * g->out[2] + t.first; }
};

template <class T>
void im2col(const ConvGeometry& g, const ConvTile& t, int64_t channels, const T* x, T* col) {
  constexpr int by_size = sizeof(T) == 4 ? 0 : sizeof(T) == 8 ? 1 : 2;
  conv_loops().im2col[by_size](g, t, channels, x, col);
}

/// The columns of a tile as a matrix: the input itself for a pointwise convolution, else laid out in `room`.
template <class T>
MatRef<T> columns(const ConvPlan& p, const Tiles& tiles, const ConvTile& t, bool pointwise, int64_t channels,
                  const T* x, T* room) {
  if (pointwise) return {x + tiles.start(t), p.g.in_plane(), 1};
  im2col(p.g, t, channels, x, room);
  return {room, t.size(), 1};
}

/// Direct convolution, but for pointwise ones, which are products of matrices as they lie, and for sums too short to
/// outweigh its preparations.
bool goes_direct(const ConvPlan& p) { return !p.g.pointwise() && (p.depth() >= 24 || p.out_channels == 1); }

/// Few channels a group: products of matrices would be thin, slopes of planes are made one by one.
template <class T>
bool plane_by_plane(const ConvPlan& p) {
  return kReal<T> && p.in_channels == 1 && p.out_channels <= 2 && p.groups > 1;
}

template <class T>
void forward(const ConvPlan& p, const T* x, const T* w, const T* bias, T* out) {
  const ConvGeometry& g = p.g;
  const double flops = 2.0 * double(p.depth()) * double(p.out_channels);
  if constexpr (kReal<T>)
    if (goes_direct(p)) return direct_forward<T>(p, x, w, bias, out);
  const bool pointwise = g.pointwise();
  const Tiles tiles(g, p.depth(), sizeof(T), pointwise);
  const int64_t units = p.batch * p.groups * tiles.count;
  parallel_tiles(units, grain_for(flops * double(tiles.largest()) / 100), [&](int64_t b, int64_t e) {
    Scratch<T> room(pointwise ? 0 : p.depth() * tiles.largest());
    for (int64_t i = b; i < e; ++i) {
      const int64_t image = i / tiles.count, group = image % p.groups;
      const ConvTile t = tiles.at(i % tiles.count);
      const MatRef<T> col =
          columns(p, tiles, t, pointwise, p.in_channels, x + image * p.in_channels * g.in_plane(), room.get());
      T* to = out + image * p.out_channels * g.out_plane() + tiles.start(t);
      if (bias)
        for (int64_t c = 0; c < p.out_channels; ++c)
          std::fill_n(to + c * g.out_plane(), t.size(), bias[group * p.out_channels + c]);
      gemm_serial<T>(p.out_channels, t.size(), p.depth(), unit<T>(),
                     {w + group * p.out_channels * p.depth(), p.depth(), 1}, col, bias ? unit<T>() : T{}, to,
                     g.out_plane());
    }
  });
}

/// With unit strides the gradient in the input is itself a convolution, of g with the turned filters.
bool turns(const ConvPlan& p) {
  return p.g.stride[0] == 1 && p.g.stride[1] == 1 && p.g.stride[2] == 1 && !p.g.pointwise();
}
ConvPlan turned_plan(const ConvPlan& p) {
  ConvPlan r = p;
  std::swap(r.in_channels, r.out_channels);
  for (int d = 0; d < 3; ++d) {
    std::swap(r.g.in[d], r.g.out[d]);
    r.g.padding[d] = p.g.dilation[d] * (p.g.kernel[d] - 1) - p.g.padding[d];
  }
  return r;
}
template <class T>
void turn_filters(const ConvPlan& p, const T* w, T* to) {
  const int64_t taps = p.g.taps();
  for (int64_t group = 0; group < p.groups; ++group)
    for (int64_t i = 0; i < p.in_channels; ++i)
      for (int64_t o = 0; o < p.out_channels; ++o)
        for (int64_t t = 0; t < taps; ++t)
          *to++ = w[((group * p.out_channels + o) * p.in_channels + i) * taps + taps - 1 - t];
}

template <class T>
void input_slope(const ConvPlan& p, const T* grad, const T* w, T* gx) {
  const ConvGeometry& g = p.g;
  const double flops = 2.0 * double(p.depth()) * double(p.out_channels);
  if constexpr (kReal<T>) {
    if (plane_by_plane<T>(p)) {
      parallel_tiles(p.batch * p.groups, grain_for(flops * double(g.out_plane()) / 8), [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          T* to = gx + i * g.in_plane();
          std::fill_n(to, g.in_plane(), T(0));
          for (int64_t o = 0; o < p.out_channels; ++o) {
            const T* from = grad + (i * p.out_channels + o) * g.out_plane();
            const T* filter = w + (i % p.groups * p.out_channels + o) * g.taps();
            if constexpr (std::is_same_v<T, float>)
              conv_loops().plane_back_f32(g, from, filter, to);
            else
              conv_loops().plane_back_f64(g, from, filter, to);
          }
        }
      });
      return;
    }
  }
  const bool pointwise = g.pointwise();
  // Blocks of channels write to planes of their own, so they are the unit where the batch is small.
  const int64_t images = p.batch * p.groups;
  const int64_t blocks = images >= 8 ? 1 : std::min(p.in_channels, (8 + images - 1) / std::max<int64_t>(images, 1));
  const int64_t block = (p.in_channels + blocks - 1) / std::max<int64_t>(blocks, 1), depth = block * g.taps();
  const Tiles tiles(g, depth, sizeof(T), pointwise);
  parallel_tiles(images * blocks, grain_for(flops * double(g.out_plane()) / double(blocks) / 100),
                 [&](int64_t b, int64_t e) {
                   Scratch<T> room(pointwise ? 0 : depth * tiles.largest());
                   for (int64_t i = b; i < e; ++i) {
                     const int64_t image = i / blocks, group = image % p.groups, c0 = i % blocks * block;
                     const int64_t channels = std::min(block, p.in_channels - c0);
                     if (channels <= 0) continue;
                     T* to = gx + (image * p.in_channels + c0) * g.in_plane();
                     const T* from = grad + image * p.out_channels * g.out_plane();
                     // The filters' rows of these channels, transposed.
                     const MatRef<T> filters{w + group * p.out_channels * p.depth() + c0 * g.taps(), 1, p.depth()};
                     if (!pointwise) std::fill_n(to, channels * g.in_plane(), T{});
                     for (int64_t k = 0; k < tiles.count; ++k) {
                       const ConvTile t = tiles.at(k);
                       const MatRef<T> slopes{from + tiles.start(t), g.out_plane(), 1};
                       if (pointwise) {
                         gemm_serial<T>(channels, t.size(), p.out_channels, unit<T>(), filters, slopes, T{},
                                        to + tiles.start(t), g.in_plane());
                         continue;
                       }
                       gemm_serial<T>(channels * g.taps(), t.size(), p.out_channels, unit<T>(), filters, slopes, T{},
                                      room.get(), t.size());
                       col2im<T>(g, t, channels, room.get(), to);
                     }
                   }
                 });
}

template <class T>
void weight_slope(const ConvPlan& p, const T* grad, const T* x, T* gw) {
  const ConvGeometry& g = p.g;
  if constexpr (kReal<T>)
    if (goes_direct(p)) return direct_weight_slope<T>(p, grad, x, gw);
  // Units are blocks of input channels and, where these are few, parts of the batch, summed in order afterwards: the cut
  // does not depend on the number of threads.
  const bool pointwise = g.pointwise();
  const int64_t block = std::min(p.in_channels, (192 + g.taps() - 1) / std::max<int64_t>(g.taps(), 1));
  const int64_t blocks = (p.in_channels + block - 1) / std::max<int64_t>(block, 1);
  const int64_t parts =
      std::clamp<int64_t>(16 / std::max<int64_t>(1, p.groups * blocks), 1, std::max<int64_t>(1, p.batch));
  const int64_t depth = block * g.taps(), total = p.groups * p.out_channels * p.depth();
  Scratch<T> partial(parts > 1 ? parts * total : 0);
  const Tiles tiles(g, depth, sizeof(T), pointwise);
  parallel_tiles(p.groups * blocks * parts, 1, [&](int64_t b, int64_t e) {
    Scratch<T> room(pointwise ? 0 : depth * tiles.largest());
    for (int64_t i = b; i < e; ++i) {
      const int64_t part = i / (p.groups * blocks), group = i / blocks % p.groups, c0 = i % blocks * block;
      const int64_t channels = std::min(block, p.in_channels - c0);
      T* to = (parts > 1 ? partial.get() + part * total : gw) + group * p.out_channels * p.depth() + c0 * g.taps();
      bool first = true;
      for (int64_t n = p.batch * part / parts; n < p.batch * (part + 1) / parts; ++n) {
        const int64_t image = n * p.groups + group;
        const T* planes = x + (image * p.in_channels + c0) * g.in_plane();
        const T* from = grad + image * p.out_channels * g.out_plane();
        for (int64_t k = 0; k < tiles.count; ++k) {
          const ConvTile t = tiles.at(k);
          const MatRef<T> col = columns(p, tiles, t, pointwise, channels, planes, room.get());
          gemm_serial<T>(p.out_channels, channels * g.taps(), t.size(), unit<T>(),
                         {from + tiles.start(t), g.out_plane(), 1}, col.t(), first ? T{} : unit<T>(), to, p.depth());
          first = false;
        }
      }
      if (first)
        for (int64_t o = 0; o < p.out_channels; ++o) std::fill_n(to + o * p.depth(), channels * g.taps(), T{});
    }
  });
  if (parts > 1)
    for (int64_t j = 0; j < total; ++j) {
      T sum = partial[j];
      for (int64_t k = 1; k < parts; ++k) sum = sum + partial[k * total + j];
      gw[j] = sum;
    }
}

bool long_work(const ConvPlan& p) {
  return double(p.batch * p.groups) * double(p.depth()) * double(p.out_channels) * double(p.g.out_plane()) > 4e6;
}

}  // namespace

const ConvTable& conv_loops() {
  static const ConvTable& table = TP_PICK_TABLE(conv_table);
  return table;
}

template <class T>
void col2im(const ConvGeometry& g, const ConvTile& t, int64_t channels, const T* col, T* x) {
  if constexpr (std::is_same_v<T, float>) return conv_loops().col2im_f32(g, t, channels, col, x);
  if constexpr (std::is_same_v<T, double>) return conv_loops().col2im_f64(g, t, channels, col, x);
  for (int64_t c = 0; c < channels; ++c, x += g.in_plane(), col += g.taps() * t.size())
    conv_walk::over_taps(g, [&](int64_t line, int64_t at, int64_t tap, conv_walk::Range w) {
      if (line < t.line || line >= t.line + t.lines) return;
      for (int64_t o = std::max(w.lo, t.first); o < std::min(w.hi, t.first + t.width); ++o) {
        T& to = x[at + (o - w.lo) * g.stride[2]];
        to = to + col[(tap * t.lines + line - t.line) * t.width + o - t.first];
      }
    });
}

Storage conv_forward(const ConvPlan& p, const Storage& input, const Storage& weight, const Storage& bias) {
  Storage out = empty(p.output_sizes(), input.dtype());
  if (out.numel() == 0) return out;
  modes::Unlocked unlocked(long_work(p));
  with_product_type(input.dtype(), [&]<class T>(T) {
    forward<T>(p, input.data<T>(), weight.data<T>(), bias.defined() ? bias.data<T>() : nullptr, out.data<T>());
  });
  return out;
}

Storage conv_input_slope(const ConvPlan& p, const Storage& grad, const Storage& weight) {
  Storage gx = empty(p.input_sizes(), grad.dtype());
  if (gx.numel() == 0) return gx;
  modes::Unlocked unlocked(long_work(p));
  with_product_type(grad.dtype(), [&]<class T>(T) {
    if (!turns(p)) return input_slope<T>(p, grad.data<T>(), weight.data<T>(), gx.data<T>());
    Scratch<T> filters(weight.numel());
    turn_filters(p, weight.data<T>(), filters.get());
    forward<T>(turned_plan(p), grad.data<T>(), filters.get(), nullptr, gx.data<T>());
  });
  return gx;
}

Storage conv_weight_slope(const ConvPlan& p, const Storage& grad, const Storage& input) {
  Storage gw = empty(p.weight_sizes(), grad.dtype());
  if (gw.numel() == 0) return gw;
  modes::Unlocked unlocked(long_work(p));
  with_product_type(grad.dtype(),
                    [&]<class T>(T) { weight_slope<T>(p, grad.data<T>(), input.data<T>(), gw.data<T>()); });
  return gw;
}

#define TP_COL2IM(T) template void col2im<T>(const ConvGeometry&, const ConvTile&, int64_t, const T*, T*);
TP_COL2IM(float)
TP_COL2IM(double)
TP_COL2IM(c64)
TP_COL2IM(c128)
TP_COL2IM(std::int32_t)
TP_COL2IM(int64_t)
TP_COL2IM(std::uint64_t)
#undef TP_COL2IM

}  // namespace tp::kernels
