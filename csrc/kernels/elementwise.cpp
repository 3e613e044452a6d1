// Promotion, output layout, aliasing and the short paths around a generated loop; tiles.cpp does the walking.
#include "kernels/elementwise.h"

#include <cstring>
#include <string>

#include "core/modes.h"
#include "core/parallel_for.h"
#include "kernels/staging.h"
#include "kernels/streaming.h"
#include "kernels/tiles.h"

namespace tp::kernels {
namespace {

bool is_mask(const ElementwiseSpec& spec, std::size_t i) { return spec.mask_inputs >> i & 1; }

Dtype output_dtype(OutKind kind, Dtype common) {
  return kind == OutKind::Bool ? Dtype::Bool : kind == OutKind::Real ? real_dtype(common) : common;
}

[[noreturn, gnu::cold, gnu::noinline]] void no_loop(const ElementwiseSpec& spec, const LoopSet& loops, Dtype dtype) {
  std::string takes;
  for (int i = 0; i < kNumDtypes; ++i) {
    const Dtype given = Dtype(i);
    const Dtype common = spec.promote != Promote::Common && is_integral(given) ? default_float() : given;
    if (loops[compute_type(common)]) takes += (takes.empty() ? "" : ", ") + std::string(dtype_name(given));
  }
  type_error(spec.schema->name, ": not defined for dtype ", dtype_name(dtype), "; it takes ", takes,
             ". Convert the input first, as in x.to(dtype)");
}

Loop loop_for(const ElementwiseSpec& spec, const LoopSet& loops, Dtype common) {
  const Loop loop = loops[compute_type(common)];
  if (TP_UNLIKELY(!loop)) no_loop(spec, loops, common);
  return loop;
}

// What the loop works on: blocks of `compute` for values, of bytes for masks; `out` for the result.
struct Types {
  Dtype common, compute, out, out_compute;
};
Types types_of(const ElementwiseSpec& spec, Dtype common) {
  const Dtype compute = dtype_of(compute_type(common));
  return {common, compute, output_dtype(spec.out, common), output_dtype(spec.out, compute)};
}

TileOperand input_operand(const Storage& s, Dtype block) {
  return {s.raw(), int(item_size(s.dtype())), int(item_size(block)),
          s.dtype() == block ? nullptr : staging->convert[int(s.dtype())][int(block)]};
}
TileOperand output_operand(const Storage& s, Dtype block) {
  return {s.raw(), int(item_size(s.dtype())), int(item_size(block)),
          s.dtype() == block ? nullptr : staging->convert[int(block)][int(s.dtype())]};
}

void check_count(const ElementwiseSpec& spec, std::size_t n) {
  if (TP_UNLIKELY(n + 1 > kMaxOperands))
    not_implemented(spec.schema->name, ": a fused loop over ", n, " inputs (at most ", kMaxOperands - 1, ")");
}

void run_general(const ElementwiseSpec& spec, Loop loop, const Types& t, const Storage& out,
                 std::span<const Storage* const> inputs, const Scalar* params) {
  const Storage* operands[kMaxOperands];
  TileOperand tiles[kMaxOperands];
  operands[0] = &out;
  tiles[0] = output_operand(out, t.out_compute);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    operands[i + 1] = inputs[i];
    tiles[i + 1] = input_operand(*inputs[i], is_mask(spec, i) ? Dtype::Bool : t.compute);
  }
  const std::size_t n = inputs.size() + 1;
  Walk walk = make_walk(spec.schema->name, out.sizes(), {operands, n});
  run_tiles(walk, {tiles, n}, loop, params);
}

// The block in which one value is kept repeated: a longer one takes longer to fill, a shorter one more calls.
constexpr std::int64_t kRepeatedBytes = 8192;

// How many elements of a pass through memory lie between two turns from one place to the one before.
constexpr std::int64_t kTurn = 16384;

// How many results one loop may write (codegen/plan_compute.py makes no larger ones).
constexpr std::size_t kMaxTogether = 6;

// One thread's part of a large result. An operand whose item is 0 stands still: one value, repeated in a block.
struct Flat {
  Loop loop;
  const Scalar* params;
  std::size_t results;   // the first of the operands
  std::size_t operands;
  std::int64_t item[kMaxOperands];

