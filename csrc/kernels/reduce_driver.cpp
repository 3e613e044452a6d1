// The walk of a reduction: which dimension runs inside, staging, chunks for threads. Chunks follow from the sizes alone.
#include "kernels/reduce_driver.h"

#include <algorithm>
#include <optional>

#include "core/modes.h"
#include "kernels/scratch.h"
#include "kernels/tiles.h"

namespace tp::kernels {

const ReduceTable* const folds = &TP_PICK_TABLE(reduce_table);
const ExtremeTable* const extremes = &TP_PICK_TABLE(extreme_table);

namespace {

// Outputs of one unit when rows are folded into a row of accumulators: many, so that rows are read as they lie, or few, so
// that there is one for each thread.
constexpr std::int64_t kColumns = kFoldColumns, kFewColumns = 1024;
constexpr std::int64_t kRows = 256;  // outputs of one unit when each is folded along itself,
constexpr std::int64_t kRowsElements =
    16384;  // and elements of each run of such a unit, unless one of a single output has more
constexpr std::int64_t kStaged = 8192;  // elements of a staged tile of columns,
constexpr std::int64_t kStagedRows = 2048;  // of rows: folded once, in the first cache
constexpr std::int64_t kShortRun = 48;  // shorter runs are folded across outputs instead of along themselves
constexpr std::int64_t kChunk = 65536;  // elements a chunk of one output has at least
constexpr std::int64_t kChunkRows = 256;  // and rows, where merging its accumulators counts
constexpr std::int64_t kMaxChunks = 16;
constexpr std::int64_t kFewUnits = 8;
constexpr int kMaxDims = 64;

std::int64_t magnitude(std::int64_t v) { return v < 0 ? -v : v; }

// One group of dimensions, innermost first.
struct Axes {
  int n = 0;
  std::int64_t size[kMaxDims], in[kMaxDims], out[kMaxDims];

  Axes() noexcept {}  // not defaulted: value-initialisation would clear three kilobytes

  std::int64_t numel() const {
    std::int64_t total = 1;
    for (int i = 0; i < n; ++i) total *= size[i];
    return total;
  }
  void add(std::int64_t s, std::int64_t in_stride, std::int64_t out_stride) {
    if (s == 1) return;
    size[n] = s, in[n] = in_stride, out[n] = out_stride;
    ++n;
  }
  void sort_by_stride() {
    for (int i = 1; i < n; ++i)
      for (int j = i; j > 0 && magnitude(in[j]) < magnitude(in[j - 1]); --j) {
        std::swap(size[j], size[j - 1]);
        std::swap(in[j], in[j - 1]);
        std::swap(out[j], out[j - 1]);
      }
  }
  void merge() {
    int kept = 0;
    for (int i = 0; i < n; ++i) {
      if (kept && in[i] == in[kept - 1] * size[kept - 1] && out[i] == out[kept - 1] * size[kept - 1]) {
        size[kept - 1] *= size[i];
        continue;
      }
      size[kept] = size[i], in[kept] = in[i], out[kept] = out[i];
      ++kept;
    }
    n = kept;
  }
  void remove(int at) {
    for (int i = at; i + 1 < n; ++i) size[i] = size[i + 1], in[i] = in[i + 1], out[i] = out[i + 1];
    --n;
  }
  /// Offsets of linear position `i` among the dimensions from `first` on.
  void locate(int first, std::int64_t i, std::int64_t& in_offset, std::int64_t& out_offset) const {
    for (int d = first; d < n; ++d) {
      const std::int64_t k = i % size[d];
      in_offset += k * in[d];
      out_offset += k * out[d];
      i /= size[d];
    }
  }
};

struct Staging {
  int item;  // bytes in memory
  ConvertFn to_via;  // memory to `via`, or null
  ConvertFn convert;  // to the map's input (or the block), or null
  const BlockMap* map;
  double map_param;
  bool needed() const { return to_via || convert || map; }
};

struct Target {
  char* data = nullptr;
  int item = 0;
  ConvertFn convert = nullptr;
};

// Two buffers of one thread that staging steps alternate between.
class StageBuffers {
 public:
  explicit StageBuffers(std::int64_t elements) : half_(std::size_t(elements) * 16) {
    if (elements) memory_.emplace(2 * half_);
  }
  char* half(int i) const { return static_cast<char*>(memory_->get()) + std::size_t(i) * half_; }

