// Forward levels: which are open, and which tensors carry a tangent of which level. Knows no op and no formula.
#pragma once
#include "core/inline_vec.h"
#include "core/tensor_impl.h"

namespace tp::dual {

/// Levels from the outermost inwards. Numbers grow and are never used again, so an inner level has the larger one.
using LevelList = InlineVec<std::uint32_t, 4>;

/// Opens a level inside those that are open; returns its number. `exclusive` (dual_level): raises where an exclusive one is
/// open already, as that API knows no nesting.
TP_API std::uint32_t enter_level(bool exclusive);
/// Closes the innermost level, which must be `level`, and clears every tangent that belongs to it.
TP_API void exit_level(std::uint32_t level);
/// Number of the innermost open level; 0 when none is open.
TP_API std::uint32_t current_level();
/// Number of the level that dual_level opened; 0 when none is open.
TP_API std::uint32_t exclusive_level();
/// Whether tangents are computed and shown: a switch of the thread, which transforms turn on inside; inference mode is off.
TP_API bool enabled();
/// Returns what the switch was.
TP_API bool set_enabled(bool on);

/// A level for a C++ scope. Forward mode is on inside, and afterwards what it was before.
class TP_API Scope {
 public:
  Scope() : before_(modes::word & modes::kForward), level_(enter_level(false)) {}
  ~Scope() {
    while (current_level() >= level_) exit_level(current_level());  // those left open inside too
    modes::word = (modes::word & ~std::uint32_t(modes::kForward)) | before_;
  }
  Scope(const Scope&) = delete;
  std::uint32_t level() const { return level_; }

 private:
  std::uint32_t before_;
  std::uint32_t level_;
};

/// Hangs `tangent` on `t` as it is (null: takes it away). Checks nothing; wiring::set_tangent does.
TP_API void attach_tangent(const TensorRef& t, TensorRef tangent, std::uint32_t level);
/// The tangent of `t`; for a view whose base got one later, the same view of the base's tangent. Null: none.
TP_API TensorRef tangent_of(const TensorRef& t, std::uint32_t level);
/// Adds the levels of which `t` carries a tangent.
TP_API void collect_levels(const TensorRef& t, LevelList& levels);
/// Hangs on `to` what `from` carries of levels below `below`.
TP_API void share_tangents(const TensorRef& to, const TensorRef& from, std::uint32_t below);

}  // namespace tp::dual