  // Block by block through the first cache, and from there past the others.
  void stream_through(std::int64_t n, char* const* data) const {
    alignas(64) char block[kMaxTogether][kStreamBlock];
    char* at[kMaxOperands];
    char* to[kMaxTogether];
    std::int64_t largest = 1;
    for (std::size_t o = 0; o < operands; ++o) at[o] = data[o], largest = std::max(largest, item[o]);
    std::size_t moving = 0;
    for (std::size_t o = results; o < operands; ++o) moving += item[o] != 0;
    for (std::size_t o = 0; o < results; ++o) to[o] = data[o], at[o] = block[o];
    const std::int64_t step = kStreamBlock / largest, ahead = stream_ahead(moving);
    // The first block ends where a line does, so that all others are whole lines.
    std::int64_t k = step - std::int64_t(reinterpret_cast<std::uintptr_t>(to[0]) & 63) / item[0];
    for (std::int64_t i = 0; i < n; i += k, k = step) {
      k = std::min(k, n - i);
      loop(k, at, params);
      for (std::size_t o = results; o < operands; ++o) {
        if (ahead && item[o]) prefetch(at[o] + ahead, k * item[o]);
        at[o] += k * item[o];
      }
      for (std::size_t o = 0; o < results; ++o) {
        stream(to[o], block[o], k * item[o]);
        to[o] += k * item[o];
      }
    }
    stream_fence();
  }
  void in_steps(std::int64_t n, char* const* data, std::int64_t step, bool backwards) const {
    char* at[kMaxOperands];
    const std::int64_t last = (n - 1) / step;
    for (std::int64_t i = 0; i <= last; ++i) {
      const std::int64_t from = (backwards ? last - i : i) * step;
      for (std::size_t o = 0; o < operands; ++o) at[o] = data[o] + from * item[o];
      loop(std::min(step, n - from), at, params);
    }
  }
  // `step`: how many elements of a repeated value there are.
  void run(std::int64_t n, char* const* data, std::int64_t step) const {
    if (n <= step && n < kParallelFrom) return loop(n, data, params);
    bool streamed = streams(std::size_t(n * item[0]));
    // In place the lines written are the lines just read.
    for (std::size_t i = results; i < operands; ++i) streamed &= data[i] != data[0];
    modes::Unlocked unlocked(n >= kUnlockFrom);
    // Every other pass goes from the end to the start: what was written or read last is what the second cache still has. Not
    // with several threads: parts go to whoever is free.
    static thread_local bool backwards = false;
    std::int64_t bytes = 0;
    for (std::size_t o = 0; o < operands; ++o) bytes += n * item[o];
    backwards = !backwards && !streams(std::size_t(bytes)) && num_threads() == 1;
    if (!streams(std::size_t(bytes))) step = std::min(step, kTurn);
    const std::int64_t mirror = backwards ? (n + 63) & -64 : 0;  // borders of parts stay aligned
    parallel_for(0, n, kParallelFrom / 2, [&, turn = backwards](std::int64_t b, std::int64_t e) {
      if (turn) {
        const std::int64_t from = mirror - ((e + 63) & -64);
        e = std::min(n, mirror - b);
        b = from;
      }
      char* at[kMaxOperands];
      for (std::size_t i = 0; i < operands; ++i) at[i] = data[i] + b * item[i];
      if (streamed)
        stream_through(e - b, at);
      else
        in_steps(e - b, at, step, turn);
    });
  }
};

[[gnu::noinline]] void run_long(Loop loop, const Types& t, std::int64_t n, char* const* data,
                                std::span<const Storage* const> inputs, const Scalar* params) {
  Flat flat{loop, params, 1, inputs.size() + 1, {std::int64_t(item_size(t.out))}};
  for (std::size_t i = 0; i < inputs.size(); ++i) flat.item[i + 1] = std::int64_t(item_size(inputs[i]->dtype()));
  flat.run(n, data, n);
}

// Contiguous operands that are already of the loop's type.
[[gnu::always_inline]] inline void run_flat(Loop loop, const Types& t, std::int64_t n, char* out,
                                            std::span<const Storage* const> inputs, const Scalar* params) {
  char* data[kMaxOperands];
  data[0] = out;
  for (std::size_t i = 0; i < inputs.size(); ++i) data[i + 1] = inputs[i]->raw();
  if (TP_LIKELY(n < kParallelFrom)) return loop(n, data, params);
  run_long(loop, t, n, data, inputs, params);
}

// Whether the operands can go to the loop as they are: same sizes, contiguous, of one dtype that is its own compute type.
bool is_flat(const ElementwiseSpec& spec, std::span<const Storage* const> inputs, Dtype compute) {
  const Storage& first = *inputs[0];
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Storage& s = *inputs[i];
    if (!s.is_contiguous() || s.dtype() != (is_mask(spec, i) ? Dtype::Bool : compute)) return false;
    if (i && !(s.sizes() == first.sizes())) return false;
  }
  return true;
}

