// The walk: merging of dimensions, the shape of tiles, staging buffers, threads.
#include "kernels/tiles.h"

#include <algorithm>
#include <cstring>

#include "core/errors.h"
#include "core/modes.h"
#include "kernels/scratch.h"
#include "kernels/staging.h"
#include "kernels/streaming.h"

namespace tp::kernels {
namespace {

constexpr std::int64_t kStrip = 163840;       // bytes of a tile when an operand is transposed
constexpr std::int64_t kDirectRow = 256;      // rows this long are used where they lie
constexpr std::int64_t kDirectBlock = 16384;  // elements of a block when nothing is staged
constexpr std::size_t kAlign = 64;

std::int64_t magnitude(std::int64_t v) { return v < 0 ? -v : v; }

struct TileShape {
  std::int64_t rows, cols;
};

// Moves a dimension along which some operand is contiguous to place 1, when the operand is not contiguous along place 0:
// a square tile then uses every cache line it touches.
bool bring_transposed_dim(Walk& w) {
  if (w.num_dims < 2 || w.sizes[0] < 8) return false;
  for (int o = 0; o < w.num_operands; ++o) {
    if (magnitude(w.strides[o][0]) <= 1) continue;
    for (int d = 1; d < w.num_dims; ++d) {
      if (magnitude(w.strides[o][d]) != 1 || w.sizes[d] < 8) continue;
      std::swap(w.sizes[1], w.sizes[d]);
      for (int p = 0; p < w.num_operands; ++p) std::swap(w.strides[p][1], w.strides[p][d]);
      return true;
    }
  }
  return false;
}

// Where an operand is transposed: half a page of its memory at a time, so that it is read in streams and no page is left
// soon; what is left of the tile's size is the length of its rows. Less where other operands are read along those rows.
TileShape strip_shape(const Walk& w, int item, bool copy) {
  const std::int64_t rows = std::min(w.sizes[1], std::clamp<std::int64_t>((copy ? 2048 : 512) / item, 8, 512));
  // An odd number of lines: the rows of the strip do not meet in the same sets of the cache.
  const std::int64_t lines = (kStrip / (rows * 64) - 1) | 1;
  return {rows, std::min(w.sizes[0], lines * 64 / item)};
}

TileShape tile_shape(const Walk& w, bool staged) {
  const std::int64_t s0 = w.num_dims > 0 ? w.sizes[0] : 1, s1 = w.num_dims > 1 ? w.sizes[1] : 1;
  const std::int64_t block = staged ? kStage : kDirectBlock, cols = std::min(s0, block);
  return {std::min(s1, block / cols), cols};
}

// The position of one thread in the grid of tiles, and each operand's address there.
class Cursor {
 public:
  Cursor(const Walk& w, std::span<const TileOperand> ops, TileShape tile, std::int64_t at)
      : w_(w), ops_(ops), tile_(tile) {
    for (int d = 0; d < w.num_dims; ++d) {
      const std::int64_t step = step_of(d), count = (w.sizes[d] + step - 1) / step;
      index_[d] = at % count * step;
      at /= count;
    }
    for (std::size_t o = 0; o < ops.size(); ++o) {
      std::int64_t offset = 0;
      for (int d = 0; d < w.num_dims; ++d) offset += index_[d] * w.strides[o][d];
      at_[o] = ops[o].base + offset * ops[o].item;
    }
  }
  std::int64_t rows() const { return w_.num_dims > 1 ? std::min(tile_.rows, w_.sizes[1] - index_[1]) : 1; }
  std::int64_t cols() const { return w_.num_dims > 0 ? std::min(tile_.cols, w_.sizes[0] - index_[0]) : 1; }
  char* at(std::size_t o) const { return at_[o]; }

  void advance() {
    for (int d = 0; d < w_.num_dims; ++d) {
      const std::int64_t step = step_of(d);
      if (index_[d] + step < w_.sizes[d]) {
        move(d, step);
        return;
      }
      move(d, -index_[d]);
    }
  }

 private:
  std::int64_t step_of(int d) const { return d == 0 ? tile_.cols : d == 1 ? tile_.rows : 1; }
  void move(int d, std::int64_t by) {
    index_[d] += by;
    for (std::size_t o = 0; o < ops_.size(); ++o) at_[o] += by * w_.strides[o][d] * ops_[o].item;
  }

  const Walk& w_;
  std::span<const TileOperand> ops_;
  TileShape tile_;
  std::int64_t index_[kMaxWalkDims];
  char* at_[kMaxOperands];
};

std::int64_t stride(const Walk& w, std::size_t o, int d) { return d < w.num_dims ? w.strides[o][d] : 0; }

struct Runner {
  const Walk& walk;
  std::span<const TileOperand> ops;
  Loop loop;
  const Scalar* params;
  TileShape tile;
  bool by_rows;   // long rows of several: the loop runs row by row
  bool streamed;  // the output is contiguous along rows, too large for the caches, and no input