 private:
  std::size_t half_;
  std::optional<ScratchBytes> memory_;
};

// What one thread needs for `width` outputs besides staging: on the stack where they are few.
class Workspace {
 public:
  Workspace(std::int64_t width, std::size_t accumulator_bytes) : width_(std::size_t(width)) {
    const std::size_t bytes = 2 * kResult * width_ + accumulator_bytes;
    base_ = bytes <= sizeof few_ ? few_ : static_cast<char*>(many_.emplace(bytes).get());
  }
  char* results() const { return base_; }
  char* converted() const { return base_ + kResult * width_; }
  char* accumulators() const { return base_ + 2 * kResult * width_; }

 private:
  static constexpr std::size_t kResult = 16;  // bytes of the largest type
  alignas(64) char few_[4096];
  std::optional<ScratchBytes> many_;
  std::size_t width_;
  char* base_;
};

struct Folder {
  const FoldCall& call;
  const FoldKernel& kernel;
  Axes kept, folded;
  Staging staging_steps;
  Target out, index;
  const char* base;
  bool by_columns;
  bool out_is_block;  // results have the type of the blocks
  std::int64_t width;  // outputs of a unit: neighbours along kept dimension 0
  std::int64_t count;  // elements folded into each output

  bool staged() const {
    if (staging_steps.needed()) return true;
    return by_columns ? kept.n > 0 && kept.in[0] != 1 : folded.n > 0 && folded.in[0] != 1;
  }

  // rows x cols elements at `from`, as a contiguous block of the kernel's type.
  const char* stage(const StageBuffers& scratch, const char* from, std::int64_t row_stride, std::int64_t col_stride,
                    std::int64_t rows, std::int64_t cols) const {
    const std::int64_t n = rows * cols;
    int next = 0;
    const char* at = from;
    if (!((col_stride == 1 || cols == 1) && (rows == 1 || row_stride == cols))) {
      staging->copy2d[copy2d_index(std::size_t(staging_steps.item))](scratch.half(next), from,
                                                                     {cols, 1, row_stride, col_stride}, rows, cols);
      at = scratch.half(next);
      next ^= 1;
    }
    for (ConvertFn step : {staging_steps.to_via, staging_steps.convert})
      if (step) {
        step(scratch.half(next), at, n);
        at = scratch.half(next);
        next ^= 1;
      }
    if (staging_steps.map) {
      staging_steps.map->run(scratch.half(next), at, n, staging_steps.map_param);
      at = scratch.half(next);
    }
    return at;
  }

  // Folds positions [begin, end) of the folded dimensions into `acc`, for `outputs` of them from `from` on.
  void fold(Accumulators acc, const StageBuffers& scratch, bool stages, const char* from, std::int64_t outputs,
            std::int64_t begin, std::int64_t end) const {
    const std::int64_t run = folded.n ? folded.size[0] : 1, step = folded.n ? folded.in[0] : 0;
    const std::int64_t apart = kept.n ? kept.in[0] : 0;
    while (begin < end) {
      std::int64_t offset = (begin % run) * step, unused = 0;
      folded.locate(1, begin / run, offset, unused);
      const char* at = from + offset * staging_steps.item;
      std::int64_t length = std::min(end - begin, run - begin % run);
      if (by_columns) {
        if (stages) {
          length = std::min(length, std::max<std::int64_t>(1, kStaged / outputs));
          kernel.cols(acc, stage(scratch, at, step, apart, length, outputs), outputs, length, outputs, begin);
        } else {
          kernel.cols(acc, at, step, length, outputs, begin);
        }
      } else {
        if (stages) {
          length = std::min(length, std::max<std::int64_t>(1, kStagedRows / outputs));
          kernel.rows(acc, stage(scratch, at, apart, step, outputs, length), length, outputs, length, begin);
        } else {
          kernel.rows(acc, at, apart, outputs, length, begin);
        }
      }
      begin += length;
    }
  }