// A layout other than row-major is kept that all operands of the result's sizes share: transposed in, transposed out, at full
// speed.
Storage allocate_like(const Shape& sizes, Dtype dtype, std::span<const Storage* const> inputs) {
  Storage out = empty(sizes, dtype);
  const Storage* pattern = nullptr;
  for (const Storage* s : inputs) {
    if (!(s->sizes() == sizes)) continue;
    if (s->is_contiguous()) return out;
    if (pattern && !(pattern->strides() == s->strides())) return out;
    pattern = s;
  }
  if (!pattern || !pattern->is_dense()) return out;
  return out.with_geometry(sizes, pattern->strides(), 0);
}

constexpr std::size_t kMaxValues = 3;

// Single values (x + 2, 1 - x, clamp(x, -1, 1)) beside operands that lie in memory as the result does: the block of each value
// is filled once.
bool run_with_values(const ElementwiseSpec& spec, Loop loop, const Types& t, const Storage& out,
                     std::span<const Storage* const> inputs, const Scalar* params) {
  if (out.dtype() != t.out_compute || inputs.size() >= kMaxOperands) return false;
  const std::int64_t n = out.numel();
  std::size_t values = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Storage& s = *inputs[i];
    if (s.numel() == 1 && s.dim() <= out.dim()) {
      if (++values > kMaxValues) return false;
    } else if (s.dtype() != (is_mask(spec, i) ? Dtype::Bool : t.compute) || !(s.sizes() == out.sizes()) ||
               !(s.strides() == out.strides())) {
      return false;
    }
  }
  // Each block begins a little behind where the result does within a page: a read that only looks, by the last bits of its
  // address, like one of what has just been written would wait for it.
  constexpr std::uintptr_t kPage = 4096;
  alignas(64) char blocks[kMaxValues][kRepeatedBytes + kPage];
  const std::int64_t repeated =
      (n < kParallelFrom ? kRepeatedBytes / 2 : kRepeatedBytes) / std::int64_t(item_size(t.compute));
  char* data[kMaxOperands];
  Flat flat{loop, params, 1, inputs.size() + 1, {std::int64_t(item_size(out.dtype()))}};
  data[0] = out.raw();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Storage& s = *inputs[i];
    const Dtype block = is_mask(spec, i) ? Dtype::Bool : t.compute;
    const std::size_t item = item_size(block);
    if (s.numel() != 1) {
      data[i + 1] = s.raw();
      flat.item[i + 1] = std::int64_t(item);
      continue;
    }
    alignas(16) char one[16];
    if (s.dtype() == block)
      std::memcpy(one, s.raw(), item);
    else
      staging->convert[int(s.dtype())][int(block)](one, s.raw(), 1);
    const std::uintptr_t behind = std::uintptr_t(data[0]) + 128 * values - std::uintptr_t(blocks[values - 1]);
    data[i + 1] = blocks[--values] + (behind % kPage & ~std::uintptr_t(63));
    staging->copy2d[copy2d_index(item)](data[i + 1], one, {0, 1, 0, 0}, 1, std::min(n, repeated));
  }
  flat.run(n, data, repeated);
  return true;
}

