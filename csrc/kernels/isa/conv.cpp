// Loops of convolutions: columns out of planes and back, and planes with a filter of their own.
#include "kernels/conv_table.h"
#include "kernels/conv_walk.h"
#include "kernels/isa/lanes.h"

namespace tp {
namespace TP_ISA {
namespace {

using conv_walk::Range;

struct Item16 {
  uint64_t a, b;
};

template <class T>
TP_MATH void zeros(T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = T{};
}
template <class T>
TP_MATH void copy(T* __restrict to, const T* __restrict from, int64_t n, int64_t stride) {
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  else if (stride == 2)
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
}

// Where a step of one line moves input and output alike, all lines under a tap are one run: it is copied whole, then
// the few elements that wrapped around a border are zeroed.
template <class T>
TP_MATH bool copy_run(const ConvGeometry& g, const ConvTile& t, const T* plane, int64_t kh, Range w, int64_t kw,
                      T* to) {
  const Range h = conv_walk::inside(g, 1, kh, t.line, t.line + t.lines);
  const int64_t width = g.out[2];
  if (h.lo == h.hi || w.lo == w.hi) {
    zeros(to, t.size());
    return true;
  }
  const int64_t begin = (h.lo - t.line) * width, end = (h.hi - t.line) * width;
  zeros(to, begin);
  const T* from = plane + conv_walk::input_at(g, 1, h.lo, kh) * width + conv_walk::input_at(g, 2, 0, kw);
  copy(to + begin + w.lo, from + w.lo, end - begin - w.lo - (width - w.hi), 1);
  if (w.lo > 0 || w.hi < width)
    for (int64_t i = begin; i < end; i += width) {
      for (int64_t j = 0; j < w.lo; ++j) to[i + j] = T{};
      for (int64_t j = w.hi; j < width; ++j) to[i + j] = T{};
    }
  zeros(to + end, t.size() - end);
  return true;
}

template <class T>
void im2col(const ConvGeometry& g, const ConvTile& t, int64_t channels, const void* from, void* out) {
  const T* x = static_cast<const T*>(from);
  T* to = static_cast<T*>(out);
  const bool runs = g.in[0] == 1 && g.kernel[0] == 1 && g.out[0] == 1 && g.stride[1] == 1 && g.stride[2] == 1 &&
      g.in[2] == g.out[2] && t.first == 0 && t.width == g.out[2] && g.padding[0] == 0;
  for (int64_t c = 0; c < channels; ++c, x += g.in_plane())
    for (int64_t kd = 0; kd < g.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < g.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < g.kernel[2]; ++kw) {
          const Range w = conv_walk::inside(g, 2, kw, t.first, t.first + t.width);
          if (runs) {
            copy_run(g, t, x, kh, w, kw, to);
            to += t.size();
            continue;
          }
          for (int64_t line = t.line; line < t.line + t.lines; ++line, to += t.width) {
            const int64_t id = conv_walk::input_at(g, 0, line / g.out[1], kd);
            const int64_t ih = conv_walk::input_at(g, 1, line % g.out[1], kh);
            if (id < 0 || id >= g.in[0] || ih < 0 || ih >= g.in[1] || w.lo == w.hi) {
              zeros(to, t.width);
              continue;
            }
            const T* row = x + (id * g.in[1] + ih) * g.in[2];
            zeros(to, w.lo - t.first);
            copy(to + (w.lo - t.first), row + conv_walk::input_at(g, 2, w.lo, kw), w.hi - w.lo, g.stride[2]);
            zeros(to + (w.hi - t.first), t.first + t.width - w.hi);
          }
        }
}

template <class T>
void col2im(const ConvGeometry& g, const ConvTile& t, int64_t channels, const T* col, T* x) {
  for (int64_t c = 0; c < channels; ++c, x += g.in_plane())
    for (int64_t kd = 0; kd < g.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < g.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < g.kernel[2]; ++kw) {
          const Range w = conv_walk::inside(g, 2, kw, t.first, t.first + t.width);
          for (int64_t line = t.line; line < t.line + t.lines; ++line, col += t.width) {
            const int64_t id = conv_walk::input_at(g, 0, line / g.out[1], kd);
            const int64_t ih = conv_walk::input_at(g, 1, line % g.out[1], kh);
            if (id < 0 || id >= g.in[0] || ih < 0 || ih >= g.in[1]) continue;
            T* __restrict to = x + (id * g.in[1] + ih) * g.in[2] + conv_walk::input_at(g, 2, w.lo, kw);
            const T* __restrict from = col + (w.lo - t.first);
            const int64_t n = w.hi - w.lo, s = g.stride[2];
            if (s == 1)
              for (int64_t i = 0; i < n; ++i) to[i] += from[i];
            else
              for (int64_t i = 0; i < n; ++i) to[i * s] += from[i];
          }
        }
}

// ---- one filter a plane ----------------------------------------------------------------------------------------------

template <class T>
void plane_back(const ConvGeometry& g, const T* slope, const T* filter, T* x) {
  const int64_t s = g.stride[2], width = g.out[2];
  conv_walk::over_taps(g, [=](int64_t line, int64_t at, int64_t tap, Range w) {
    const T f = filter[tap];
    const T* __restrict from = slope + line * width + w.lo;
    T* __restrict to = x + at;
    const int64_t count = w.hi - w.lo;
    if (s == 1)
      for (int64_t i = 0; i < count; ++i) to[i] += f * from[i];
    else
      for (int64_t i = 0; i < count; ++i) to[i * s] += f * from[i];
  });
}

}  // namespace

extern const ConvTable conv_table;
const ConvTable conv_table = {{im2col<uint32_t>, im2col<uint64_t>, im2col<Item16>},
                              col2im<float>,
                              col2im<double>,
                              plane_back<float>,
                              plane_back<double>};

}  // namespace TP_ISA
}  // namespace tp
