// Lays out inputs for direct convolution and cuts the work over threads.
#include "kernels/conv_direct.h"

#include <algorithm>
#include <vector>

#include "kernels/conv_direct_table.h"
#include "kernels/scratch.h"

namespace tp::kernels {
namespace {

using std::int64_t;

template <class T>
const DirectLoops<T>& loops() {
  static const ConvDirectTable& table = TP_PICK_TABLE(conv_direct_table);
  if constexpr (std::is_same_v<T, float>)
    return table.f32;
  else
    return table.f64;
}

/// The padded input of one image and group, split by the remainders of its coordinates modulo the strides: within such a
/// phase, a step of the output is a step in memory. Positions run over lines of `pitch` elements, so some of them, past the
/// end of an output line, are no outputs.
struct Layout {
  const ConvGeometry& g;
  int64_t size[3];     // of a phase
  int64_t phase, channel;  // elements of a phase, and of a channel
  int64_t positions;   // from the first output to the last

  explicit Layout(const ConvGeometry& geometry) : g(geometry) {
    phase = channel = 1;
    for (int d = 0; d < 3; ++d) {
      const int64_t extent = (g.out[d] - 1) * g.stride[d] + (g.kernel[d] - 1) * g.dilation[d] + 1;
      size[d] = (extent + g.stride[d] - 1) / g.stride[d];
      phase *= size[d];
      channel *= g.stride[d];
    }
    channel *= phase;
    positions = ((g.out[0] - 1) * size[1] + g.out[1] - 1) * size[2] + g.out[2];
  }
  int64_t pitch() const { return size[2]; }

  /// Where tap (d, h, w) of a channel starts.
  int64_t offset(int64_t d, int64_t h, int64_t w) const {
    const int64_t at[3] = {d * g.dilation[0], h * g.dilation[1], w * g.dilation[2]};
    int64_t number = 0, inside = 0;
    for (int i = 0; i < 3; ++i) {
      number = number * g.stride[i] + at[i] % g.stride[i];
      inside = inside * size[i] + at[i] / g.stride[i];
    }
    return number * phase + inside;
  }
  std::vector<int64_t> offsets(int64_t channels) const {
    std::vector<int64_t> all;
    all.reserve(std::size_t(channels * g.taps()));
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t d = 0; d < g.kernel[0]; ++d)
        for (int64_t h = 0; h < g.kernel[1]; ++h)
          for (int64_t w = 0; w < g.kernel[2]; ++w) all.push_back(c * channel + offset(d, h, w));
    return all;
  }

  template <class T>
  void fill_channel(const T* x, T* to) const {
    std::fill_n(to, channel, T(0));
    for (int64_t id = 0; id < g.in[0]; ++id) {
      const int64_t d = id + g.padding[0];
      if (d < 0 || d >= size[0] * g.stride[0]) continue;
      for (int64_t ih = 0; ih < g.in[1]; ++ih) {
        const int64_t h = ih + g.padding[1];
        if (h < 0 || h >= size[1] * g.stride[1]) continue;
        const T* from = x + (id * g.in[1] + ih) * g.in[2];
        const int64_t number = (d % g.stride[0] * g.stride[1] + h % g.stride[1]) * g.stride[2];
        const int64_t line = (d / g.stride[0] * size[1] + h / g.stride[1]) * size[2];
        for (int64_t r = 0; r < g.stride[2]; ++r) {
          // Inputs at coordinates r, r + stride, ... of the padded line.
          const int64_t s = g.stride[2];
          int64_t first = g.padding[2] > r ? (g.padding[2] - r + s - 1) / s : 0;
          const int64_t last = std::min(size[2], (g.in[2] + g.padding[2] - r + s - 1) / s);
          T* row = to + (number + r) * phase + line;
          const T* source = from + r - g.padding[2];
          if (s == 1)
            for (; first < last; ++first) row[first] = source[first];
          else
            for (; first < last; ++first) row[first] = source[first * s];
        }
      }
    }
  }