  bool lies_flat(std::size_t o, std::int64_t rows, std::int64_t cols) const {
    const std::int64_t s0 = stride(walk, o, 0), s1 = stride(walk, o, 1);
    return (s0 == 1 || cols == 1) && (rows == 1 || s1 == cols);
  }

  void gather(std::size_t o, char* to, const char* from, std::int64_t rows, std::int64_t cols) const {
    const Copy2dStrides s{cols, 1, stride(walk, o, 1), stride(walk, o, 0)};
    staging->copy2d[copy2d_index(std::size_t(ops[o].item))](to, from, s, rows, cols);
  }
  void scatter(char* to, const char* from, std::int64_t rows, std::int64_t cols) const {
    const Copy2dStrides s{stride(walk, 0, 1), stride(walk, 0, 0), cols, 1};
    staging->copy2d[copy2d_index(std::size_t(ops[0].item))](to, from, s, rows, cols);
  }

  void stream_rows(char* to, const char* from, std::int64_t rows, std::int64_t cols) const {
    const std::int64_t step = stride(walk, 0, 1) * ops[0].item, bytes = cols * ops[0].item;
    if (rows == 1 || step == bytes) return stream(to, from, rows * bytes);
    for (std::int64_t r = 0; r < rows; ++r) stream(to + r * step, from + r * bytes, bytes);
  }

  void operator()(std::int64_t begin, std::int64_t end) const {
    const std::size_t n = ops.size();
    const std::int64_t elements = tile.rows * tile.cols;
    // One block of the loop's type and one of memory's type for each operand that needs them.
    std::size_t total = kAlign;
    for (const TileOperand& op : ops)
      total += room(elements, op.block_item) + (op.convert ? room(elements, op.item) : 0);
    const bool on_heap = total > (std::size_t(1) << 19);
    char* memory = on_heap ? new char[total] : static_cast<char*>(__builtin_alloca(total));
    char* free = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory) + kAlign - 1) / kAlign * kAlign);
    char *block[kMaxOperands], *raw[kMaxOperands];
    const char* loaded[kMaxOperands];
    for (std::size_t o = 0; o < n; ++o) {
      block[o] = free;
      free += room(elements, ops[o].block_item);
      raw[o] = ops[o].convert ? free : block[o];
      if (ops[o].convert) free += room(elements, ops[o].item);
      loaded[o] = nullptr;
    }

    Cursor cursor(walk, ops, tile, begin);
    std::int64_t loaded_rows = 0, loaded_cols = 0;
    for (std::int64_t i = begin; i < end; ++i, cursor.advance()) {
      const std::int64_t rows = cursor.rows(), cols = cursor.cols(), count = rows * cols;
      char* data[kMaxOperands];
      for (std::size_t o = 1; o < n; ++o) {
        const char* from = cursor.at(o);
        const bool flat = lies_flat(o, rows, cols);
        if (!ops[o].convert && (flat || (by_rows && stride(walk, o, 0) == 1))) {
          data[o] = const_cast<char*>(from);
          continue;
        }
        data[o] = block[o];
        // A broadcast operand stands still: its block is still right.
        if (loaded[o] == from && loaded_rows == rows && loaded_cols == cols) continue;
        if (!flat) gather(o, raw[o], from, rows, cols);
        if (ops[o].convert) ops[o].convert(block[o], flat ? from : raw[o], count);
        loaded[o] = from;
      }
      loaded_rows = rows, loaded_cols = cols;
      char* to = cursor.at(0);
      if (by_rows) {
        run_rows(cursor, data, block[0], rows, cols);
        if (data[0] == to) continue;
      } else if (loop) {
        data[0] = lies_flat(0, rows, cols) && !ops[0].convert && !streamed ? to : block[0];
        loop(count, data, params);
      } else {
        data[0] = data[1];
      }
      if (ops[0].convert) {
        char* converted = lies_flat(0, rows, cols) && !streamed ? to : raw[0];
        ops[0].convert(converted, data[0], count);
        data[0] = converted;
      }
      if (data[0] == to) continue;
      if (!streamed) {
        scatter(to, data[0], rows, cols);
        continue;
      }
      stream_rows(to, data[0], rows, cols);
      for (std::size_t o = 1; o < n; ++o)
        if (lies_flat(o, rows, cols)) prefetch(cursor.at(o) + count * ops[o].item, count * ops[o].item);
    }
    if (streamed) stream_fence();
    if (on_heap) delete[] memory;
  }

  // One call a row: operands that are contiguous along rows are used where they are.
  void run_rows(const Cursor& cursor, char** data, char* block, std::int64_t rows, std::int64_t cols) const {
    const bool direct = !ops[0].convert && stride(walk, 0, 0) == 1;
    if (direct && streamed) return stream_each_row(cursor, data, block, rows, cols);
    data[0] = direct ? cursor.at(0) : block;
    std::int64_t step[kMaxOperands];
    bool flat = true;
    for (std::size_t o = 0; o < ops.size(); ++o) {
      step[o] = data[o] == cursor.at(o) ? stride(walk, o, 1) * ops[o].item : cols * ops[o].block_item;
      flat &= step[o] == cols * ops[o].block_item;
    }
    if (flat) return loop(rows * cols, data, params);
    char* row[kMaxOperands];
    for (std::size_t o = 0; o < ops.size(); ++o) row[o] = data[o];
    for (std::int64_t r = 0; r < rows; ++r) {
      loop(cols, row, params);
      for (std::size_t o = 0; o < ops.size(); ++o) row[o] += step[o];
    }
  }

  // The same into a block of one row, which leaves at once.
  void stream_each_row(const Cursor& cursor, char** data, char* block, std::int64_t rows, std::int64_t cols) const {
    char* row[kMaxOperands];
    std::int64_t step[kMaxOperands];
    for (std::size_t o = 1; o < ops.size(); ++o) {
      row[o] = data[o];
      step[o] = data[o] == cursor.at(o) ? stride(walk, o, 1) * ops[o].item : cols * ops[o].block_item;
    }
    row[0] = block;
    data[0] = cursor.at(0);
    for (std::int64_t r = 0; r < rows; ++r) {
      loop(cols, row, params);
      for (std::size_t o = 1; o < ops.size(); ++o) row[o] += step[o];
      stream(data[0] + r * stride(walk, 0, 1) * ops[0].item, block, cols * ops[0].item);
      for (std::size_t o = 1; o < ops.size(); ++o)
        if (step[o] && data[o] == cursor.at(o)) prefetch(row[o], cols * ops[o].item);
    }
  }

  static std::size_t room(std::int64_t elements, int item) {
    return (std::size_t(elements) * std::size_t(item) + kAlign - 1) / kAlign * kAlign;
  }
};

