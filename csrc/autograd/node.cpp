// Node, edges and hooks out of line: lifetimes, gradient edges, retained gradients. Knows no op and no pass.
#include "autograd/node.h"

#include <algorithm>

#include "autograd/accumulate_grad.h"
#include "autograd/saved.h"
#include "core/errors.h"

namespace tp {

void (*host_metadata_free)(void*) = nullptr;
thread_local constinit std::uint64_t wanted_inputs = ~std::uint64_t(0);
std::uint64_t Node::next_sequence_nr = 0;

Hook::~Hook() = default;
TensorRef Hook::on_gradient(const TensorRef&) { return nullptr; }
void Hook::on_outputs(GraphGradVec&) {}
void Hook::on_inputs(GraphGradVec&, const GraphGradVec&) {}
void Hook::on_accumulated(const TensorRef&) {}
std::string Hook::name() const { return "hook"; }

Node::~Node() {
  if (TP_UNLIKELY(meta_ != nullptr) && meta_->host_metadata && host_metadata_free)
    host_metadata_free(meta_->host_metadata);
}

void Node::take_links(std::vector<NodeBase*>& out) {
  for (Edge& e : next_edges())
    if (e.node) out.push_back(e.node.detach());
}

void Node::set_next_edges(std::span<Edge> edges) {
  std::span<Edge> mine = next_edges();
  if (edges.size() > mine.size())
    runtime_error(name(), ": set_next_edges got ", edges.size(), " edges for ", mine.size(), " inputs");
  std::copy(edges.begin(), edges.end(), mine.begin());
}

Storage Node::output_like(std::uint32_t) const { return Storage(); }

SavedSlot Node::saved_at(std::size_t) { return {}; }

std::uint64_t Node::edge_mask() {
  std::uint64_t mask = 0, bit = 1;
  for (const Edge& e : next_edges()) {
    if (e.node) mask |= bit;
    bit <<= 1;
  }
  return mask;
}

void Node::tensor_died(TensorImpl* t) {
  if (!meta_) return;
  std::erase_if(meta_->retain_grad, [t](const auto& entry) { return entry.second == t; });
}

GraphGradVec call_node(Node& node, std::span<const TensorRef> grad_outputs) {
  if (grad_outputs.size() != node.num_outputs())
    type_error(node.name(), " expected ", node.num_outputs(), " arguments, got ", grad_outputs.size(), " instead");
  struct Restore {
    std::uint64_t before = wanted_inputs;
    ~Restore() { wanted_inputs = before; }
  } restore;
  wanted_inputs = node.edge_mask();
  node.validate_versions();
  return node.apply_for_graph(grad_outputs);
}

void retain_grad(const TensorRef& t) {
  if (!t->requires_grad()) runtime_error("can't retain_grad on Tensor that has requires_grad=False");
  Node* fn = grad_fn(t);
  if (!fn || t->ensure_meta().retains_grad) return;
  t->ensure_meta().retains_grad = true;
  fn->ensure_meta().retain_grad.emplace_back(t->output_nr(), t.get());
}

void move_retained(TensorImpl* t, Node* from, Node* to, std::uint32_t output_nr) {
  if (TP_LIKELY(!t->meta() || !t->meta()->retains_grad)) return;
  if (from) from->tensor_died(t);
  if (to) to->ensure_meta().retain_grad.emplace_back(output_nr, t);
}

Edge find_gradient_edge(const TensorRef& t) {
  if (TP_UNLIKELY(t->is_batched())) return find_gradient_edge(t->meta()->physical);
  if (!t->grad_fn_raw() && !t->is_view()) {
    if (!t->requires_grad()) return {};
    return {NodeRef::share(accumulator_of(t)), 0};
  }
  if (Node* fn = grad_fn(t)) return {NodeRef::share(fn), t->output_nr()};
  if (t->requires_grad()) return {NodeRef::share(accumulator_of(t)), 0};
  return {};
}

TensorRef leaf_of_edge(const Edge& e) {
  if (!e.node || !e.node->is_accumulator()) return nullptr;
  return static_cast<AccumulateGrad*>(e.node.get())->leaf();
}

}  // namespace tp
