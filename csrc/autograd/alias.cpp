// The node behind an alias: passes its gradient on, or ends there.
#include "autograd/alias.h"

#include "autograd/dual_level.h"

namespace tp {
namespace {

class AliasBackward final : public Node {
 public:
  AliasBackward(Edge to, const Storage& like)
      : Node(1), edge_(std::move(to)), sizes_(like.sizes()), dtype_(like.dtype()) {}
  std::string name() const override { return "AliasBackward0"; }
  GradVec apply(std::span<Storage> grad_outputs) override {
    GradVec out(1);
    if (edge_.node) out[0] = std::move(grad_outputs[0]);
    return out;
  }
  GraphGradVec apply_for_graph(std::span<const TensorRef> grad_outputs) override {
    GraphGradVec out(1);
    if (edge_.node) out[0] = grad_outputs[0];
    return out;
  }
  std::span<Edge> next_edges() override { return {&edge_, edge_.node ? 1u : 0u}; }
  Storage output_like(std::uint32_t) const override { return Storage(BlockRef(), dtype_, sizes_); }

  static std::uint64_t latest() { return next_sequence_nr; }

 protected:
  TP_NODE_DISPOSE(AliasBackward)

 private:
  Edge edge_;
  Shape sizes_;
  Dtype dtype_;
};

}  // namespace

std::uint64_t current_age() { return AliasBackward::latest(); }

TensorRef make_alias(const TensorRef& t) {
  TensorRef alias = TensorImpl::make(t->storage());
  Ref<AliasBackward> node = make_node<AliasBackward>(t->requires_grad() ? gradient_edge(t) : Edge(), t->storage());
  alias->set_grad_fn(NodeBaseRef::adopt(node.detach()), 0);
  dual::share_tangents(alias, t, ~std::uint32_t(0));
  return alias;
}

TensorRef without_history(const TensorRef& t) {
  TensorRef plain = TensorImpl::make(t->storage());
  plain->set_inference(t->is_inference());
  dual::share_tangents(plain, t, ~std::uint32_t(0));
  return plain;
}

}  // namespace tp