// The operand whose sizes are the result's where all others are single values: null where some are not.
const Storage* beside_values(std::span<const Storage* const> inputs) {
  const Storage* whole = inputs[0];
  bool values = false;
  for (const Storage* s : inputs) {
    if (s->numel() == 1) {
      values = true;
      if (whole->numel() == 1 && s->dim() > whole->dim()) whole = s;
    } else if (whole->numel() == 1) {
      whole = s;
    } else if (!(s->sizes() == whole->sizes())) {
      return nullptr;
    }
  }
  for (const Storage* s : inputs)
    if (s->dim() > whole->dim()) return nullptr;
  return values ? whole : nullptr;
}

// Two small operands, one of which repeats the other's last dimensions (a row added to a matrix): one call a repetition,
// without a walk.
bool run_repeated(Loop loop, const Types& t, const Storage& out, std::span<const Storage* const> inputs,
                  const Scalar* params) {
  constexpr std::int64_t kSmall = 4096, kCalls = 32;
  if (out.numel() > kSmall || t.out != t.out_compute || !out.is_contiguous()) return false;
  const int shorter = inputs[0]->numel() < inputs[1]->numel() ? 0 : 1;
  const Storage &whole = *inputs[std::size_t(1 - shorter)], &part = *inputs[std::size_t(shorter)];
  if (!(whole.sizes() == out.sizes()) || part.dim() > out.dim() || part.numel() * kCalls < out.numel()) return false;
  for (const Storage* s : inputs)
    if (!s->is_contiguous() || s->dtype() != t.compute) return false;
  for (int d = 1; d <= part.dim(); ++d)
    if (part.size(part.dim() - d) != out.size(out.dim() - d)) return false;
  const std::int64_t n = part.numel(), step = n * std::int64_t(item_size(t.compute));
  char* data[3];
  data[0] = out.raw();
  data[1 + shorter] = part.raw();
  char*& moving = data[2 - shorter];
  moving = whole.raw();
  for (std::int64_t i = 0; i < out.numel(); i += n) {
    loop(n, data, params);
    data[0] += n * std::int64_t(item_size(t.out));
    moving += step;
  }
  return true;
}

}  // namespace

namespace {

// Numbers alone (1 / 3 in a formula, both Python's): their result is a number too, in full precision, and its dtype waits
// for the first tensor it meets. Under a mask (where) there is a tensor.
bool numbers_only(const ElementwiseSpec& spec, std::span<const Storage* const> inputs) {
  if (spec.mask_inputs) return false;
  for (const Storage* s : inputs)
    if (!s->wrapped_number()) return false;
  return true;
}

}  // namespace

Dtype common_dtype(const ElementwiseSpec& spec, std::span<const Storage* const> inputs) {
  if (TP_UNLIKELY(inputs[0]->wrapped_number() && numbers_only(spec, inputs))) {
    Category c = spec.promote == Promote::Common ? Category::Bool : Category::Float;
    for (const Storage* s : inputs) c = std::max(c, category(s->dtype()));
    return c == Category::Complex ? Dtype::C128
        : c == Category::Float    ? Dtype::F64
        : c == Category::Integer  ? Dtype::I64
                                  : Dtype::Bool;
  }
  Promotion p;
  bool any = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_mask(spec, i)) continue;
    const Storage& s = *inputs[i];
    p.add(s.dtype(), s.dim() == 0, s.wrapped_number());
    any = true;
  }
  Dtype d = any ? p.result() : Dtype::Bool;
  if (spec.promote != Promote::Common && is_integral(d)) d = default_float();
  return d;
}