  void write(const Workspace& space, Accumulators acc, std::int64_t out_offset, std::int64_t n) const {
    const std::int64_t out_stride = kept.n ? kept.out[0] : 1;
    if (out.data) {
      char* to = out.data + out_offset * out.item;
      if (!out.convert && (n == 1 || out_stride == 1)) {
        kernel.finish(to, acc, n, double(count), call.param);
      } else {
        char* results = space.results();
        kernel.finish(results, acc, n, double(count), call.param);
        const bool in_place = n == 1 || out_stride == 1;
        char* from = results;
        if (out.convert) out.convert(from = in_place ? to : space.converted(), results, n);
        if (from != to) staging->copy2d[copy2d_index(std::size_t(out.item))](to, from, {0, out_stride, 0, 1}, 1, n);
      }
    }
    if (index.data) staging->copy2d[3](index.data + out_offset * 8, acc.base, {0, out_stride, 0, 1}, 1, n);
  }

  std::int64_t blocks() const { return kept.n ? (kept.size[0] + width - 1) / width : 1; }
  std::int64_t units() const { return kept.n ? blocks() * (kept.numel() / kept.size[0]) : 1; }

  struct Unit {
    const char* from;
    std::int64_t out_offset, outputs;
  };
  Unit unit(std::int64_t i) const {
    if (!kept.n) return {base, 0, 1};
    const std::int64_t n = blocks(), first = i % n * width;
    std::int64_t in = first * kept.in[0], to = first * kept.out[0];
    kept.locate(1, i / n, in, to);
    return {base + in * staging_steps.item, to, std::min(width, kept.size[0] - first)};
  }

  // How many parts the elements of an output are folded in. Knows sizes alone: the result depends on it.
  std::int64_t parts() const {
    const std::int64_t columns = by_columns ? std::min(kept.size[0], kFewColumns) : width;
    const std::int64_t few = kept.n ? (kept.size[0] + columns - 1) / columns * (kept.numel() / kept.size[0]) : 1;
    if (few >= kFewUnits || kept.numel() * count < 2 * kChunk) return 1;
    const std::int64_t least = std::max<std::int64_t>(by_columns ? kChunkRows : 1, kChunk / columns);
    return std::clamp<std::int64_t>(count / least, 1, kMaxChunks);
  }

  // Where few rows are folded into results of the block's own type.
  bool takes_few() const {
    return by_columns && kernel.few && count <= kFewRows && folded.n == 1 && !staged() && out.data && !index.data &&
        out.item == int(item_size(kernel.block)) && out_is_block && kept.out[0] == 1;
  }
  void run_few(std::int64_t b, std::int64_t e) const {
    for (std::int64_t i = b; i < e; ++i) {
      const Unit u = unit(i);
      kernel.few(out.data + u.out_offset * out.item, u.from, folded.in[0], count, u.outputs);
    }
  }

