// Copies, casts and fills of whole storages, and the block moves offered to other kernels.
#include "kernels/staging.h"

#include <array>
#include <cstring>
#include <utility>

#include "core/errors.h"
#include "core/modes.h"
#include "core/parallel_for.h"
#include "kernels/elementwise.h"
#include "kernels/streaming.h"
#include "kernels/tiles.h"

namespace tp::kernels {

const StagingTable* const staging = &TP_PICK_TABLE(staging_table);

namespace {

constexpr std::int64_t kMaxItem = 16;

template <int F, int T>
void load_any(char* to, const char* from, std::int64_t stride, std::int64_t n) {
  const ConvertFn convert = staging->convert[F][T];
  if (stride == 1 || n <= 1) return convert(to, from, n);
  constexpr std::int64_t item = std::int64_t(item_size(Dtype(F))), wide = std::int64_t(item_size(Dtype(T)));
  alignas(64) char piece[kStage * item];
  for (std::int64_t i = 0; i < n; i += kStage) {
    const std::int64_t k = std::min(kStage, n - i);
    staging->copy2d[copy2d_index(item)](piece, from + i * stride * item, {k, 1, 0, stride}, 1, k);
    convert(to + i * wide, piece, k);
  }
}
template <int F, int T>
void store_any(char* to, std::int64_t stride, const char* from, std::int64_t n) {
  const ConvertFn convert = staging->convert[F][T];
  if (stride == 1 || n <= 1) return convert(to, from, n);
  constexpr std::int64_t item = std::int64_t(item_size(Dtype(T))), wide = std::int64_t(item_size(Dtype(F)));
  alignas(64) char piece[kStage * item];
  for (std::int64_t i = 0; i < n; i += kStage) {
    const std::int64_t k = std::min(kStage, n - i);
    convert(piece, from + i * wide, k);
    staging->copy2d[copy2d_index(item)](to + i * stride * item, piece, {0, stride, k, 1}, 1, k);
  }
}

template <int T, int... F>
constexpr std::array<LoadFn, kNumDtypes> loads_to(std::integer_sequence<int, F...>) {
  return {load_any<F, T>...};
}
template <int F, int... T>
constexpr std::array<StoreFn, kNumDtypes> stores_from(std::integer_sequence<int, T...>) {
  return {store_any<F, T>...};
}
using AllDtypes = std::make_integer_sequence<int, kNumDtypes>;
template <int... C>
constexpr auto load_table(std::integer_sequence<int, C...>) {
  return std::array<std::array<LoadFn, kNumDtypes>, sizeof...(C)>{loads_to<int(dtype_of(Compute(C)))>(AllDtypes{})...};
}
template <int... C>
constexpr auto store_table(std::integer_sequence<int, C...>) {
  return std::array<std::array<StoreFn, kNumDtypes>, sizeof...(C)>{
      stores_from<int(dtype_of(Compute(C)))>(AllDtypes{})...};
}
constexpr auto kLoads = load_table(std::make_integer_sequence<int, kNumComputes>{});
constexpr auto kStores = store_table(std::make_integer_sequence<int, kNumComputes>{});

void copy_same_sizes(const Storage& to, const Storage& from) {
  const std::int64_t n = to.numel();
  if (n == 0) return;
  const int item = int(item_size(to.dtype()));
  if (to.is_contiguous() && from.is_contiguous() && !streams(to.nbytes())) {
    const ConvertFn convert = staging->convert[int(from.dtype())][int(to.dtype())];
    if (n < kParallelFrom) return convert(to.raw(), from.raw(), n);
    const std::int64_t wide = std::int64_t(item_size(from.dtype()));
    modes::Unlocked unlocked(n >= kUnlockFrom);
    return parallel_for(0, n, kParallelFrom / 2, [&](std::int64_t b, std::int64_t e) {
      convert(to.raw() + b * item, from.raw() + b * wide, e - b);
    });
  }
  const Storage* both[] = {&to, &from};
  Walk walk = make_walk("copy", to.sizes(), both);
  const ConvertFn convert = from.dtype() == to.dtype() ? nullptr : staging->convert[int(from.dtype())][int(to.dtype())];
  const TileOperand operands[] = {{to.raw(), item, item, nullptr},
                                  {from.raw(), int(item_size(from.dtype())), item, convert}};
  run_tiles(walk, operands, nullptr, nullptr);
}

void require_writable(const Storage& to, const char* what) {
  if (TP_UNLIKELY(to.block()->read_only))
    value_error(what,
                ": the destination is read-only memory (borrowed from a read-only array); copy it first with clone()");
}

}  // namespace

LoadFn load_fn(Dtype from, Compute as) { return kLoads[std::size_t(as)][std::size_t(from)]; }
StoreFn store_fn(Compute from, Dtype to) { return kStores[std::size_t(from)][std::size_t(to)]; }
LoadFn load_mask_fn(Dtype from) { return load_fn(from, Compute::B8); }

Storage contiguous(const Storage& s) {
  if (s.is_contiguous()) return s;
  Storage out = empty(s.sizes(), s.dtype());
  copy_same_sizes(out, s);
  return out;
}

Storage cast(const Storage& s, Dtype dtype) {
  if (s.dtype() == dtype) return s;
  // A dense operand keeps its layout, so that a cast of a transposed matrix stays a transposed matrix.
  Storage out = empty(s.sizes(), dtype);
  if (!s.is_contiguous() && s.is_dense()) out = out.with_geometry(s.sizes(), s.strides(), 0);
  copy_same_sizes(out, s);
  return out;
}

void copy_into(Storage& to, const Storage& from) {
  require_writable(to, "copy");
  if (TP_UNLIKELY(!(to.sizes() == from.sizes())))
    value_error("copy: sizes ", from.sizes(), " cannot be copied into sizes ", to.sizes());
  if (to.is_contiguous() && from.is_contiguous() && to.dtype() == from.dtype() && to.numel() < kParallelFrom) {
    if (to.numel()) std::memmove(to.raw(), from.raw(), to.nbytes());
    return;
  }
  if (same_elements(to, from)) return;
  if (overlaps(to, from)) {
    Storage temporary = empty(from.sizes(), from.dtype());
    copy_same_sizes(temporary, from);
    return copy_same_sizes(to, temporary);
  }
  copy_same_sizes(to, from);
}

void fill(Storage& s, const Scalar& value) {
  require_writable(s, "fill");
  const std::int64_t n = s.numel();
  if (n == 0) return;
  const int item = int(item_size(s.dtype()));
  alignas(16) char one[kMaxItem];
  if (value.is_complex()) {
    const c128 v{value.to_double(), value.imag()};
    staging->convert[int(Dtype::C128)][int(s.dtype())](one, reinterpret_cast<const char*>(&v), 1);
  } else if (value.is_integral()) {
    const std::int64_t v = value.to_int();
    staging->convert[int(Dtype::I64)][int(s.dtype())](one, reinterpret_cast<const char*>(&v), 1);
  } else {
    const double v = value.to_double();
    staging->convert[int(Dtype::F64)][int(s.dtype())](one, reinterpret_cast<const char*>(&v), 1);
  }
  const Copy2dFn copy = staging->copy2d[copy2d_index(std::size_t(item))];
  if (s.is_contiguous() || s.is_dense()) {
    char* to = s.raw();
    if (!s.is_contiguous())
      for (int d = 0; d < s.dim(); ++d)
        if (s.stride(d) < 0) to += (s.size(d) - 1) * s.stride(d) * item;
    modes::Unlocked unlocked(n >= 4 * kUnlockFrom);
    parallel_for(0, n, 4 * kParallelFrom,
                 [&](std::int64_t b, std::int64_t e) { copy(to + b * item, one, {0, 1, 0, 0}, 1, e - b); });
    return;
  }
  const Storage* operands[] = {&s};
  Walk walk = make_walk("fill", s.sizes(), operands);
  walk.num_operands = 2;
  for (int d = 0; d < walk.num_dims; ++d) walk.strides[1][d] = 0;
  const TileOperand tiles[] = {{s.raw(), item, item, nullptr}, {one, item, item, nullptr}};
  run_tiles(walk, tiles, nullptr, nullptr);
}

}  // namespace tp::kernels
