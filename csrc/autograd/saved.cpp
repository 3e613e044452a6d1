// Saved values: version guard, unpacking, the tensor with its history. Knows nothing of which op saved it.
#include "autograd/saved.h"

#include "autograd/accumulate_grad.h"
#include "autograd/dual_level.h"
#include "autograd/stand_in.h"
#include "core/errors.h"

namespace tp {

std::unique_ptr<PackedValue> (*pack_saved)(const TensorRef& t) = nullptr;

PackedValue::~PackedValue() = default;

thread_local constinit StandIn* StandIn::innermost = nullptr;

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
  const Storage& value = widen(&node).value;
  runtime_error(
      node.name(),
      ": one of the variables needed for gradient computation has been modified by an inplace operation: saved '", slot,
      "' ", value.sizes(), " is at version ", value.version(), "; expected version ", version_,
      " instead; clone it before changing it");
}

bool SavedValue::save_packed(const TensorRef& t) {
  if (!modes::any(modes::kSavedHooks) || !pack_saved) return false;
  std::unique_ptr<PackedValue> packed = pack_saved(t);
  if (!packed) return false;
  released_ = false;
  drop();
  ensure_extra(nullptr).packed = std::move(packed);
  return true;
}

namespace {

template <class F>
void save_tangents(const TensorRef& t, F&& extra) {
  if (!t->has_tangent()) return;
  SavedValue::Extra& e = extra();
  dual::LevelList levels;
  dual::collect_levels(t, levels);
  for (std::uint32_t level : levels) e.tangents.emplace_back(level, dual::tangent_of(t, level));
}

}  // namespace

void SavedValue::save_special(const TensorRef& t, const Shape* like) {
  if (t->is_inference())
    runtime_error(
        "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor "
        "and "
        "use it in autograd.");
  // A hook may keep memory alone (checkpoint makes it again): tangents stay here.
  if (!save_packed(t)) {
    keep(t->storage(), t->is_python_subclass() || t->has_tangent() ? nullptr : like);
    if (t->is_python_subclass()) ensure_extra(nullptr).subclass = t;
  }
  save_tangents(t, [&]() -> Extra& { return ensure_extra(nullptr); });
}

void SavedValue::save_special_output(const TensorRef& t, const Shape* like) {
  if (t->is_inference()) return save_special(t, like);  // raises
  // Without its history: a hook that keeps what it is given must not close a cycle through this node.
  if (!modes::any(modes::kSavedHooks) || !save_packed(TensorImpl::make(t->storage())))
    keep(t->storage(), t->has_tangent() ? nullptr : like);
  save_tangents(t, [&]() -> Extra& {
    return ensure_extra(nullptr);
  });  // those of an in-place op; others come when they are known
}

void SavedValue::set_tangent(const Node& node, const TensorRef& tangent, std::uint32_t level) {
  Extra& e = ensure_extra(&node);
  for (auto& [of, value] : e.tangents) {
    if (of != level) continue;
    value = tangent;
    return;
  }
  e.tangents.emplace_back(level, tangent);
}

void SavedValue::pack(std::unique_ptr<PackedValue> packed) {
  drop();
  ensure_extra(nullptr).packed = std::move(packed);
}

SavedValue::Whole& SavedValue::widen(const Node* node) const {
  if (kind_ == Kind::Whole) return *whole_;
  std::unique_ptr<struct Whole> w(new struct Whole);
  if (kind_ != Kind::None) {
    w->value = short_form(kind_ == Kind::Scalar ? Shape() : node->output_like(0).sizes());
    Block::release(block_);
  }
  kind_ = Kind::Whole;
  whole_ = w.release();
  return *whole_;
}

SavedValue::Extra& SavedValue::ensure_extra(const Node* node) {
  struct Whole& w = widen(node);
  if (!w.extra) w.extra = std::make_unique<Extra>();
  extra_ = true;
  return *w.extra;
}

Storage SavedValue::get(const Node& node, const char* slot, const Shape& like) const {
  Storage s;
  // Made anew at each reading: nothing of it stays with the node, and no line of memory but the block's is touched.
  if (TP_LIKELY(kind_ == Kind::LikeOutput)) {
    s.become(BlockRef::share(block_), dtype_, like);
    s.set_wrapped_number(number_);
  } else if (kind_ == Kind::Whole) {
    s = unpacked(node, slot);
  } else if (kind_ == Kind::Scalar) {
    s = short_form(Shape());
  } else {
    freed_error(node, slot);
  }
  return s;
}

Storage SavedValue::short_form(const Shape& sizes) const {
  Storage s;
  s.become(BlockRef::share(block_), dtype_, sizes);
  s.set_wrapped_number(number_);
  return s;
}

Storage SavedValue::get(const Node& node, const char* slot) const {
  return get(node, slot, kind_ == Kind::LikeOutput ? node.output_like(0).sizes() : Shape());
}

const Storage& SavedValue::unpacked(const Node& node, const char* slot) const {
  struct Whole& w = *whole_;
  if (w.value.defined()) return w.value;
  TensorRef t = w.extra && w.extra->packed ? w.extra->packed->unpack() : TensorRef();
  if (!t) runtime_error(node.name(), ": the unpack hook of saved '", slot, "' returned no tensor");
  w.value = t->storage();
  version_ = w.value.version();
  return w.value;
}

TensorRef SavedValue::tensor(const Node& node, const char* slot, const Edge& edge) const {
  Storage memory;
  TensorRef unpacked;
  const Extra* e = extra();
  if (TP_UNLIKELY(e && e->packed)) {
    unpacked = e->packed->unpack();
    if (!unpacked) runtime_error(node.name(), ": the unpack hook of saved '", slot, "' returned no tensor");
    memory = unpacked->storage();
  } else {
    const Storage value = get(node, slot);
    check(node, slot);
    if (TP_UNLIKELY(e && e->subclass)) return e->subclass;
    // A dual's gradient goes straight to its leaf, which carries no tangent: the leaf is not what was saved.
    if (!e || e->tangents.empty())
      if (TensorRef leaf = leaf_of_edge(edge); leaf && leaf->storage().same_view(value)) return leaf;
    memory = value;
  }
  TensorRef t = TensorImpl::make(std::move(memory));
  if (const Edge& to = StandIn::resolve(edge); to.node) t->set_grad_fn(NodeBaseRef::share(to.node.get()), to.nr);
  if (TP_UNLIKELY(e != nullptr)) {
    for (const auto& [level, tangent] : e->tangents) dual::attach_tangent(t, tangent, level);  // closed levels: ignored
    if (unpacked) dual::share_tangents(t, unpacked, ~std::uint32_t(0));
  }
  return t;
}

}  // namespace tp
