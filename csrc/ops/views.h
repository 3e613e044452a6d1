// The nodes and moves behind in-place changes of views: CopySlices on the base, AsStridedBackward on its views.
// Internal to csrc/ops; everybody else goes through wiring.h.
#pragma once
#include "ops/wiring.h"

namespace tp::views {

struct Geometry {
  Shape sizes;
  Strides strides;
  std::int64_t offset;  // in elements of dtype
  Dtype dtype;
};
Geometry geometry_of(const Storage& s);

/// History of a view made anew after its base moved on: the gradient goes into zeros of the base.
class AsStridedBackward final : public Node {
 public:
  AsStridedBackward(Geometry base, Geometry view, Edge to)
      : Node(1, age(to)), base_(std::move(base)), view_(std::move(view)), edge_(std::move(to)) {}
  std::string name() const override { return "AsStridedBackward0"; }
  GradVec apply(std::span<Storage> grad_outputs) override;
  GraphGradVec apply_for_graph(std::span<const TensorRef> grad_outputs) override;
  std::span<Edge> next_edges() override { return {&edge_, 1}; }
  Storage output_like(std::uint32_t) const override { return Storage(BlockRef(), view_.dtype, view_.sizes); }

 protected:
  TP_NODE_DISPOSE(AsStridedBackward)

 private:
  /// As old as the history it stands for, so that no node is older than what it points to. Accumulators have no age.
  static std::uint64_t age(const Edge& to) {
    return to.node && !to.node->is_accumulator() ? to.node->sequence_nr() : 0;
  }
  Geometry base_, view_;
  Edge edge_;
};

/// History of a base one of whose views was overwritten by `fn`: that part of the gradient goes through fn, the rest past it.
class CopySlices final : public Node {
 public:
  CopySlices(const TensorRef& base, const TensorRef& view, NodeRef fn);
  std::string name() const override { return "torch::autograd::CopySlices"; }
  GradVec apply(std::span<Storage> grad_outputs) override;
  GraphGradVec apply_for_graph(std::span<const TensorRef> grad_outputs) override;
  void validate_versions() override { fn_->validate_versions(); }
  void release_saved() override { fn_->release_saved(); }
  bool saved_plain() const override { return fn_->saved_plain(); }
  bool is_host() const override { return fn_->is_host(); }
  std::span<Edge> next_edges() override { return edges_; }
  Storage output_like(std::uint32_t) const override { return Storage(BlockRef(), base_.dtype, base_.sizes); }

 protected:
  TP_NODE_DISPOSE(CopySlices)

 private:
  Geometry base_, view_;
  NodeRef fn_;
  std::vector<Edge> edges_;
};

/// A view overwritten by a composed result: its old value gets no gradient, the result all of it.
class ReplacedBackward final : public Node {
 public:
  explicit ReplacedBackward(NodeRef result) : Node(1) { edges_[1] = {std::move(result), 0}; }
  std::string name() const override { return "CopyBackward0"; }
  GradVec apply(std::span<Storage> grad_outputs) override;
  GraphGradVec apply_for_graph(std::span<const TensorRef> grad_outputs) override;
  std::span<Edge> next_edges() override { return edges_; }

 protected:
  TP_NODE_DISPOSE(ReplacedBackward)

 private:
  Edge edges_[2];
};

/// A fresh grad_fn for a view whose base's history moved.
void regenerate(const TensorRef& t);
/// Gives `t`, just overwritten, the history `node`; through its base where `t` is a view.
void rebase(const TensorRef& t, NodeRef node);

}  // namespace tp::views
