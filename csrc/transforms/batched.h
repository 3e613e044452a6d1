// Batched tensors and the vmap levels they belong to. A batched tensor shows the sizes of one sample; its elements, history
// and tangent are those of a physical tensor whose leading dimensions are the batch, one per level, outermost first.
// Knows views and stacking, no other op.
#pragma once
#include <bit>
#include <span>
#include <string_view>

#include "core/tensor_impl.h"

namespace tp::batch {

/// One bit a level; the lowest is the outermost open one.
using Levels = std::uint32_t;
inline int count(Levels levels) { return std::popcount(levels); }

/// What random ops do while a level is open.
enum class Randomness : std::uint8_t { Error, Same, Different };

struct Level {
  std::uint64_t id;  // each gets its own: a tensor of a closed level is told by it
  std::int64_t size;
  Randomness randomness;
};

/// Opens a level of this thread and returns its number, from 1. Levels close in the order they opened, innermost first.
TP_API int enter(std::int64_t size, Randomness randomness);
TP_API void exit(int level);
/// Number of open levels.
TP_API int depth();
TP_API const Level& level(int number);
/// The lengths of the batch dimensions of these levels, outermost first.
TP_API Dims sizes_of(Levels levels);
/// The levels that are open.
inline Levels open_levels() { return Levels((std::uint64_t(1) << modes::open_transforms) - 1); }

inline bool is_batched(const TensorRef& t) { return t && t->is_batched(); }
inline bool is_batched(std::span<const TensorRef> list) {
  for (const TensorRef& t : list)
    if (is_batched(t)) return true;
  return false;
}
/// Whether one of the operands, tensors or lists of them, is batched.
template <class... T>
bool any(const T&... operands) {
  return (... || is_batched(operands));
}

/// 0 for a tensor that is not batched. Raises for one whose vmap has ended.
TP_API Levels levels_of(const TensorRef& t);
/// What holds the memory, history and tangent of `t`: itself where it is not batched.
inline const TensorRef& physical(const TensorRef& t) { return t->is_batched() ? t->meta()->physical : t; }

/// The batched tensor over `physical`, whose leading dimensions are those of `levels`; itself where there are none.
TP_API TensorRef wrap(TensorRef physical, Levels levels);
/// Gives a batched tensor another physical one of the same levels (after an in-place change of sizes).
TP_API void replace(const TensorRef& t, TensorRef physical);

/// `t` without `levels`, whose dimensions lead the logical ones, outermost first; levels it does not have are expanded.
TP_API TensorRef peel(const TensorRef& t, Levels levels);
/// The inverse: the leading dimensions of `t` become the batch dimensions of `levels`.
TP_API TensorRef cover(const TensorRef& t, Levels levels);
/// The physical tensor with a batch dimension for each of `levels`, those it lacks expanded.
TP_API TensorRef physical_at(const TensorRef& t, Levels levels);

/// Dimension `dim` of `t` becomes the batch dimension of `level`.
TP_API TensorRef add_dim(const TensorRef& t, std::int64_t dim, int level);
/// The batch dimension of `level` becomes dimension `dim`; of length `size` where `t` does not depend on the level.
TP_API TensorRef remove_dim(const TensorRef& t, int level, std::int64_t size, std::int64_t dim);
/// `t` as a batched tensor at every open level, expanded where it is the same for all samples.
TP_API TensorRef expand_to_levels(const TensorRef& t);

}  // namespace tp::batch