  /// The outputs among positions [q0, q0 + width); run.at counts within an output plane.
  int runs(int64_t q0, int64_t width, std::vector<ConvRun>& to) const {
    to.clear();
    const int64_t end = std::min(q0 + width, positions);
    for (int64_t q = q0; q < end;) {
      const int64_t line = q / size[2], ow = q % size[2], od = line / size[1], oh = line % size[1];
      const int64_t next = std::min(end, (line + 1) * size[2]);
      if (oh < g.out[1] && ow < g.out[2]) {
        const int64_t count = std::min(next - q, g.out[2] - ow), at = (od * g.out[1] + oh) * g.out[2] + ow;
        // Lines without a border join.
        if (!to.empty() && to.back().start + to.back().count == q - q0 && to.back().at + to.back().count == at)
          to.back().count += std::int32_t(count);
        else
          to.push_back({std::int32_t(q - q0), std::int32_t(count), at});
      }
      q = next;
    }
    return int(to.size());
  }
};

/// A pointwise convolution reads its input in place, as one long line.
ConvGeometry flattened(const ConvGeometry& g) {
  ConvGeometry f = g;
  f.in[2] = f.out[2] = g.in_plane();
  f.in[0] = f.in[1] = f.out[0] = f.out[1] = 1;
  return f;
}

/// [group][block of rows][depth][row], zeros behind the last channel.
template <class T>
void pack_filters(const ConvPlan& p, const T* w, T* to) {
  const int64_t rows = loops<T>().filter_rows, depth = p.depth();
  for (int64_t group = 0; group < p.groups; ++group)
    for (int64_t c0 = 0; c0 < p.out_channels; c0 += rows)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t i = 0; i < rows; ++i)
          *to++ = c0 + i < p.out_channels ? w[(group * p.out_channels + c0 + i) * depth + k] : T(0);
}

}  // namespace

template <class T>
void direct_forward(const ConvPlan& p, const T* x, const T* w, const T* bias, T* out) {
  const DirectLoops<T>& l = loops<T>();
  const bool pointwise = p.g.pointwise();
  const ConvGeometry g = pointwise ? flattened(p.g) : p.g;
  const Layout layout(g);
  const int64_t depth = p.depth(), blocks = (p.out_channels + l.filter_rows - 1) / l.filter_rows;
  const int64_t group_filters = blocks * l.filter_rows * depth;
  Scratch<T> filters(p.groups * group_filters);
  pack_filters(p, w, filters.get());
  const std::vector<int64_t> offsets = layout.offsets(p.in_channels);
  std::vector<int64_t> tail_offsets;
  for (int64_t k = 0; k < depth; ++k) tail_offsets.push_back(k * l.width);

  const int64_t images = p.batch * p.groups, tiles = (layout.positions + l.width - 1) / l.width;
  // Few images are cut into ranges of tiles. Where all filters do not fit in cache, they pass in the outer loop.
  const int64_t wanted = std::max<int64_t>(1, (4 * num_threads() + images - 1) / images);
  const double tile_ns = 2.0 * double(depth) * double(p.out_channels) * double(l.width) / 100;
  const int64_t cuts = num_threads() == 1
      ? 1
      : std::clamp<int64_t>(int64_t(double(tiles) * tile_ns / 20000), 1, std::min(wanted, tiles));
  const bool filters_outside = group_filters * int64_t(sizeof(T)) > (int64_t(3) << 18);
  const int64_t room = pointwise ? depth * l.width : p.in_channels * layout.channel + l.width;

  parallel_tiles(images * cuts, grain_for(double(tiles) * tile_ns / double(cuts)), [&](int64_t first, int64_t last) {
    Scratch<T> laid(room);
    std::vector<ConvRun> runs;
    int64_t filled = -1;
    for (int64_t u = first; u < last; ++u) {
      const int64_t image = u / cuts, group = image % p.groups, cut = u % cuts;
      const T* from = x + image * p.in_channels * p.g.in_plane();
      if (!pointwise && filled != image) {
        for (int64_t c = 0; c < p.in_channels; ++c)
          layout.fill_channel(from + c * g.in_plane(), laid.get() + c * layout.channel);
        std::fill_n(laid.get() + p.in_channels * layout.channel, l.width, T(0));
        filled = image;
      }
      const T* base = pointwise ? from : laid.get();
      ConvPositions<T> job{p.out_channels,
                           depth,
                           filters.get() + group * group_filters,
                           base,
                           offsets.data(),
                           nullptr,
                           0,
                           out + image * p.out_channels * g.out_plane(),
                           g.out_plane(),
                           bias ? bias + group * p.out_channels : nullptr};
      const auto run_tile = [&](int64_t t) {
        const int64_t q0 = t * l.width;
        job.num_runs = layout.runs(q0, l.width, runs);
        if (job.num_runs == 0) return;
        job.runs = runs.data();
        if (pointwise && q0 + l.width > layout.positions) {
          // The last tile would read past the input.
          const int64_t left = layout.positions - q0;
          for (int64_t k = 0; k < depth; ++k) {
            std::copy_n(from + offsets[std::size_t(k)] + q0, left, laid.get() + k * l.width);
            std::fill_n(laid.get() + k * l.width + left, l.width - left, T(0));
          }
          job.b = laid.get();
          job.offsets = tail_offsets.data();
        } else {
          job.b = base + q0;
          job.offsets = offsets.data();
        }
        l.positions(job);
      };
      const int64_t t0 = tiles * cut / cuts, t1 = tiles * (cut + 1) / cuts;
      if (!filters_outside) {
        for (int64_t t = t0; t < t1; ++t) run_tile(t);
        continue;
      }
      const ConvPositions<T> whole = job;
      const int64_t step = std::max<int64_t>(1, (int64_t(1) << 18) / int64_t(sizeof(T)) / (depth * l.filter_rows));
      for (int64_t b = 0; b < blocks; b += step) {
        const int64_t c0 = b * l.filter_rows;
        job.channels = std::min(step * l.filter_rows, p.out_channels - c0);
        job.filters = whole.filters + b * l.filter_rows * depth;
        job.out = whole.out + c0 * whole.out_plane;
        job.bias = whole.bias ? whole.bias + c0 : nullptr;
        for (int64_t t = t0; t < t1; ++t) run_tile(t);
      }
    }
  });
}

