// AccumulateGrad: how a gradient gets into a leaf's .grad.
#include "autograd/accumulate_grad.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "autograd/pass.h"
#include "kernels/tiles.h"

namespace tp {

bool wanted_dtype(const TensorRef& t, Dtype& out) {
  const AutogradMeta* m = t->meta();
  if (m && m->has_grad_dtype) {
    if (m->any_grad_dtype) return false;
    out = m->grad_dtype;
  } else {
    out = t->dtype();
  }
  return true;
}

namespace {

/// One thread at a time adds to the gradient of a tensor: a kernel on a large one lets other threads run in its middle.
/// The list is guarded by the host's lock.
class GradientLock {
 public:
  explicit GradientLock(TensorImpl* t) : of_(t->numel() >= kFrom && modes::host.release_lock ? t : nullptr) {
    if (!of_) return;
    while (taken_elsewhere()) {
      void* token = modes::host.release_lock();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      modes::host.acquire_lock(token);
    }
    holders.push_back({of_, std::this_thread::get_id()});
  }
  ~GradientLock() {
    if (!of_) return;
    const auto mine = [this](const Holder& h) { return h.of == of_ && h.thread == std::this_thread::get_id(); };
    holders.erase(std::find_if(holders.begin(), holders.end(), mine));
  }
  GradientLock(const GradientLock&) = delete;

 private:
  static constexpr std::int64_t kFrom = 4096;  // no kernel lets go of the lock for less
  struct Holder {
    TensorImpl* of;
    std::thread::id thread;
  };
  bool taken_elsewhere() const {
    return std::any_of(holders.begin(), holders.end(),
                       [this](const Holder& h) { return h.of == of_ && h.thread != std::this_thread::get_id(); });
  }
  static std::vector<Holder> holders;
  TensorImpl* of_;
};
std::vector<GradientLock::Holder> GradientLock::holders;

bool plain(const TensorRef& t) {
  return !t->is_batched() && !t->requires_grad() && !t->has_tangent() && !t->is_python_subclass();
}

/// Memory that one loop adds to: writable, one element a place, and nobody records what happens to it.
bool adds_flat(const TensorRef& grad, const Storage& g) {
  const Storage& s = grad->storage();
  return plain(grad) && !grad->is_inference() && s.dtype() == g.dtype() && s.sizes() == g.sizes() && s.is_dense() &&
      !s.block()->read_only;
}

void check_writable(const TensorRef& grad) {
  const Storage& s = (grad->is_batched() ? grad->meta()->physical : grad)->storage();
  const char* why = nullptr;
  if (grad->is_inference() && !modes::any(modes::kInference)) why = "it was made under inference_mode";
  if (s.block()->read_only) why = "its memory is read-only";
  if (kernels::has_internal_overlap(s)) why = "several of its elements share one memory location";
  if (why)
    runtime_error("AccumulateGrad: a gradient can't be added in place to the .grad of sizes ", s.sizes(),
                  " and strides ", s.strides(), ": ", why, "; set .grad to a clone of it, or to None");
}

/// Adds to what `.grad` holds, whatever its layout, so that who else looks at that memory sees it. Where something is
/// recorded the sum is a tensor of its own; so it is for a gradient batched further than what it is added to.
void add_to(TensorRef& grad, const TensorRef& g) {
  const TensorRef into = grad;  // whatever other threads do to .grad meanwhile
  TensorRef sum = engine_ops.add_graph(into, g);
  const bool recorded = modes::grad_enabled() || (into->requires_grad() && !into->is_leaf());
  if (recorded || (sum->is_batched() && !into->is_batched())) {
    grad = std::move(sum);
  } else {
    check_writable(into);
    engine_ops.copy_graph(into, sum);
  }
}

[[noreturn]] void refuse_size(const TensorRef& t, const Shape& got) {
  runtime_error("AccumulateGrad: a gradient of sizes ", got, " arrived for a leaf of sizes ", t->sizes(),
                "; the sizes of a tensor that requires grad, set by .data or a hook, must stay");
}

/// A gradient is moved in only when nobody else sees its memory and it is laid out as the leaf is.
bool moves_in(const Storage& g, const Storage& like) {
  if (!g.unique() || !g.is_dense()) return false;
  if (g.is_contiguous() && like.is_contiguous()) return true;
  return g.strides() == like.strides() || !like.is_dense();
}

/// A copy with the strides of `like`, so that adding to it and updating the leaf walk memory in one order.
Storage copy_laid_out_as(const Storage& like, const Storage& g) {
  if (like.is_contiguous() || !like.is_dense() || !(g.sizes() == like.sizes())) return engine_ops.clone(g);
  Dims order(like.dim(), 0);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::int64_t d) { return like.stride(int(d)); });
  Shape sizes;
  Strides strides;
  for (const std::int64_t d : order) {
    sizes.push_back(g.size(int(d)));
    strides.push_back(g.stride(int(d)));
  }
  const Storage copy = engine_ops.clone(g.with_geometry(std::move(sizes), std::move(strides), g.offset()));
  return copy.with_geometry(like.sizes(), like.strides(), copy.offset());
}

}  // namespace