// Same bytes on both sides: no staging, one strided copy a tile.
struct Copier {
  const Walk& walk;
  std::span<const TileOperand> ops;
  TileShape tile;
  bool streamed;  // rows of both are contiguous and too many for the caches

  void operator()(std::int64_t begin, std::int64_t end) const {
    const Copy2dFn copy = staging->copy2d[copy2d_index(std::size_t(ops[0].item))];
    const Copy2dStrides s{stride(walk, 0, 1), stride(walk, 0, 0), stride(walk, 1, 1), stride(walk, 1, 0)};
    Cursor cursor(walk, ops, tile, begin);
    for (std::int64_t i = begin; i < end; ++i, cursor.advance()) {
      if (!streamed) {
        copy(cursor.at(0), cursor.at(1), s, cursor.rows(), cursor.cols());
        continue;
      }
      const std::int64_t item = ops[0].item;
      for (std::int64_t r = 0; r < cursor.rows(); ++r)
        stream(cursor.at(0) + r * s.to_row * item, cursor.at(1) + r * s.from_row * item, cursor.cols() * item);
    }
    if (streamed) stream_fence();
  }
};

}  // namespace

Walk make_walk(std::string_view op, const Shape& sizes, std::span<const Storage* const> operands) {
  Walk w;
  w.num_operands = int(operands.size());
  const int ndim = sizes.size();
  int order[64];
  if (TP_UNLIKELY(ndim > 64)) not_implemented(op, ": more than 64 dimensions (", ndim, ")");
  for (int i = 0; i < ndim; ++i) order[i] = ndim - 1 - i;
  const Storage& first = *operands[0];
  // Memory order of the output, innermost first; stable, so equal strides keep the index order.
  if (!first.is_contiguous() && first.dim() == ndim)
    std::stable_sort(order, order + ndim, [&](int a, int b) {
      if (first.stride(a) == 0 || first.stride(b) == 0) return false;
      return magnitude(first.stride(a)) < magnitude(first.stride(b));
    });

  for (int i = 0; i < ndim; ++i) {
    const int d = order[i];
    if (sizes[d] == 1) continue;
    std::int64_t step[kMaxOperands];
    bool merges = w.num_dims > 0;
    for (int o = 0; o < w.num_operands; ++o) {
      const Storage& s = *operands[o];
      const int own = d - (ndim - s.dim());
      step[o] = own < 0 || s.size(own) == 1 ? 0 : s.stride(own);
      if (merges) merges = step[o] == w.strides[o][w.num_dims - 1] * w.sizes[w.num_dims - 1];
    }
    if (merges) {
      w.sizes[w.num_dims - 1] *= sizes[d];
      continue;
    }
    if (TP_UNLIKELY(w.num_dims == kMaxWalkDims))
      not_implemented(op, ": operands with more than ", kMaxWalkDims,
                      " dimensions that cannot be merged; call contiguous() first");
    w.sizes[w.num_dims] = sizes[d];
    for (int o = 0; o < w.num_operands; ++o) w.strides[o][w.num_dims] = step[o];
    ++w.num_dims;
  }
  return w;
}