Shape broadcast_shapes(std::string_view op, std::span<const Storage* const> inputs) {
  int ndim = 0;
  for (const Storage* s : inputs) ndim = std::max(ndim, s->dim());
  Shape sizes(ndim, 1);
  for (const Storage* s : inputs) {
    const int shift = ndim - s->dim();
    for (int d = 0; d < s->dim(); ++d) {
      const std::int64_t n = s->size(d);
      std::int64_t& have = sizes[d + shift];
      if (n == have || n == 1) continue;
      if (TP_LIKELY(have == 1)) {
        have = n;
        continue;
      }
      std::ostringstream shapes;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        shapes << (i == 0 ? "" : i + 1 == inputs.size() ? " and " : ", ") << inputs[i]->sizes();
      value_error(op, ": shapes ", shapes.str(), " do not broadcast: sizes ", have, " and ", n, " in dimension ",
                  d + shift, " differ and neither is 1");
    }
  }
  return sizes;
}

namespace {

// The common case in a few compares: one dtype, one shape, contiguous, nothing to stage.
inline bool is_plain(const ElementwiseSpec& spec, std::span<const Storage* const> inputs) {
  const Storage& first = *inputs[0];
  if (TP_UNLIKELY(spec.mask_inputs != 0 || !first.is_contiguous() || first.wrapped_number())) return false;
  const Dtype d = first.dtype();
  if (!is_compute_layout(d) || (spec.promote != Promote::Common && is_integral(d)) || inputs.size() >= kMaxOperands)
    return false;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Storage& s = *inputs[i];
    if (s.dtype() != d || !s.is_contiguous() || !(s.sizes() == first.sizes())) return false;
  }
  return true;
}
[[gnu::always_inline]] inline void make_plain(Storage& out, const ElementwiseSpec& spec, const LoopSet& loops,
                                              std::span<const Storage* const> inputs, std::span<const Scalar> params) {
  const Dtype d = inputs[0]->dtype(), out_dtype = output_dtype(spec.out, d);
  const Loop loop = loop_for(spec, loops, d);
  const std::int64_t n = inputs[0]->numel();
  out.become(make_block(std::size_t(n) * item_size(out_dtype)), out_dtype, inputs[0]->sizes());
  if (TP_LIKELY(n != 0)) run_flat(loop, {d, d, out_dtype, out_dtype}, n, out.raw(), inputs, params.data());
}
[[gnu::noinline]] void make_general(Storage& out, const ElementwiseSpec& spec, const LoopSet& loops,
                                    std::span<const Storage* const> inputs, std::span<const Scalar> params) {
  check_count(spec, inputs.size());
  const Types t = types_of(spec, common_dtype(spec, inputs));
  const Loop loop = loop_for(spec, loops, t.common);
  if (TP_UNLIKELY(inputs[0]->wrapped_number() && numbers_only(spec, inputs))) {
    out = empty({}, t.out);
    run_general(spec, loop, t, out, inputs, params.data());
    out.set_wrapped_number(t.out != Dtype::Bool);
    return;
  }
  if (const Storage* whole = beside_values(inputs)) {
    out = allocate_like(whole->sizes(), t.out, inputs);
    if (out.numel() != 0 && !run_with_values(spec, loop, t, out, inputs, params.data()))
      run_general(spec, loop, t, out, inputs, params.data());
    return;
  }
  if (t.out == t.out_compute && is_flat(spec, inputs, t.compute)) {
    out = empty(inputs[0]->sizes(), t.out);
    if (out.numel()) run_flat(loop, t, out.numel(), out.raw(), inputs, params.data());
    return;
  }
  out = allocate_like(broadcast_shapes(spec.schema->name, inputs), t.out, inputs);
  if (inputs.size() == 2 && spec.mask_inputs == 0 && out.numel() && run_repeated(loop, t, out, inputs, params.data()))
    return;
  if (out.numel()) run_general(spec, loop, t, out, inputs, params.data());
}

}  // namespace

// Made where the caller wants it.
Storage elementwise(const ElementwiseSpec& spec, const LoopSet& loops, std::span<const Storage* const> inputs,
                    std::span<const Scalar> params) {
  Storage out;
  elementwise_to(out, spec, loops, inputs, params);
  return out;
}

