// Node: the abstract backward function and the edges between them. Knows nothing of any particular op or of Python.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/inline_vec.h"
#include "core/op_schema.h"
#include "core/tensor_impl.h"

namespace tp {

class Node;
using NodeRef = Ref<Node>;

/// Where a gradient goes: input number `nr` of `node`'s backward, that is output `nr` of its forward.
struct Edge {
  NodeRef node;
  std::uint32_t nr = 0;
};

/// One gradient per forward input; a default-constructed Storage (or null TensorRef) is an absent gradient.
using GradVec = InlineVec<Storage, 3>;
using GraphGradVec = InlineVec<TensorRef, 3>;

/// A callback attached to a node by the host. Counted, since a handle and a running pass may both hold it.
class TP_API Hook {
 public:
  Hook() = default;
  Hook(const Hook&) = delete;
  virtual ~Hook();
  static void retain(Hook* h) { ++h->refs_.n; }
  static void release(Hook* h) {
    if (--h->refs_.n == 0) delete h;
  }
  /// Tensor hook: may replace the gradient; null means unchanged.
  virtual TensorRef on_gradient(const TensorRef& grad);
  /// Node pre-hook: may replace the gradients of the node's outputs.
  virtual void on_outputs(GraphGradVec& grads);
  /// Node post-hook: may replace the gradients of the node's inputs.
  virtual void on_inputs(GraphGradVec& grad_inputs, const GraphGradVec& grad_outputs);
  /// Post-accumulate hook of a leaf.
  virtual void on_accumulated(const TensorRef& leaf);
  /// For messages: "hook 'scale' has changed the size of value".
  virtual std::string name() const;

  std::uint64_t id = 0;  // registration order and handle key
 private:
  RefCount refs_;
};
using HookRef = Ref<Hook>;

struct TensorHook {
  std::uint32_t output_nr;
  HookRef hook;
};

/// What few nodes have: hooks, the host's object and metadata, the anomaly record.
struct TP_API NodeMeta {
  std::vector<TensorHook> tensor_hooks;      // in order of registration
  std::vector<HookRef> pre_hooks;
  std::vector<HookRef> post_hooks;
  std::vector<HookRef> accumulated_hooks;    // AccumulateGrad only
  std::vector<std::pair<std::uint32_t, TensorImpl*>> retain_grad;  // (output, tensor whose .grad is filled); weak
  void* host_object = nullptr;               // borrowed: the Python object of this node
  void* host_metadata = nullptr;             // owned through host_metadata_free
  std::string anomaly;                       // where the forward ran, when anomaly mode was on
};
extern TP_API void (*host_metadata_free)(void*);

/// Gradients collected for a node's outputs during a pass.
struct GradSlot {
  GradSlot() noexcept {}
  explicit GradSlot(Storage&& v) noexcept : value(std::move(v)) {}
  Storage value;     // set when the gradient is plain
  TensorRef tensor;  // set when it has history, a tangent or a subclass
  bool defined() const { return value.defined() || bool(tensor); }
};

/// What a pass notes about a node: in the node itself for the pass that owns the scratch, in a side table for any other.
struct PassState {
  std::uint32_t stamp = 0;  // the pass that wrote the rest
  std::uint32_t dependencies = 0;
  std::uint32_t flags = 0;
  std::uint64_t wanted = 0;
  GradSlot* slots = nullptr;
};

/// Bit i: the node running on this thread is asked for the gradient of its input i. Set by the engine around apply.
extern TP_API thread_local constinit std::uint64_t wanted_inputs;

class SavedValue;
/// One value a node keeps for its backward, for inspection (`_saved_<name>`).
struct SavedSlot {
  const char* name = "";
  SavedValue* value = nullptr;
  Edge edge;            // the history of the value: its input's edge, or this node for an output
  bool output = false;  // a result of the node
};

class TP_API Node : public NodeBase {
 public:
  static void retain(Node* n) { NodeBase::retain(n); }
  static void release(Node* n) { NodeBase::release(n); }
  ~Node() override;

  /// "TanhBackward0"; a Function's node "<Cls>Backward".
  virtual std::string name() const = 0;
  virtual const OpSchema* schema() const { return nullptr; }

  /// Gradients of the forward's outputs in, one gradient per forward input out. Plain memory only.
  virtual GradVec apply(std::span<Storage> grad_outputs) = 0;
  /// The same in differentiable ops: runs under create_graph and wherever a value has history, a tangent or a batch.
  virtual GraphGradVec apply_for_graph(std::span<const TensorRef> grad_outputs) = 0;
  /// Raises when a saved value was changed in place since it was saved.
  virtual void validate_versions() {}
  /// Drops the saved values; a later backward raises where one is needed.
  virtual void release_saved() {}
  /// False where saved values carry history needs, tangents or packed objects that only apply_for_graph honours.
  virtual bool saved_plain() const { return true; }
  /// True where apply calls into the host language: the engine hands it tensors (apply_for_graph) in every mode, protects
  /// siblings from what it does to its gradients, and checks what it returns.
  virtual bool is_host() const { return false; }