void run_tiles(Walk& walk, std::span<const TileOperand> ops, Loop loop, const Scalar* params) {
  const std::int64_t numel = walk.numel();
  if (numel == 0) return;
  bool staged = false;
  for (std::size_t o = 0; o < ops.size(); ++o)
    staged |= ops[o].convert != nullptr || (walk.num_dims > 0 && walk.strides[o][0] != 1);
  const bool transposed = bring_transposed_dim(walk);
  const bool plain_copy = !loop && !ops[0].convert && !ops[1].convert;
  bool streamed = streams(std::size_t(numel) * std::size_t(ops[0].item)) && walk.num_dims > 0 &&
      walk.strides[0][0] == 1 && walk.sizes[0] * ops[0].item >= 256;
  for (std::size_t o = 1; o < ops.size(); ++o) streamed &= ops[o].base != ops[0].base;
  TileShape tile;
  if (transposed) {
    int item = 1;
    for (const TileOperand& op : ops) item = std::max(item, std::max(op.item, op.block_item));
    tile = strip_shape(walk, item, ops.size() == 2);
  } else if (plain_copy) {
    const std::int64_t s0 = walk.num_dims > 0 ? walk.sizes[0] : 1, s1 = walk.num_dims > 1 ? walk.sizes[1] : 1;
    const std::int64_t cols = std::min(s0, kDirectBlock);
    tile = {std::max<std::int64_t>(1, std::min(s1, kDirectBlock / cols)), cols};
  } else {
    tile = tile_shape(walk, staged || (walk.num_dims > 1 && walk.sizes[0] < kDirectRow));
    if (streamed) tile.cols = std::min(tile.cols, kStreamTile / ops[0].item);
  }
  std::int64_t tiles = 1;
  for (int d = 0; d < walk.num_dims; ++d) {
    const std::int64_t step = d == 0 ? tile.cols : d == 1 ? tile.rows : 1;
    tiles *= (walk.sizes[d] + step - 1) / step;
  }
  const std::int64_t grain = std::max<std::int64_t>(1, kParallelFrom / 2 / std::max<std::int64_t>(1, numel / tiles));
  modes::Unlocked unlocked(numel >= kUnlockFrom);
  const auto run = [&](const auto& body) {
    if (numel < kParallelFrom)
      body(0, tiles);
    else
      parallel_tiles(tiles, grain, body);
  };
  const bool long_rows = tile.cols >= (transposed ? 64 : kDirectRow / 2);
  // A small transposed copy goes straight to its place; a large one through a strip in cache.
  if (plain_copy && !(transposed && long_rows))
    run(Copier{walk, ops, tile, streamed && walk.strides[1][0] == 1});
  else
    run(Runner{walk, ops, loop, params, tile, loop && tile.rows > 1 && long_rows, streamed});
}

Extent extent(const Storage& s) {
  const std::int64_t item = std::int64_t(item_size(s.dtype()));
  const char* first = s.raw();
  if (s.numel() == 0) return {first, first};
  std::int64_t low = 0, high = 0;
  for (int d = 0; d < s.dim(); ++d) {
    const std::int64_t reach = (s.size(d) - 1) * s.stride(d);
    (reach < 0 ? low : high) += reach;
  }
  return {first + low * item, first + (high + 1) * item};
}

bool same_elements(const Storage& a, const Storage& b) {
  if (a.raw() != b.raw() || a.dtype() != b.dtype() || !(a.sizes() == b.sizes())) return false;
  for (int d = 0; d < a.dim(); ++d)
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) return false;
  return true;
}

bool has_internal_overlap(const Storage& s) {
  if (s.is_contiguous() || s.numel() <= 1) return false;
  int order[64], n = 0;
  for (int d = 0; d < s.dim() && n < 64; ++d)
    if (s.size(d) > 1) order[n++] = d;
  std::sort(order, order + n, [&](int a, int b) { return magnitude(s.stride(a)) < magnitude(s.stride(b)); });
  std::int64_t reach = 0;  // how far the smaller strides get
  for (int i = 0; i < n; ++i) {
    const std::int64_t step = magnitude(s.stride(order[i]));
    if (step <= reach) return true;
    reach += step * (s.size(order[i]) - 1);
  }
  return false;
}

}  // namespace tp::kernels