void elementwise_to(Storage& place, const ElementwiseSpec& spec, const LoopSet& loops,
                    std::span<const Storage* const> inputs, std::span<const Scalar> params) {
  if (TP_LIKELY(is_plain(spec, inputs)))
    make_plain(place, spec, loops, inputs, params);
  else
    make_general(place, spec, loops, inputs, params);
}

bool elementwise_together(const ElementwiseSpec& spec, const LoopSet& loops, std::span<Storage> results,
                          std::span<const Storage* const> inputs, std::span<const Scalar> params) {
  const Storage& first = *inputs[0];
  const Dtype d = first.dtype();
  if (TP_UNLIKELY(results.size() > kMaxTogether || results.size() + inputs.size() > kMaxOperands)) return false;
  if ((d != Dtype::F32 && d != Dtype::F64) || first.wrapped_number() || !is_flat(spec, inputs, d)) return false;
  const Loop loop = loop_for(spec, loops, d);
  const std::int64_t n = first.numel(), item = std::int64_t(item_size(d));
  char* data[kMaxOperands];
  std::size_t operands = 0;
  for (Storage& s : results) {
    s = Storage(make_block(std::size_t(n * item)), d, first.sizes());
    data[operands++] = s.raw();
  }
  for (const Storage* s : inputs) data[operands++] = s->raw();
  if (n < kParallelFrom) {
    if (n != 0) loop(n, data, params.data());
    return true;
  }
  Flat flat{loop, params.data(), results.size(), operands, {}};
  std::fill_n(flat.item, operands, item);
  flat.run(n, data, n);
  return true;
}

void elementwise_into(const ElementwiseSpec& spec, const LoopSet& loops, Storage& out,
                      std::span<const Storage* const> inputs, std::span<const Scalar> params) {
  check_count(spec, inputs.size());
  const std::string_view name = spec.schema->name;
  const bool in_place = same_elements(out, *inputs[0]);
  const char* mark = in_place ? "_" : "";
  const Types t = types_of(spec, common_dtype(spec, inputs));
  const Loop loop = loop_for(spec, loops, t.common);
  // A real value in complex memory: what flows back through the imaginary part would be taken for the op's own.
  if (TP_UNLIKELY(in_place && is_complex(out.dtype()) && spec.out == OutKind::Real))
    runtime_error(name, "_: In-place ", name, " is not supported for complex tensors, its result is real; use ", name);
  if (TP_UNLIKELY(category(t.out) > category(out.dtype())))
    type_error(name, mark, ": result type ", dtype_name(t.out), " can't be cast to ", dtype_name(out.dtype()));
  if (TP_UNLIKELY(out.block()->read_only))
    value_error(name, mark, ": the output is read-only memory (borrowed from a read-only array); clone() it first");
  const bool flat = out.is_contiguous() && out.dtype() == t.out_compute && is_flat(spec, inputs, t.compute) &&
      out.sizes() == inputs[0]->sizes();
  if (!flat) {
    const Shape sizes = broadcast_shapes(name, inputs);
    if (TP_UNLIKELY(!(sizes == out.sizes())))
      value_error(name, mark, ": the output has shape ", out.sizes(), ", but the result has shape ", sizes);
    if (TP_UNLIKELY(has_internal_overlap(out)))
      runtime_error(name, mark,
                    ": several elements of the output share one memory location (an expanded tensor of shape ",
                    out.sizes(), ", strides ", out.strides(), "); clone() it first");
  }
  if (out.numel() == 0) return;
  for (const Storage* s : inputs) {
    if (!overlaps(*s, out) || same_elements(*s, out)) continue;
    // Reading and writing would meet: compute beside, then copy.
    const Storage result = elementwise(spec, loops, inputs, params);
    copy_into(out, result);
    return;
  }
  if (flat)
    run_flat(loop, {t.common, t.compute, out.dtype(), out.dtype()}, out.numel(), out.raw(), inputs, params.data());
  else if (!out.is_contiguous() || !run_with_values(spec, loop, t, out, inputs, params.data()))
    run_general(spec, loop, t, out, inputs, params.data());
}

}  // namespace tp::kernels
