// AccumulateGrad: the end of the backward walk; adds a gradient into its leaf's .grad. Holds the leaf weakly.
#pragma once
#include "autograd/node.h"

namespace tp {

class TP_API AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(TensorImpl* leaf) : Node(1, ~std::uint64_t(0)), leaf_(leaf) {}

  std::string name() const override { return "torch::autograd::AccumulateGrad"; }
  GradVec apply(std::span<Storage> grad_outputs) override;
  GraphGradVec apply_for_graph(std::span<const TensorRef> grad_outputs) override;
  std::span<Edge> next_edges() override { return {}; }
  Storage output_like(std::uint32_t nr) const override;
  /// Null once the leaf was freed.
  TensorRef leaf() const { return TensorRef::share(leaf_); }
  void leaf_died() override { leaf_ = nullptr; }
  /// Graph mode with a reference the caller gives up, so that a gradient nobody else holds is moved in.
  void take_gradient(TensorRef& g);
  void run_accumulated_hooks();

 protected:
  TP_NODE_DISPOSE(AccumulateGrad)

 private:
  TensorImpl* leaf_;
};

/// The accumulator of a leaf that requires grad, made on first use.
TP_API AccumulateGrad* accumulator_of(const TensorRef& leaf);

/// The dtype that gradients of `t` are cast to; false where it takes any.
TP_API bool wanted_dtype(const TensorRef& t, Dtype& out);

/// The leaf an edge ends in while it lives; null for any other edge.
TP_API TensorRef leaf_of_edge(const Edge& e);

/// Adds `g` into `.grad` of `t`, leaf or not: cast to grad_dtype, moved in when nobody else holds it, else copied; later ones
/// in place, whatever memory the user gave `.grad`.
TP_API void accumulate_plain(const TensorRef& t, Storage g);
/// The same for a gradient that is more than memory; out of place where the sum is recorded.
TP_API void accumulate_graph(const TensorRef& t, TensorRef g);

}  // namespace tp
