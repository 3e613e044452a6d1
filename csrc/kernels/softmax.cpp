// Softmax along a dimension: rows where it is the last, blocks of neighbouring columns elsewhere.
#include "kernels/softmax.h"

#include <algorithm>

#include "core/modes.h"
#include "kernels/axis.h"
#include "kernels/scratch.h"
#include "kernels/short_rows.h"
#include "kernels/softmax_table.h"
#include "kernels/streaming.h"

namespace tp::kernels {
namespace {

using std::int64_t;

/// rows(begin, end) where the dimension is innermost, columns(offset, width, stride) elsewhere.
template <class Rows, class Columns>
void along(const Axis& x, double ns_each, const Rows& rows, const Columns& columns) {
  if (x.n == 0) return;
  modes::Unlocked unlocked(double(x.outer * x.n * x.inner) * ns_each > 50000);
  if (x.inner == 1) {
    parallel_for(0, x.outer, grain_for(ns_each * double(x.n)), rows);
    return;
  }
  // Columns are taken in blocks that start at multiples of the width within one outer index.
  const int64_t blocks = (x.inner + kSoftmaxWidth - 1) / kSoftmaxWidth;
  parallel_tiles(x.outer * blocks, grain_for(ns_each * double(x.n) * kSoftmaxWidth), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t o = i / blocks, j = i % blocks * kSoftmaxWidth;
      columns(o * x.n * x.inner + j, std::min<int64_t>(kSoftmaxWidth, x.inner - j), x.inner);
    }
  });
}

/// columns(width, n, stride, operands..., to) over blocks of `count` rows of n elements.
template <class T, class F, class... From>
void short_rows(int64_t count, int64_t n, T* to, const F& columns, const From*... from) {
  const int64_t block = n * kSoftmaxWidth;
  const Scratch<T> room(block * int64_t(1 + sizeof...(From)));
  for (int64_t r = 0; r < count; r += kSoftmaxWidth) {
    const int64_t width = std::min(kSoftmaxWidth, count - r);
    T* next = room.get() + block;
    const auto turned = [&](const T* x) {
      T* const here = next;
      turn(width, n, x + r * n, n, 1, here, 1, kSoftmaxWidth);
      next += block;
      return static_cast<const T*>(here);
    };
    const T* const operands[] = {turned(from)...};
    if constexpr (sizeof...(From) == 1)
      columns(width, n, kSoftmaxWidth, operands[0], room.get());
    else
      columns(width, n, kSoftmaxWidth, operands[0], operands[1], room.get());
    turn(width, n, room.get(), 1, kSoftmaxWidth, to + r * n, n, 1);
  }
}
Storage forward(const OpSchema& op, const Storage& input, int64_t dim, std::optional<Dtype> dtype, bool log) {
  const int d = wrap_dim(op.name, dim, input.dim());
  const Dtype result = real_float_dtype(op, dtype ? *dtype : input.dtype());
  if (TP_UNLIKELY(dtype && !is_float(*dtype)))
    type_error(op.name, ": dtype must be a floating dtype; it is ", dtype_name(*dtype));
  const Storage x = staged_float(input, result);
  Storage out = empty(input.sizes(), x.dtype());
  const Axis a = axis_of(input.sizes(), d);
  with_float(x.dtype(), [&]<class T>(T) {
    const T* from = x.data<T>();
    T* to = out.data<T>();
    const SoftmaxLoops<T>& l = softmax_loops<T>();
    const bool streamed = streams_rows(a.outer, a.n * int64_t(sizeof(T)));
    along(
        a, 0.5,
        [&](int64_t b, int64_t e) {
          if (are_short(a))
            return short_rows(e - b, a.n, to + b * a.n, log ? l.log_softmax_columns : l.softmax_columns,
                              from + b * a.n);
          const auto rows = log ? l.log_softmax : l.softmax;
          if (!streamed) return rows(e - b, a.n, from + b * a.n, to + b * a.n);
          write_rows(to, a.n, b, e, true, {from}, [&](int64_t i, T* row) { rows(1, a.n, from + i * a.n, row); });
        },
        [&](int64_t at, int64_t width, int64_t stride) {
          (log ? l.log_softmax_columns : l.softmax_columns)(width, a.n, stride, from + at, to + at);
        });
  });
  return in_dtype(out, result);
}

Storage backward(const OpSchema& op, const Storage& g, const Storage& out, int64_t dim, bool log) {
  if (TP_UNLIKELY(!(g.sizes() == out.sizes())))
    value_error(op.name, ": g and out differ in sizes: ", g.sizes(), " and ", out.sizes());
  const int d = wrap_dim(op.name, dim, out.dim());
  const Dtype result = real_float_dtype(op, promote_types(g.dtype(), out.dtype()));
  const Storage sg = staged_float(g, result), sy = staged_float(out, result);
  Storage gx = empty(out.sizes(), sg.dtype());
  const Axis a = axis_of(out.sizes(), d);
  with_float(sg.dtype(), [&]<class T>(T) {
    const T *pg = sg.data<T>(), *py = sy.data<T>();
    T* to = gx.data<T>();
    const SoftmaxLoops<T>& l = softmax_loops<T>();
    const bool streamed = streams_rows(a.outer, a.n * int64_t(sizeof(T)));
    along(
        a, 0.5,
        [&](int64_t b, int64_t e) {
          if (are_short(a))
            return short_rows(e - b, a.n, to + b * a.n,
                              log ? l.log_softmax_backward_columns : l.softmax_backward_columns, pg + b * a.n,
                              py + b * a.n);
          const auto rows = log ? l.log_softmax_backward : l.softmax_backward;
          if (!streamed) return rows(e - b, a.n, pg + b * a.n, py + b * a.n, to + b * a.n);
          write_rows(to, a.n, b, e, true, {pg, py},
                     [&](int64_t i, T* row) { rows(1, a.n, pg + i * a.n, py + i * a.n, row); });
        },
        [&](int64_t at, int64_t width, int64_t stride) {
          (log ? l.log_softmax_backward_columns : l.softmax_backward_columns)(width, a.n, stride, pg + at, py + at,
                                                                              to + at);
        });
  });
  return in_dtype(gx, result);
}

}  // namespace

Storage softmax(const OpSchema& op, const Storage& input, int64_t dim, std::optional<Dtype> dtype) {
  return forward(op, input, dim, dtype, false);
}
Storage log_softmax(const OpSchema& op, const Storage& input, int64_t dim, std::optional<Dtype> dtype) {
  return forward(op, input, dim, dtype, true);
}
Storage softmax_backward(const OpSchema& op, const Storage& g, const Storage& out, int64_t dim) {
  return backward(op, g, out, dim, false);
}
Storage log_softmax_backward(const OpSchema& op, const Storage& g, const Storage& out, int64_t dim) {
  return backward(op, g, out, dim, true);
}

}  // namespace tp::kernels
