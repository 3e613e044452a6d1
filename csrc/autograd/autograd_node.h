// AutogradNode<Derived, N_IN>: the fields and lifecycle every generated backward class shares (CRTP).
// Slot order is the forward's positional order: gradients come back in it.
#pragma once
#include <array>

#include "autograd/saved.h"

namespace tp {

/// `N_SAVED` slots are given room; the derived class says what they hold:
///   static constexpr OpSchema schema_v1 = {...};
///   static constexpr const char* kSavedNames[N_SAVED];   // argument or result names
///   static constexpr std::int8_t kSavedInput[N_SAVED];   // index of the input saved, or -1 - output_nr
template <class Derived, std::size_t N_IN, std::size_t N_SAVED = N_IN + 1>
class AutogradNode : public Node {
 public:
  static constexpr std::size_t kNumInputs = N_IN;

  explicit AutogradNode(std::uint32_t num_outputs = 1) : Node(num_outputs) {}

  std::string name() const override { return std::string(Derived::kName) + "0"; }
  const OpSchema* schema() const override { return &Derived::schema_v1; }
  std::span<Edge> next_edges() override { return edges_; }

  void validate_versions() override {
    for (std::size_t i = 0; i < N_SAVED; ++i) saved_[i].check(*this, Derived::kSavedNames[i]);
  }
  void release_saved() override {
    for (SavedValue& s : saved_) s.release();
  }
  bool saved_plain() const override {
    for (const SavedValue& s : saved_)
      if (!s.plain()) return false;
    return true;
  }
  Storage output_like(std::uint32_t) const override { return Storage(BlockRef(), dtype_, out_shape_); }
  std::size_t saved_count() const override { return N_SAVED; }
  SavedSlot saved_at(std::size_t k) override {
    const int from = Derived::kSavedInput[k];
    Edge edge = from >= 0 ? edges_[from] : Edge{NodeRef::share(this), std::uint32_t(-1 - from)};
    return {Derived::kSavedNames[k], &saved_[k], std::move(edge), from < 0};
  }

  /// The live inputs whose grad can still be retained: leaves by identity, others as tensors with this history.
  std::vector<TensorRef> retainable_inputs() {
    std::vector<TensorRef> live;
    for (std::size_t i = 0; i < N_IN; ++i)
      if (TensorRef t = input_tensor(i)) live.push_back(std::move(t));
    return live;
  }
  /// contract `input_tensors_[i]`: a leaf that is still alive, or the saved tensor of that input; null otherwise.
  TensorRef input_tensor(std::size_t i) {
    for (std::size_t k = 0; k < N_SAVED; ++k)
      if (Derived::kSavedInput[k] == int(i) && saved_[k].saved()) return saved_tensor(k);
    return leaf_of(edges_[i]);
  }
  /// contract `saved_inputs_[i]` / `saved_output_`: by slot; absent where the formula does not need it.
  const SavedValue& saved_slot(std::size_t k) const { return saved_[k]; }
  SavedValue& saved_slot(std::size_t k) { return saved_[k]; }
  static constexpr std::size_t num_saved() { return N_SAVED; }

  const Shape& out_shape() const { return out_shape_; }
  /// contract `input_shapes_[i]`.
  const Shape& input_shape(std::size_t i) const { return input_shapes_ ? input_shapes_->of[i] : out_shape_; }
  Dtype input_dtype(std::size_t i) const { return input_dtypes_[i]; }
  Dtype dtype() const { return dtype_; }
  Device device() const { return Device::CPU; }

  // Filled by the forward's wiring; set_output comes first.
  void save(std::size_t k, const TensorRef& t) {
    if (Derived::kSavedInput[k] >= 0)
      saved_[k].save(t, &out_shape_);
    else
      saved_[k].save_output(t, &out_shape_);
  }
  void set_output(const Storage& out) {
    out_shape_ = out.sizes();
    dtype_ = out.dtype();
  }
  /// Edge, dtype and (where they differ from the output's: call after set_output) sizes of input i. Null: an absent optional.
  void set_input(std::size_t i, const TensorRef& t) {
    if (!t) return;
    input_dtypes_[i] = t->dtype();
    if (t->requires_grad()) {
      edges_[i] = gradient_edge(t);
      if (!(t->sizes() == out_shape_)) keep_shape(i, t->sizes());
    }
  }

