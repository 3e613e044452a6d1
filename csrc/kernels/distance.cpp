// Splits all pairs of rows into panels and gives them to the loops of the instruction set.
#include "kernels/distance.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/errors.h"
#include "core/modes.h"
#include "kernels/axis.h"
#include "kernels/distance_table.h"
#include "kernels/matrices.h"
#include "kernels/scratch.h"
#include "kernels/staging.h"
#include "kernels/staging_table.h"

namespace tp::kernels {
namespace {

using std::int64_t;

constexpr int64_t kTileRows = 128, kTilePanels = 8;

template <class T>
const DistanceLoops<T>& loops() {
  static const DistanceTable& table = TP_PICK_TABLE(distance_table);
  if constexpr (std::is_same_v<T, float>)
    return table.f32;
  else
    return table.f64;
}

bool is_same_memory(const Storage& a, const Storage& b) {
  return a.raw() == b.raw() && a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace

Storage distance_pairs(const OpSchema& op, const Storage& x1, const Storage& x2, double p) {
  if (TP_UNLIKELY(x1.dim() < 2 || x2.dim() < 2 || x1.size(x1.dim() - 1) != x2.size(x2.dim() - 1)))
    value_error(op.name, ": matrices of ", x1.sizes(), " and ", x2.sizes(), " do not have rows of one length");
  const Distance kind = std::isinf(p) ? Distance::Chess : p == 1 ? Distance::City : Distance::Euclid;
  Promotion promotion;
  promotion.add(x1.dtype(), false, false);
  promotion.add(x2.dtype(), false, false);
  const Dtype result = real_float_dtype(op, promotion.result());
  // Distances of rows among themselves are symmetric to the last bit: half of them is computed.
  const bool mirrored = is_same_memory(x1, x2);
  const Storage a = staged_float(x1, result), b = mirrored ? a : staged_float(x2, result);
  const int64_t m = a.size(a.dim() - 2), n = b.size(b.dim() - 2), length = a.size(a.dim() - 1);
  const Storage* both[] = {&a, &b};
  const Matrices matrices(op, both);
  const int64_t batch = matrices.count();
  Storage out = empty(matrices.sizes(m, n), a.dtype());
  if (out.numel() == 0) return in_dtype(out, result);
  with_float(a.dtype(), [&]<class T>(T) {
    const DistanceLoops<T>& l = loops<T>();
    const int64_t width = l.panel;
    const int64_t row_tiles = (m + kTileRows - 1) / kTileRows, col_step = kTilePanels * width;
    const int64_t col_tiles = (n + col_step - 1) / col_step, per = row_tiles * col_tiles;
    const double ns = 0.05 * double(length) * double(std::min(m, kTileRows) * std::min(n, col_step));
    modes::Unlocked unlocked(ns * double(batch * per) > 50000);
    parallel_tiles(batch * per, grain_for(ns), [&](int64_t begin, int64_t end) {
      Scratch<T> panel(width * length);
      for (int64_t t = begin; t < end; ++t) {
        const int64_t i = t / per, row = t % per / col_tiles * kTileRows, col = t % col_tiles * col_step;
        const int64_t rows = std::min(kTileRows, m - row);
        const T* x = a.data<T>() + matrices.at(0, i) * m * length + row * length;
        const T* y = b.data<T>() + matrices.at(1, i) * n * length;
        for (int64_t j = col; j < std::min(n, col + col_step); j += width) {
          const int64_t cols = std::min(width, n - j), used = mirrored ? std::min(rows, j + cols - row) : rows;
          if (used <= 0) continue;
          if (cols < width) std::fill_n(panel.get(), width * length, T(0));
          staging->copy2d[copy2d_index(sizeof(T))](reinterpret_cast<char*>(panel.get()),
                                                   reinterpret_cast<const char*>(y + j * length), {width, 1, 1, length},
                                                   length, cols);
          T* to = out.data<T>() + i * m * n;
          l.run[int(kind)](x, panel.get(), length, used, cols, to + row * n + j, n);
          // Panels divide tiles of rows, so the square on the diagonal is whole and no other piece writes what lies below.
          if (mirrored)
            for (int64_t c = j; c < j + cols; ++c)
              for (int64_t r = row; r < std::min(row + used, j); ++r) to[c * n + r] = to[r * n + c];
        }
      }
    });
  });
  return in_dtype(out, result);
}

Storage distances_among(const OpSchema& op, const Storage& x, double p) { return distance_pairs(op, x, x, p); }

Storage weighted_differences(const OpSchema& op, const Storage& weight, const Storage& x1, const Storage& x2) {
  Promotion promotion;
  for (const Storage* s : {&weight, &x1, &x2}) {
    if (TP_UNLIKELY(s->dim() < 2)) value_error(op.name, ": matrices are needed, one operand has sizes ", s->sizes());
    promotion.add(s->dtype(), false, false);
  }
  const Dtype result = real_float_dtype(op, promotion.result());
  const Storage w = staged_float(weight, result), a = staged_float(x1, result), b = staged_float(x2, result);
  const int64_t m = a.size(a.dim() - 2), n = b.size(b.dim() - 2), length = a.size(a.dim() - 1);
  if (TP_UNLIKELY(b.size(b.dim() - 1) != length || w.size(w.dim() - 2) != m || w.size(w.dim() - 1) != n))
    value_error(op.name, ": weights of ", w.sizes(), " do not belong to rows of ", a.sizes(), " and ", b.sizes());
  const Storage* all[] = {&w, &a, &b};
  const Matrices matrices(op, all);
  Storage out = empty(matrices.sizes(m, length), a.dtype());
  if (out.numel() == 0) return in_dtype(out, result);
  with_float(a.dtype(), [&]<class T>(T) {
    constexpr int64_t kStep = 16;
    const int64_t tiles = (m + kStep - 1) / kStep;
    const double ns = 0.05 * double(length) * double(n * std::min(m, kStep));
    modes::Unlocked unlocked(ns * double(matrices.count() * tiles) > 50000);
    parallel_tiles(matrices.count() * tiles, grain_for(ns), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t i = t / tiles, row = t % tiles * kStep;
        loops<T>().weigh(w.data<T>() + (matrices.at(0, i) * m + row) * n,
                         a.data<T>() + (matrices.at(1, i) * m + row) * length,
                         b.data<T>() + matrices.at(2, i) * n * length, std::min(kStep, m - row), n, length,
                         out.data<T>() + (i * m + row) * length);
      }
    });
  });
  return in_dtype(out, result);
}

}  // namespace tp::kernels