  /// The saved values by slot; `saved_at(k).value` may hold nothing where the formula turned out not to need it.
  virtual std::size_t saved_count() const { return 0; }
  virtual SavedSlot saved_at(std::size_t k);

  virtual std::span<Edge> next_edges() = 0;
  std::uint32_t num_outputs() const { return num_outputs_; }
  void set_next_edge(std::size_t i, Edge e) { next_edges()[i] = std::move(e); }
  void set_next_edges(std::span<Edge> edges);

  /// Sizes and dtype of the forward's output, for implicit seeds and zeros.
  virtual Storage output_like(std::uint32_t nr) const;

  std::uint64_t sequence_nr() const { return sequence_nr_; }
  NodeMeta* meta() const { return meta_.get(); }
  NodeMeta& ensure_meta() {
    if (!meta_) meta_ = std::make_unique<NodeMeta>();
    return *meta_;
  }

  /// Which inputs the running pass wants a gradient for: bit i; inputs beyond 63 are always wanted. Asked inside apply.
  bool wants(std::size_t i) const { return i >= 64 || (wanted_inputs >> i & 1); }
  std::uint64_t wanted_mask() const { return wanted_inputs; }
  /// The mask of all inputs that have an edge: for a direct call outside a pass.
  std::uint64_t edge_mask();
  /// True for AccumulateGrad, which runs before everything else.
  bool is_accumulator() const { return sequence_nr_ == ~std::uint64_t(0); }
  void tensor_died(TensorImpl* t) override;

 protected:
  explicit Node(std::uint32_t num_outputs) : num_outputs_(num_outputs), sequence_nr_(++next_sequence_nr) {}
  Node(std::uint32_t num_outputs, std::uint64_t sequence_nr) : num_outputs_(num_outputs), sequence_nr_(sequence_nr) {}
  void take_links(std::vector<NodeBase*>& out) override;

  static std::uint64_t next_sequence_nr;
  std::uint32_t num_outputs_;

 private:
  friend struct PassAccess;
  PassState scratch_;
  std::uint64_t sequence_nr_;
  std::unique_ptr<NodeMeta> meta_;
};

/// A node of type T from the size-class lists; one that saves many values is too large for them.
template <class T, class... A>
Ref<T> make_node(A&&... a) {
  void* p = sizeof(T) <= memory::kSmallMax ? memory::small_alloc(sizeof(T)) : ::operator new(sizeof(T));
  return Ref<T>::adopt(new (p) T(std::forward<A>(a)...));
}
inline void free_node(void* p, std::size_t bytes) {
  if (bytes <= memory::kSmallMax)
    memory::small_free(p, bytes);
  else
    ::operator delete(p, bytes);
}

/// Node types end with this so that memory goes back to its list: `TP_NODE_DISPOSE(MyNode)`.
#define TP_NODE_DISPOSE(Type)            \
  void dispose() override {              \
    this->~Type();                       \
    ::tp::free_node(this, sizeof(Type)); \
  }

/// Runs one node outside a pass, in differentiable ops where gradients are on (what calling `grad_fn(g)` does).
TP_API GraphGradVec call_node(Node& node, std::span<const TensorRef> grad_outputs);
/// Fills `.grad` of a non-leaf during backward; no-op on a leaf. Follows the tensor when its history moves.
TP_API void retain_grad(const TensorRef& t);
/// Moves the retain_grad request of `t` from the node it had to the one it is about to get.
TP_API void move_retained(TensorImpl* t, Node* from, Node* to, std::uint32_t output_nr);

/// The node that made `t`: for a view whose base moved on, made anew first. Null for a leaf.
TP_API Node* grad_fn(const TensorRef& t);
/// Where a gradient of `t` goes: its grad_fn, or for a leaf that requires grad its AccumulateGrad; absent otherwise.
TP_API Edge find_gradient_edge(const TensorRef& t);
inline Edge gradient_edge(const TensorRef& t) {
  // A plain intermediate result has a node and nothing else to look at.
  if (TP_LIKELY(!t->is_special() && t->grad_fn_raw()))
    return {NodeRef::share(static_cast<Node*>(t->grad_fn_raw())), t->output_nr()};
  return find_gradient_edge(t);
}

}  // namespace tp
