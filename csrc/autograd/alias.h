// Aliases: the arguments a transform differentiates with respect to. Knows no transform and no op.
#pragma once
#include "autograd/node.h"

namespace tp {

/// The memory and the outer history of `t` (and its tangents) behind a node of its own: gradients with respect to the alias
/// are captured there, and go on to `t` where something outside follows it. Never a leaf, so a pass that ends at aliases
/// stops at their age, however large the graph behind them.
TP_API TensorRef make_alias(const TensorRef& t);

/// Takes ages before and after: a node made later is younger than this.
TP_API std::uint64_t current_age();

/// The same value without history; tangents stay.
TP_API TensorRef without_history(const TensorRef& t);

}  // namespace tp
