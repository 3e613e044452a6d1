// Pooling of one plane, tap by tap over whole output lines.
#include "kernels/pool_table.h"

#include <utility>

#include "kernels/conv_walk.h"
#include "kernels/isa/lanes.h"
#include "kernels/isa/vectors.h"

namespace tp {
namespace TP_ISA {
namespace {

using conv_walk::Range;

template <class T>
TP_MATH T lowest() {
  if constexpr (__is_same(T, int64_t))
    return INT64_MIN;
  else
    return -m::detail::kInf<T>;
}

// A NaN wins over every number, as in the comparison of maximum; the first of equal elements stays.
template <class T>
TP_MATH void take_larger(T v, int32_t where, T* best, int32_t* at) {
  const bool larger = v > *best || v != v;
  *best = larger ? v : *best;
  *at = larger ? where : *at;
}

/// The input index of the first tap of window o that is inside.
TP_MATH int64_t first_inside(const ConvGeometry& g, int d, int64_t o) {
  const int64_t before = conv_walk::at_least(0, g.padding[d] - o * g.stride[d]);
  return conv_walk::input_at(g, d, o, conv_walk::ceil_div(before, g.dilation[d]));
}

// Every other element of two vectors, from the first or from the second on.
template <int kFrom, class V, int... i>
TP_FORCE V every_other(V a, V b, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(a, b, (2 * i + kFrom)...);
}

template <int kBytes>
struct PlaceFor {
  using type = int64_t;
};
template <>
struct PlaceFor<4> {
  using type = int32_t;
};
template <int kBytes>
using PlaceOf = typename PlaceFor<kBytes>::type;

// Windows of two by two side by side, in one pass over a line: lines are short, and four passes over each cost more than
// they do. A line's last vector overlaps the one before it.
template <class T>
TP_FORCE void two_by_two(const T* upper, const T* lower, int64_t place, int64_t below, T* out, int64_t* at) {
  constexpr int L = Vector<T>::lanes;
  using V = Vec<T>;
  using Place = PlaceOf<sizeof(T)>;
  using I = Vec<Place>;
  typedef int64_t Long __attribute__((vector_size(L * 8)));
  typedef int64_t LongUnaligned __attribute__((vector_size(L * 8), aligned(8), may_alias));
  constexpr std::make_integer_sequence<int, L> all;
  const V row[2][2] = {{load(upper), load(upper + L)}, {load(lower), load(lower + L)}};
  V best = every_other<0>(row[0][0], row[0][1], all);
  I where = {};
  const auto take = [&](V v, int64_t place_of) {
    const auto larger = (v > best) | (v != v);
    best = larger ? v : best;
    where = larger ? I{} + Place(place_of) : where;
  };
  take(every_other<1>(row[0][0], row[0][1], all), 1);
  take(every_other<0>(row[1][0], row[1][1], all), below);
  take(every_other<1>(row[1][0], row[1][1], all), below + 1);
  store(out, best);
  I count;
  for (int k = 0; k < L; ++k) count[k] = Place(2 * k);
  *reinterpret_cast<LongUnaligned*>(at) = __builtin_convertvector(where + count, Long) + place;
}

template <class T>
void max_two_by_two(const ConvGeometry& g, const T* x, T* __restrict out, int64_t* __restrict at) {
  constexpr int L = Vector<T>::lanes;
  const int64_t width = g.out[2], below = g.in[2];
  for (int64_t line = 0; line < g.lines(); ++line, out += width, at += width) {
    const int64_t start = (line / g.out[1] * g.in[1] + 2 * (line % g.out[1])) * g.in[2];
    const T *upper = x + start, *lower = upper + below;
    const auto vector = [&](int64_t j) {
      two_by_two(upper + 2 * j, lower + 2 * j, start + 2 * j, below, out + j, at + j);
    };
    int64_t j = 0;
    for (; j + L <= width; j += L) vector(j);
    if (j < width && width >= L) vector(width - L), j = width;
    for (; j < width; ++j) {
      T best = upper[2 * j];
      int32_t where = 0;
      take_larger(upper[2 * j + 1], 1, &best, &where);
      take_larger(lower[2 * j], int32_t(below), &best, &where);
      take_larger(lower[2 * j + 1], int32_t(below) + 1, &best, &where);
      out[j] = best;
      at[j] = start + 2 * j + where;
    }
  }
}

template <class T>
void max(const ConvGeometry& g, const T* x, T* out, int64_t* at, int32_t* room) {
  bool halves = g.kernel[0] == 1 && g.stride[0] == 1 && g.padding[0] == 0;
  for (int d = 1; d < 3; ++d)
    halves &=
        g.kernel[d] == 2 && g.stride[d] == 2 && g.padding[d] == 0 && g.dilation[d] == 1 && 2 * g.out[d] <= g.in[d];
  if (halves) return max_two_by_two(g, x, out, at);
  const int64_t width = g.out[2], step = g.stride[2];
  // What divides is worked out once a plane: where windows start along a line, and which of them a tap is inside of.
  int32_t* starts = room + width;
  for (int64_t j = 0; j < width; ++j) starts[j] = int32_t(first_inside(g, 2, j));
  constexpr int64_t kKept = 16;
  Range kept[kKept];
  for (int64_t kw = 0; kw < g.kernel[2] && kw < kKept; ++kw) kept[kw] = conv_walk::inside(g, 2, kw, 0, width);
  // Line by line: all taps of a line while it is in the first cache.
  for (int64_t line = 0; line < g.lines(); ++line) {
    T* __restrict best = out + line * width;
    int32_t* __restrict where = room;
    const int64_t od = line / g.out[1], oh = line % g.out[1];
    // A window that holds nothing but -inf points at its first element.
    const int64_t corner = (first_inside(g, 0, od) * g.in[1] + first_inside(g, 1, oh)) * g.in[2];
    for (int64_t j = 0; j < width; ++j) {
      best[j] = lowest<T>();
      where[j] = int32_t(corner) + starts[j];
    }
    for (int64_t kd = 0; kd < g.kernel[0]; ++kd) {
      const int64_t id = conv_walk::input_at(g, 0, od, kd);
      if (id < 0 || id >= g.in[0]) continue;
      for (int64_t kh = 0; kh < g.kernel[1]; ++kh) {
        const int64_t ih = conv_walk::input_at(g, 1, oh, kh);
        if (ih < 0 || ih >= g.in[1]) continue;
        for (int64_t kw = 0; kw < g.kernel[2]; ++kw) {
          const Range w = kw < kKept ? kept[kw] : conv_walk::inside(g, 2, kw, 0, width);
          const int64_t start = (id * g.in[1] + ih) * g.in[2] + conv_walk::input_at(g, 2, w.lo, kw);
          const T* __restrict from = x + start;
          T* __restrict b = best + w.lo;
          int32_t* __restrict p = where + w.lo;
          const int64_t n = w.hi - w.lo;
          const int32_t first = int32_t(start), s = int32_t(step);
          if (s == 1)
            for (int64_t j = 0; j < n; ++j) take_larger(from[j], first + int32_t(j), b + j, p + j);
          else if (s == 2)
            for (int64_t j = 0; j < n; ++j) take_larger(from[2 * j], first + 2 * int32_t(j), b + j, p + j);
          else
            for (int64_t j = 0; j < n; ++j) take_larger(from[j * s], first + s * int32_t(j), b + j, p + j);
        }
      }
    }
    int64_t* __restrict to = at + line * width;
    for (int64_t j = 0; j < width; ++j) to[j] = where[j];
  }
}

template <class T>
void sum(const ConvGeometry& g, const T* x, T* out) {
  const int64_t width = g.out[2], s = g.stride[2];
  for (int64_t i = 0; i < g.out_plane(); ++i) out[i] = T(0);
  conv_walk::over_taps(g, [=](int64_t line, int64_t at, int64_t, Range w) {
    T* __restrict to = out + line * width + w.lo;
    const T* __restrict from = x + at;
    const int64_t n = w.hi - w.lo;
    if (s == 1)
      for (int64_t j = 0; j < n; ++j) to[j] += from[j];
    else if (s == 2)
      for (int64_t j = 0; j < n; ++j) to[j] += from[2 * j];
    else
      for (int64_t j = 0; j < n; ++j) to[j] += from[j * s];
  });
}

template <class T>
void sum_back(const ConvGeometry& g, const T* slope, T* x) {
  const int64_t width = g.out[2], s = g.stride[2];
  conv_walk::over_taps(g, [=](int64_t line, int64_t at, int64_t, Range w) {
    const T* __restrict from = slope + line * width + w.lo;
    T* __restrict to = x + at;
    const int64_t n = w.hi - w.lo;
    if (s == 1)
      for (int64_t j = 0; j < n; ++j) to[j] += from[j];
    else
      for (int64_t j = 0; j < n; ++j) to[j * s] += from[j];
  });
}

template <class T>
double box(const T* x, const int64_t* n, int64_t plane, int64_t line) {
  int64_t depth = n[0], height = n[1], width = n[2];
  if (width == line) {
    width *= height, height = 1;
    if (width == plane) width *= depth, depth = 1;
  }
  double total = 0;
  for (int64_t d = 0; d < depth; ++d)
    for (int64_t h = 0; h < height; ++h) {
      const T* from = x + d * plane + h * line;
      // Four sums in lanes; a chain of additions would wait for each.
      constexpr int kLanes = TP_VECTOR_BYTES / 8;
      typedef T Part __attribute__((vector_size(kLanes * sizeof(T)), aligned(sizeof(T)), may_alias));
      Vec<double> acc[4] = {};
      int64_t i = 0;
      for (; i + 4 * kLanes <= width; i += 4 * kLanes)
        for (int k = 0; k < 4; ++k)
          acc[k] += __builtin_convertvector(*reinterpret_cast<const Part*>(from + i + k * kLanes), Vec<double>);
      double lanes[kLanes];
      store(lanes, (acc[0] + acc[1]) + (acc[2] + acc[3]));
      for (int half = kLanes / 2; half > 0; half /= 2)
        for (int k = 0; k < half; ++k) lanes[k] += lanes[k + half];
      double sum = lanes[0];
      for (; i < width; ++i) sum += double(from[i]);
      total += sum;
    }
  return total;
}

}  // namespace

extern const PoolTable pool_table;
const PoolTable pool_table = {{max<float>, sum<float>, sum_back<float>},
                              {max<double>, sum<double>, sum_back<double>},
                              {max<int64_t>, sum<int64_t>, sum_back<int64_t>},
                              box<float>,
                              box<double>};

}  // namespace TP_ISA
}  // namespace tp
