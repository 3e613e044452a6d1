// StandIn: while a node runs inside another one, whose history its results have.
#pragma once
#include "autograd/node.h"

namespace tp {

/// For a C++ scope: what the node `of` saved of its result comes back with the history `edge`. The node of an in-place op on
/// a view runs inside CopySlices and is no part of the graph: with an edge to it the engine would run it a second time.
class StandIn {
 public:
  StandIn(const Node* of, Edge edge) : of_(of), edge_(std::move(edge)), outer_(innermost) { innermost = this; }
  ~StandIn() { innermost = outer_; }
  StandIn(const StandIn&) = delete;
  /// `edge`, or what stands for it.
  static const Edge& resolve(const Edge& edge) {
    for (const StandIn* s = innermost; s; s = s->outer_)
      if (s->of_ == edge.node.get()) return s->edge_;
    return edge;
  }

 private:
  TP_API static thread_local constinit StandIn* innermost;
  const Node* of_;
  Edge edge_;
  StandIn* outer_;
};

}  // namespace tp
