// The operands of one op brought to a common set of batch dimensions, and its dimension arguments moved behind them.
// What generated batching rules are made of. Knows no op but views and casts.
#pragma once
#include <array>
#include <initializer_list>
#include <optional>
#include <vector>

#include "core/inline_vec.h"
#include "core/op_schema.h"
#include "transforms/batched.h"

namespace tp::batch {

class TP_API Operands {
 public:
  Levels levels() const { return levels_; }
  const TensorRef& operator[](std::size_t i) const { return at_[i]; }

  TensorRef wrap(TensorRef result) const { return batch::wrap(std::move(result), levels_); }
  std::vector<TensorRef> wrap(std::vector<TensorRef> results) const {
    for (TensorRef& r : results) r = wrap(std::move(r));
    return results;
  }
  template <std::size_t N>
  std::array<TensorRef, N> wrap(std::array<TensorRef, N> results) const {
    for (TensorRef& r : results) r = wrap(std::move(r));
    return results;
  }

 protected:
  Levels levels_ = 0;
  InlineVec<TensorRef, 4> at_;  // null where the operand is absent
};

/// Elementwise ops: batch dimensions stand in front and logical ones broadcast behind them.
class TP_API Broadcast : public Operands {
 public:
  /// `masks`: bit i where operand i takes no part in promotion.
  explicit Broadcast(std::initializer_list<const TensorRef*> operands, std::uint32_t masks = 0);

 protected:
  Broadcast() = default;
  void bring(std::span<const TensorRef* const> operands, std::uint32_t masks);
};

/// In place: the first operand keeps its memory, so the others may not depend on a level it does not have.
class TP_API InPlace : public Broadcast {
 public:
  InPlace(const OpSchema& op, std::initializer_list<const TensorRef*> operands, std::uint32_t masks = 0);
};
inline bool requires_grad(const TensorRef& t) { return t && t->requires_grad(); }
inline bool requires_grad(std::span<const TensorRef> list) {
  for (const TensorRef& t : list)
    if (requires_grad(t)) return true;
  return false;
}
TP_API TensorRef copied(const TensorRef& t);
/// The error of an in-place op whose target is the same for all samples while an operand is not.
[[noreturn]] TP_API void refuse_inplace(const OpSchema& op);
void check_target(const OpSchema& op, const TensorRef& target, std::span<const TensorRef* const> operands);

/// The target of an in-place op as an operand of the functional form, which may save it: a copy where history is recorded.
TP_API TensorRef kept(const TensorRef& target);
template <class... T>
TensorRef kept(const TensorRef& target, const T&... others) {
  return modes::grad_enabled() && (... || requires_grad(others)) ? copied(target) : kept(target);
}
/// The result of a functional form written into the target of an in-place op.
TP_API TensorRef assign(const OpSchema& op, const TensorRef& target, const TensorRef& result);
/// The same for an in-place op that changes sizes and strides alone: the target shows the result from then on.
TP_API TensorRef show(const TensorRef& target, const TensorRef& result);
/// The same for out=.
TP_API TensorRef assign_out(const OpSchema& op, const TensorRef& out, const TensorRef& result);

}  // namespace tp::batch