template <class T>
void direct_weight_slope(const ConvPlan& p, const T* grad, const T* x, T* gw) {
  const DirectLoops<T>& l = loops<T>();
  const ConvGeometry g = p.g.pointwise() ? flattened(p.g) : p.g;
  const Layout layout(g);
  const std::vector<int64_t> offsets = layout.offsets(p.in_channels);
  const int64_t positions = (layout.positions + l.lanes - 1) / l.lanes * l.lanes;
  const int64_t x_image = p.in_channels * layout.channel, channels = p.groups * p.in_channels;
  const int64_t g_channels = p.groups * p.out_channels, depth = p.depth();
  // As many images at a time as make sums long enough to outweigh adding up their lanes.
  const int64_t chunk = std::clamp<int64_t>(6144 / positions, 1, std::max<int64_t>(1, p.batch));
  Scratch<T> laid(chunk * channels * layout.channel + positions + l.lanes), slopes(chunk * g_channels * positions);
  std::fill_n(laid.get() + chunk * channels * layout.channel, positions + l.lanes, T(0));

  // Rectangles of filters; large enough that operands are read from cache, enough of them for the threads.
  const int64_t rows = 16, columns = 96;
  const int64_t row_blocks = (p.out_channels + rows - 1) / rows, column_blocks = (depth + columns - 1) / columns;
  for (int64_t n0 = 0; n0 < p.batch; n0 += chunk) {
    const int64_t images = std::min(chunk, p.batch - n0);
    parallel_tiles(images * (channels + g_channels), grain_for(0.2 * double(layout.channel)),
                   [&](int64_t b, int64_t e) {
                     for (int64_t i = b; i < e; ++i) {
                       if (i < images * channels) {
                         const int64_t n = i / channels, c = i % channels;
                         layout.fill_channel(x + ((n0 + n) * channels + c) * g.in_plane(),
                                             laid.get() + (n * channels + c) * layout.channel);
                         continue;
                       }
                       const int64_t n = (i - images * channels) / g_channels, c = (i - images * channels) % g_channels;
                       T* to = slopes.get() + (n * g_channels + c) * positions;
                       const T* from = grad + ((n0 + n) * g_channels + c) * g.out_plane();
                       std::fill_n(to, positions, T(0));
                       for (int64_t od = 0; od < g.out[0]; ++od)
                         for (int64_t oh = 0; oh < g.out[1]; ++oh, from += g.out[2])
                           std::copy_n(from, g.out[2], to + (od * layout.size[1] + oh) * layout.size[2]);
                     }
                   });
    const int64_t units = p.groups * row_blocks * column_blocks;
    const double ns = 2.0 * double(images * positions) * double(std::min(rows, p.out_channels)) *
        double(std::min(columns, depth)) / 80;
    parallel_tiles(units, grain_for(ns), [&](int64_t b, int64_t e) {
      for (int64_t u = b; u < e; ++u) {
        const int64_t group = u / (row_blocks * column_blocks), k0 = u / row_blocks % column_blocks * columns;
        const int64_t m0 = u % row_blocks * rows, m = group * p.out_channels + m0;
        l.taps({images, positions, slopes.get() + m * positions, positions, g_channels * positions,
                laid.get() + group * x_image, channels * layout.channel, offsets.data() + k0,
                std::min(rows, p.out_channels - m0), std::min(columns, depth - k0), gw + m * depth + k0, depth,
                n0 != 0});
      }
    });
  }
  if (p.batch == 0) std::fill_n(gw, g_channels * depth, T(0));
}

template void direct_forward<float>(const ConvPlan&, const float*, const float*, const float*, float*);
template void direct_forward<double>(const ConvPlan&, const double*, const double*, const double*, double*);
template void direct_weight_slope<float>(const ConvPlan&, const float*, const float*, float*);
template void direct_weight_slope<double>(const ConvPlan&, const double*, const double*, double*);

}  // namespace tp::kernels