  void run() const {
    const std::int64_t n = units(), total = kept.numel() * count, chunks = parts();
    const std::size_t acc_bytes = std::size_t(width) * std::size_t(kernel.acc_bytes);
    const bool stages = staged();
    modes::Unlocked unlocked(total >= kUnlockFrom);
    if (chunks == 1) {
      const auto body = [&](std::int64_t b, std::int64_t e) {
        const StageBuffers scratch(stages ? std::min(by_columns ? kStaged : kStagedRows, width * count) : 0);
        const Workspace space(width, acc_bytes);
        const Accumulators acc{space.accumulators(), width};
        for (std::int64_t i = b; i < e; ++i) {
          const Unit u = unit(i);
          kernel.init(acc, u.outputs);
          fold(acc, scratch, stages, u.from, u.outputs, 0, count);
          write(space, acc, u.out_offset, u.outputs);
        }
      };
      const bool few = takes_few();
      const auto some = [&](std::int64_t b, std::int64_t e) { few ? run_few(b, e) : body(b, e); };
      if (total < kParallelFrom)
        some(0, n);
      else
        parallel_tiles(n, std::max<std::int64_t>(1, kParallelFrom / 2 / std::max<std::int64_t>(1, total / n)), some);
      return;
    }
    // Few outputs, much to fold: chunks of each output in parallel, merged in their order.
    const std::int64_t length = (count + chunks - 1) / chunks;
    const std::size_t slot = (acc_bytes + 63) / 64 * 64;
    const ScratchBytes memory(slot * std::size_t(n * chunks));
    char* slots = static_cast<char*>(memory.get());
    parallel_tiles(n * chunks, 1, [&](std::int64_t b, std::int64_t e) {
      const StageBuffers scratch(stages ? std::min(by_columns ? kStaged : kStagedRows, width * count) : 0);
      for (std::int64_t i = b; i < e; ++i) {
        const Unit u = unit(i / chunks);
        const std::int64_t from = i % chunks * length;
        const Accumulators acc{slots + slot * std::size_t(i), width};
        kernel.init(acc, u.outputs);
        fold(acc, scratch, stages, u.from, u.outputs, from, std::min(count, from + length));
      }
    });
    const Workspace space(width, 0);
    for (std::int64_t i = 0; i < n; ++i) {
      const Unit u = unit(i);
      const Accumulators acc{slots + slot * std::size_t(i * chunks), width};
      for (std::int64_t c = 1; c < chunks; ++c)
        kernel.merge(acc, {slots + slot * std::size_t(i * chunks + c), width}, u.outputs);
      write(space, acc, u.out_offset, u.outputs);
    }
  }
};

ConvertFn conversion(Dtype from, Dtype to) { return from == to ? nullptr : staging->convert[int(from)][int(to)]; }

}  // namespace

void run_fold(const FoldCall& call, const Storage& input, const Dims& dims, const Storage* out, const Storage* index) {
  const Storage* shape = out ? out : index;
  if (shape->numel() == 0) return;
  const FoldKernel& kernel = *call.kernel;
  const Dtype needed = call.map ? call.map->from : kernel.block;
  const Dtype memory = call.via ? *call.via : input.dtype();
  const bool direct = memory == needed && !call.via && !call.map;

  // Everything folded, in order in memory, short: one call.
  if (direct && dims.size() == input.dim() && input.is_contiguous() && input.numel() < kChunk && out && !index) {
    alignas(64) char memory_of_one[64], result[16];
    const Accumulators acc{memory_of_one, 1};
    kernel.init(acc, 1);
    if (input.numel()) kernel.rows(acc, input.raw(), 0, 1, input.numel(), 0);
    kernel.finish(result, acc, 1, double(input.numel()), call.param);
    staging->convert[int(kernel.result)][int(out->dtype())](out->raw(), result, 1);
    return;
  }

  Folder f{call, kernel, {}, {}, {}, {}, {}, input.raw(), false, out && out->dtype() == kernel.block, 1, 1};
  f.staging_steps = {int(item_size(input.dtype())), call.via ? conversion(input.dtype(), *call.via) : nullptr,
                     conversion(memory, needed), call.map, call.map_param};
  const bool keepdim = shape->dim() == input.dim();
  for (int d = input.dim() - 1, k = shape->dim() - 1, r = dims.size() - 1; d >= 0; --d) {
    if (r >= 0 && dims[r] == d) {
      f.folded.add(input.size(d), input.stride(d), 0);
      f.count *= input.size(d);
      --r;
      if (keepdim) --k;
    } else {
      f.kept.add(input.size(d), input.stride(d), shape->stride(k--));
    }
  }
  if (out) f.out = {out->raw(), int(item_size(out->dtype())), conversion(kernel.result, out->dtype())};
  if (index) f.index = {index->raw(), 8, nullptr};
  f.kept.sort_by_stride();
  f.kept.merge();
  if (!call.ordered) f.folded.sort_by_stride();
  f.folded.merge();

  if (f.kept.n > 0) {
    const bool inner_is_kept = f.folded.n == 0 || magnitude(f.kept.in[0]) < magnitude(f.folded.in[0]);
    const bool short_run = f.folded.n == 0 || (f.folded.size[0] < kShortRun && f.kept.size[0] >= 8);
    f.by_columns = inner_is_kept ? f.kept.size[0] >= 4 || short_run : short_run;
  }
  if (f.by_columns) {
    const std::int64_t tasks =
        f.kept.numel() / f.kept.size[0] * ((f.kept.size[0] + kColumns - 1) / kColumns) * f.parts();
    // A tile of a wide block would leave no room for rows.
    const std::int64_t most = f.staged()                   ? 256
        : num_threads() == 1 || tasks >= 2 * num_threads() ? kColumns
                                                           : kFewColumns;
    f.width = std::min<std::int64_t>(f.kept.size[0], most);
  }
  if (!f.by_columns && f.kept.n > 0)
    f.width = std::clamp<std::int64_t>(
        (f.staged() ? kStagedRows : kRowsElements) / std::max<std::int64_t>(1, f.folded.n ? f.folded.size[0] : 1), 1,
        std::min(f.kept.size[0], kRows));
  f.run();
}

}  // namespace tp::kernels
