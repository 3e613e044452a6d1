// Saved values: version guard, unpacking, the tensor with its history. Knows nothing of which op saved it.
#include "autograd/saved.h"

#include "autograd/accumulate_grad.h"
#include "autograd/dual_level.h"
#include "core/errors.h"

namespace tp {

std::unique_ptr<PackedValue> (*pack_saved)(const TensorRef& t) = nullptr;

PackedValue::~PackedValue() = default;

void freed_error(const Node& node, const char* slot) {
  runtime_error(
      node.name(),
      ": Trying to backward through the graph a second time (or directly access saved tensors after they have "
      "already been freed): its saved values have already been freed, '",
      slot,
      "' among them. Saved intermediate values of the graph are freed when you call .backward() or "
      "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
      "you need to access saved tensors after calling backward.");
}

void SavedValue::version_failed(const Node& node, const char* slot) const {
  runtime_error(
      node.name(),
      ": one of the variables needed for gradient computation has been modified by an inplace operation: saved '", slot,
      "' ", value_.sizes(), " is at version ", value_.version(), ", expected ", version_,
      "; clone it before changing it");
}

void SavedValue::save(const TensorRef& t) {
  if (TP_UNLIKELY(t->is_inference()))
    runtime_error(
        "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor "
        "and "
        "use it in autograd.");
  released_ = false;
  if (TP_UNLIKELY(modes::any(modes::kSavedHooks)) && pack_saved) {
    if (std::unique_ptr<PackedValue> packed = pack_saved(t)) {
      ensure_extra().packed = std::move(packed);
      return;
    }
  }
  save(t->storage());
  if (TP_UNLIKELY(t->is_python_subclass())) ensure_extra().subclass = t;
  if (TP_UNLIKELY(t->has_tangent())) set_tangent(dual::tangent_of(t), dual::current_level());
}

void SavedValue::save_output(const TensorRef& t) {
  if (TP_UNLIKELY(t->is_inference())) return save(t);  // raises
  released_ = false;
  if (TP_UNLIKELY(modes::any(modes::kSavedHooks)) && pack_saved) {
    // Without its history: a hook that keeps what it is given must not close a cycle through this node.
    if (std::unique_ptr<PackedValue> packed = pack_saved(TensorImpl::make(t->storage()))) {
      ensure_extra().packed = std::move(packed);
      return;
    }
  }
  save(t->storage());
}

void SavedValue::set_tangent(const TensorRef& tangent, std::uint32_t level) {
  Extra& e = ensure_extra();
  e.tangent = tangent;
  e.tangent_level = level;
}

void SavedValue::pack(std::unique_ptr<PackedValue> packed) {
  value_.drop();
  ensure_extra().packed = std::move(packed);
}

const Storage& SavedValue::unpacked(const Node& node, const char* slot) const {
  if (!extra_ || !extra_->packed) freed_error(node, slot);
  TensorRef t = extra_->packed->unpack();
  if (!t) runtime_error(node.name(), ": the unpack hook of saved '", slot, "' returned no tensor");
  value_ = t->storage();
  const_cast<SavedValue*>(this)->version_ = value_.version();
  return value_;
}

TensorRef SavedValue::tensor(const Node& node, const char* slot, const Edge& edge) const {
  Storage memory;
  if (TP_UNLIKELY(extra_ && extra_->packed)) {
    TensorRef t = extra_->packed->unpack();
    if (!t) runtime_error(node.name(), ": the unpack hook of saved '", slot, "' returned no tensor");
    memory = t->storage();
  } else {
    if (!value_.defined()) freed_error(node, slot);
    check(node, slot);
    if (TP_UNLIKELY(extra_ && extra_->subclass)) return extra_->subclass;
    if (TensorRef leaf = leaf_of_edge(edge); leaf && leaf->storage().same_view(value_)) return leaf;
    memory = value_;
  }
  TensorRef t = TensorImpl::make(std::move(memory));
  if (edge.node) t->set_grad_fn(NodeBaseRef::share(edge.node.get()), edge.nr);
  if (TP_UNLIKELY(extra_ && extra_->tangent) && extra_->tangent_level == dual::current_level())
    dual::attach_tangent(t, extra_->tangent);
  return t;
}

}  // namespace tp