 protected:
  void keep_shape(std::size_t i, const Shape& sizes) {
    if (!input_shapes_) {
      input_shapes_ = std::make_unique<InputShapes>();
      if (N_IN > 1) input_shapes_->of.fill(out_shape_);
    }
    input_shapes_->of[i] = sizes;
  }
  Storage saved(std::size_t k) const { return saved_[k].get(*this, Derived::kSavedNames[k], out_shape_); }
  /// With history, for apply_for_graph: an input on its own edge, an output on this node.
  TensorRef saved_tensor(std::size_t k) {
    const int from = Derived::kSavedInput[k];
    if (from >= 0) return saved_[k].tensor(*this, Derived::kSavedNames[k], edges_[from]);
    return saved_[k].tensor(*this, Derived::kSavedNames[k], Edge{NodeRef::share(this), std::uint32_t(-1 - from)});
  }
  static TensorRef leaf_of(const Edge& e);

  std::array<Edge, N_IN> edges_;
  std::array<SavedValue, N_SAVED> saved_;
  Shape out_shape_;
  struct InputShapes {
    std::array<Shape, N_IN> of;
    static void* operator new(std::size_t n) {
      return n <= memory::kSmallMax ? memory::small_alloc(n) : ::operator new(n);
    }
    static void operator delete(void* p, std::size_t n) { free_node(p, n); }
  };
  std::unique_ptr<InputShapes> input_shapes_;  // absent: every input has the sizes of the output
  std::array<Dtype, N_IN> input_dtypes_{};
  Dtype dtype_ = Dtype::F32;
};

TP_API TensorRef leaf_of_edge(const Edge& e);
template <class D, std::size_t N, std::size_t S>
TensorRef AutogradNode<D, N, S>::leaf_of(const Edge& e) {
  return leaf_of_edge(e);
}

/// What generated classes derive from: TanhBackward : FuncOp<TanhBackward, 1, 1>.
template <class Derived, std::size_t N_IN, std::size_t N_SAVED = N_IN + 1>
using FuncOp = AutogradNode<Derived, N_IN, N_SAVED>;

/// The same for ops over a list of tensors (cat, stack): the number of inputs is known when the op runs.
template <class Derived, std::size_t N_SAVED = 0>
class ListNode : public Node {
 public:
  explicit ListNode(std::size_t inputs, std::uint32_t num_outputs = 1) : Node(num_outputs) { edges_.resize(inputs); }
  std::string name() const override { return std::string(Derived::kName) + "0"; }
  const OpSchema* schema() const override { return &Derived::schema_v1; }
  std::span<Edge> next_edges() override { return edges_; }
  void validate_versions() override {
    for (std::size_t i = 0; i < saved_.size(); ++i) saved_[i].check(*this, "tensors");
  }
  void release_saved() override {
    for (SavedValue& s : saved_) s.release();
  }
  bool saved_plain() const override {
    for (const SavedValue& s : saved_)
      if (!s.plain()) return false;
    return true;
  }
  Storage output_like(std::uint32_t) const override { return Storage(BlockRef(), dtype_, out_shape_); }
  std::size_t saved_count() const override { return saved_.size(); }
  SavedSlot saved_at(std::size_t k) override {
    return {"tensors", &saved_[k], k < edges_.size() ? edges_[k] : Edge(), false};
  }
  void set_output(const Storage& out) {
    out_shape_ = out.sizes();
    dtype_ = out.dtype();
  }
  std::vector<SavedValue> saved_;  // filled by ops that read their inputs again

 protected:
  PooledVec<Edge> edges_;
  Shape out_shape_;
  Dtype dtype_ = Dtype::F32;
};

}  // namespace tp
