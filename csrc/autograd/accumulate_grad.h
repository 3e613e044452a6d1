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

 protected:
  TP_NODE_DISPOSE(AccumulateGrad)

 private:
  void run_accumulated_hooks();
  TensorImpl* leaf_;
};

/// The accumulator of a leaf that requires grad, made on first use.
TP_API AccumulateGrad* accumulator_of(const TensorRef& leaf);

}  // namespace tp
