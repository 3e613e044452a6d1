// The generated backward classes, listed for programs that walk them. The list is generated.
#pragma once
#include <span>

#include "autograd/node.h"

namespace tp::ops {

struct NodeFactory {
  const char* cls;           // "TanhBackward"
  const OpSchema* schema;    // its schema_v1
  NodeRef (*make)();         // a fresh node without edges
};

/// Every generated backward class, in order of shard and op.
TP_API std::span<const NodeFactory> node_factories();

}  // namespace tp::ops
