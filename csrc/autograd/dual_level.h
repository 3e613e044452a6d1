// Dual level: which tensors carry a tangent, and until when. Knows no op and no formula.
#pragma once
#include "core/tensor_impl.h"

namespace tp::dual {

/// Opens the level; returns its number. One level at a time: a second one raises.
TP_API std::uint32_t enter_level();
/// Closes the level and clears every tangent that belongs to it.
TP_API void exit_level(std::uint32_t level);
/// Number of the open level (each gets its own); 0 when none is open.
TP_API std::uint32_t current_level();

/// Hangs `tangent` on `t` as it is (null: takes it away). Checks nothing; wiring::set_tangent does.
TP_API void attach_tangent(const TensorRef& t, TensorRef tangent);
/// The tangent of `t`; for a view whose base got one later, the same view of the base's tangent. Null: none.
TP_API TensorRef tangent_of(const TensorRef& t);

}  // namespace tp::dual