void accumulate_plain(const TensorRef& t, Storage g) {
  if (TP_UNLIKELY(!(g.sizes() == t->sizes()))) refuse_size(t, g.sizes());
  Dtype dtype;
  if (wanted_dtype(t, dtype) && g.dtype() != dtype) g = engine_ops.cast(g, dtype);
  const GradientLock lock(t.get());
  AutogradMeta& m = t->ensure_meta();
  if (!m.grad) {
    if (!moves_in(g, t->storage())) g = copy_laid_out_as(t->storage(), g);
    m.grad = TensorImpl::make(std::move(g));
  } else if (adds_flat(m.grad, g)) {
    const TensorRef into = m.grad;  // whatever other threads do to .grad meanwhile
    engine_ops.add_inplace(into->storage(), g);
    into->storage().bump_version();
  } else {
    add_to(m.grad, TensorImpl::make(std::move(g)));
  }
}

void accumulate_graph(const TensorRef& t, TensorRef g) {
  if (TP_UNLIKELY(!(g->sizes() == t->sizes()))) refuse_size(t, g->sizes());
  Dtype dtype;
  if (wanted_dtype(t, dtype) && g->dtype() != dtype) g = engine_ops.cast_graph(g, dtype);
  const GradientLock lock(t.get());
  AutogradMeta& m = t->ensure_meta();
  if (m.grad) return add_to(m.grad, g);
  const bool own = g->use_count() == 1 && g->storage().unique() && g->storage().is_dense();
  m.grad = own ? std::move(g) : engine_ops.clone_graph(g);
}

GradVec AccumulateGrad::apply(std::span<Storage> grad_outputs) {
  const TensorRef t = leaf();
  if (t && t->requires_grad() && grad_outputs[0].defined()) accumulate_plain(t, std::move(grad_outputs[0]));
  return {};
}

GraphGradVec AccumulateGrad::apply_for_graph(std::span<const TensorRef> grad_outputs) {
  const TensorRef t = leaf();
  if (t && t->requires_grad() && grad_outputs[0]) accumulate_graph(t, grad_outputs[0]);
  return {};
}

void AccumulateGrad::take_gradient(TensorRef& g) {
  const TensorRef t = leaf();
  if (t && t->requires_grad()) accumulate_graph(t, std::move(g));
}

Storage AccumulateGrad::output_like(std::uint32_t) const {
  const TensorRef t = leaf();
  if (!t) return Storage();
  Dtype dtype;
  return Storage(BlockRef(), wanted_dtype(t, dtype) ? dtype : t->dtype(), t->sizes());
}

void AccumulateGrad::run_accumulated_hooks() {
  if (!meta() || meta()->accumulated_hooks.empty()) return;
  const TensorRef t = leaf();
  if (!t) return;
  const std::vector<HookRef> hooks = meta()->accumulated_hooks;  // a hook may remove itself
  for (const HookRef& h : hooks) h->on_accumulated(t);
}

void retain_gradient(const TensorRef& t, const GradSlot& slot) {
  const GradientLock lock(t.get());
  TensorRef& grad = t->ensure_meta().grad;
  if (grad)
    grad = engine_ops.add_graph(grad, slot.tensor ? slot.tensor : TensorImpl::make(slot.value));
  else
    grad = slot.tensor ? engine_ops.clone_graph(slot.tensor) : TensorImpl::make(engine_ops.clone(slot.value));
}

AccumulateGrad* accumulator_of(const TensorRef& leaf) {
  NodeBaseRef& slot = leaf->ensure_meta().accumulator;
  if (!slot) slot = make_node<AccumulateGrad>(leaf.get());
  return static_cast<AccumulateGrad*>(static_cast<Node*>(slot.get()));
}

}  // namespace tp
