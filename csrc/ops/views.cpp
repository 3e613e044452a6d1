// Views: how they are marked, and how histories move when a view or its base is changed in place. Knows no op by name.
#include "ops/views.h"

#include <algorithm>
#include <utility>

#include "autograd/layout.h"
#include "autograd/stand_in.h"
#include "core/errors.h"
#include "kernels/staging.h"

namespace tp {
namespace views {
namespace {

std::int64_t extent(const Geometry& g) { return tp::extent(g.sizes, g.strides); }

/// Memory laid out as the base's, uninitialised.
Storage base_memory(const Geometry& base, bool zero) {
  Storage flat = zero ? zeros_storage({extent(base)}, base.dtype) : empty({extent(base)}, base.dtype);
  return flat.with_geometry(base.sizes, base.strides, 0);
}

/// Offset of the view in elements of its own dtype, from the base's first element.
std::int64_t relative_offset(const Geometry& base, const Geometry& view) {
  const std::int64_t bytes =
      view.offset * std::int64_t(item_size(view.dtype)) - base.offset * std::int64_t(item_size(base.dtype));
  const std::int64_t end = bytes + extent(view) * std::int64_t(item_size(view.dtype));
  if (bytes < 0 || end > extent(base) * std::int64_t(item_size(base.dtype)))
    runtime_error(
        "in-place operation on a view that reaches outside its base: its gradient has no place; clone it first");
  return bytes / std::int64_t(item_size(view.dtype));
}

/// The part of memory laid out as the base's that the view covers.
Storage part_of(const Storage& whole, const Geometry& base, const Geometry& view) {
  const std::int64_t offset = relative_offset(base, view) +
      whole.offset() * std::int64_t(item_size(whole.dtype())) / std::int64_t(item_size(view.dtype));
  return Storage(whole.block(), view.dtype, view.sizes, view.strides, offset);
}

/// part += g where elements of part may coincide: dimension by dimension until they do not.
void add_overlapping(const Storage& part, const Storage& g) {
  if (!may_repeat(part.sizes(), part.strides())) {
    Storage into = part;
    kernels::copy_into(into, engine_ops.add(part, g));
    return;
  }
  const auto without_first = [](const Storage& s, std::int64_t i) {
    Shape sizes = s.sizes();
    Strides strides = s.strides();
    const std::int64_t offset = s.offset() + i * strides[0];
    sizes.erase(0);
    strides.erase(0);
    return s.with_geometry(sizes, strides, offset);
  };
  for (std::int64_t i = 0; i < part.size(0); ++i) add_overlapping(without_first(part, i), without_first(g, i));
}

// ---- graph mode: the base's memory as a 1-d tensor; real and complex meet in real elements ----------------------------

/// Elements `flat` is counted in when a view of `view` is taken from a base of `base`.
bool mixed(Dtype base, Dtype view) { return is_complex(base) != is_complex(view); }

/// Sizes and strides of a complex view, counted in real elements.
void count_in_reals(Geometry& g) {
  for (std::int64_t& s : g.strides) s *= 2;
  g.sizes.push_back(2);
  g.strides.push_back(1);
}

/// Where the first element lies; a batched tensor's is that of its physical one, as as_strided counts there.
std::int64_t offset_of(const TensorRef& t) { return (t->is_batched() ? t->meta()->physical : t)->storage().offset(); }

TensorRef flat_take(const TensorRef& flat, const Geometry& base, Geometry view) {
  const bool both = mixed(base.dtype, view.dtype);
  const std::int64_t offset = relative_offset(base, view);
  TensorRef from = flat;
  if (both && is_complex(base.dtype)) from = engine_ops.view_as_real_graph(from);
  if (!both || !is_complex(view.dtype))
    return engine_ops.as_strided_graph(from, view.sizes, view.strides, offset_of(from) + offset);
  count_in_reals(view);
  return engine_ops.view_as_complex_graph(
      engine_ops.as_strided_graph(from, view.sizes, view.strides, offset_of(from) + 2 * offset));
}

TensorRef flat_put(const TensorRef& flat, const TensorRef& part, const Geometry& base, Geometry view) {
  const bool both = mixed(base.dtype, view.dtype);
  std::int64_t offset = relative_offset(base, view);
  TensorRef into = flat, src = part;
  if (both && is_complex(base.dtype)) into = engine_ops.view_as_real_graph(into);
  if (both && is_complex(view.dtype)) {
    src = engine_ops.view_as_real_graph(src);
    count_in_reals(view);
    offset *= 2;
  }
  TensorRef out = engine_ops.as_strided_scatter_graph(into, src, view.sizes, view.strides, offset_of(into) + offset);
  return both && is_complex(base.dtype) ? engine_ops.view_as_complex_graph(out) : out;
}

TensorRef to_base(const TensorRef& flat, const Geometry& base) {
  return engine_ops.as_strided_graph(flat, base.sizes, base.strides, offset_of(flat));
}

TensorRef flat_zeros(const Geometry& base) { return TensorImpl::make(zeros_storage({extent(base)}, base.dtype)); }

TensorRef in_dtype(const TensorRef& t, Dtype d) { return t->dtype() == d ? t : engine_ops.cast_graph(t, d); }

}  // namespace

Geometry geometry_of(const Storage& s) { return {s.sizes(), s.strides(), s.offset(), s.dtype()}; }

// ---- AsStridedBackward -----------------------------------------------------------------------------------------------

GradVec AsStridedBackward::apply(std::span<Storage> grad_outputs) {
  GradVec out(1);
  if (!wants(0) || !grad_outputs[0].defined()) return out;
  Storage g = std::move(grad_outputs[0]);
  Storage whole = base_memory(base_, true);
  Storage part = part_of(whole, base_, view_);
  if (!may_repeat(view_.sizes, view_.strides)) {
    kernels::copy_into(part, g);
  } else {
    // Broadcast dimensions all show one element: their gradients are summed first.
    Shape once = view_.sizes;
    std::transform(once.begin(), once.end(), view_.strides.begin(), once.begin(),
                   [](std::int64_t n, std::int64_t step) { return step ? n : 1; });
    if (!(once == view_.sizes)) g = engine_ops.sum_to(g, once);
    add_overlapping(part.with_geometry(once, view_.strides, part.offset()), g);
  }
  out[0] = std::move(whole);
  return out;
}

GraphGradVec AsStridedBackward::apply_for_graph(std::span<const TensorRef> grad_outputs) {
  GraphGradVec out(1);
  if (!wants(0) || !grad_outputs[0]) return out;
  const TensorRef& g = grad_outputs[0];
  if (!may_repeat(view_.sizes, view_.strides)) {
    out[0] = to_base(flat_put(flat_zeros(base_), g, base_, view_), base_);
  } else if (mixed(base_.dtype, view_.dtype)) {
    not_implemented(name(), ": the second derivative through an overlapping view between real and complex");
  } else {
    TensorRef flat = engine_ops.as_strided_backward_graph(g, {extent(base_)}, view_.sizes, view_.strides,
                                                          relative_offset(base_, view_));
    out[0] = to_base(flat, base_);
  }
  return out;
}

// ---- CopySlices ------------------------------------------------------------------------------------------------------

CopySlices::CopySlices(const TensorRef& base, const TensorRef& view, NodeRef fn)
    : Node(1), base_(geometry_of(base->storage())), view_(geometry_of(view->storage())), fn_(std::move(fn)) {
  const std::span<Edge> edges = fn_->next_edges();
  edges_.assign(edges.begin(), edges.end());
  edges_[0] = gradient_edge(base);
  relative_offset(base_, view_);
}

GradVec CopySlices::apply(std::span<Storage> grad_outputs) {
  Storage g = std::move(grad_outputs[0]);
  if (!g.defined()) return GradVec(edges_.size());
  Storage whole;
  if (g.unique() && g.strides() == base_.strides && g.is_dense()) {
    whole = std::move(g);
  } else {
    whole = base_memory(base_, false);
    kernels::copy_into(whole, g);
    g = Storage();
  }
  Storage part = part_of(whole, base_, view_);
  Storage slice = engine_ops.clone(part);
  GradVec grads = fn_->apply({&slice, 1});
  if (wants(0)) {
    if (!grads[0].defined()) grads[0] = zeros_storage(view_.sizes, view_.dtype);
    kernels::copy_into(part, grads[0]);
    grads[0] = std::move(whole);
  }
  return grads;
}

GraphGradVec CopySlices::apply_for_graph(std::span<const TensorRef> grad_outputs) {
  if (!grad_outputs[0]) return GraphGradVec(edges_.size());
  TensorRef flat = flat_put(flat_zeros(base_), grad_outputs[0], base_, base_);
  // Not the view itself: what fn keeps of its gradient must not be tied to the whole.
  const TensorRef slice = engine_ops.clone_graph(flat_take(flat, base_, view_));
  // The result of fn is this part of the base as this node left it.
  const StandIn result(fn_.get(), {make_node<AsStridedBackward>(base_, view_, Edge{NodeRef::share(this), 0}), 0});
  GraphGradVec grads = fn_->apply_for_graph({&slice, 1});
  if (wants(0)) {
    TensorRef part =
        grads[0] ? in_dtype(grads[0], view_.dtype) : TensorImpl::make(zeros_storage(view_.sizes, view_.dtype));
    grads[0] = to_base(flat_put(flat, part, base_, view_), base_);
  }
  return grads;
}

// ---- CopyBackward: a view overwritten by the result of several ops ----------------------------------------------------

GradVec ReplacedBackward::apply(std::span<Storage> grad_outputs) {
  GradVec out(2);
  out[1] = std::move(grad_outputs[0]);
  return out;
}
GraphGradVec ReplacedBackward::apply_for_graph(std::span<const TensorRef> grad_outputs) {
  GraphGradVec out(2);
  out[1] = grad_outputs[0];
  return out;
}

// ---- histories -------------------------------------------------------------------------------------------------------

void regenerate(const TensorRef& t) {
  ViewMeta& v = t->view();
  const TensorRef base = v.base;
  Node* before = static_cast<Node*>(t->grad_fn_raw());
  Edge to = gradient_edge(base);
  NodeRef fn = make_node<AsStridedBackward>(geometry_of(base->storage()), geometry_of(t->storage()), std::move(to));
  move_retained(t.get(), before, fn.get(), 0);
  t->set_grad_fn(NodeBaseRef::adopt(fn.detach()), 0);
  v.seen_version = t->storage().version();
}

void rebase(const TensorRef& t, NodeRef node) {
  Node* before = static_cast<Node*>(t->grad_fn_raw());
  if (!t->is_view()) {
    move_retained(t.get(), before, node.get(), 0);
    if (t->is_viewed()) t->ensure_meta().history_version = t->storage().version();
    t->set_grad_fn(NodeBaseRef::adopt(node.detach()), 0);
    return;
  }
  ViewMeta& v = t->view();
  if (t->reshaped()) {  // transpose_ and kin: other sizes over the same elements; the base stays as it is
    move_retained(t.get(), before, node.get(), 0);
    t->set_grad_fn(NodeBaseRef::adopt(node.detach()), 0);
    return;
  }
  const TensorRef base = v.base;
  const Edge own = before ? Edge{NodeRef::share(before), t->output_nr()} : Edge();
  const std::span<Edge> edges = node->next_edges();
  // CopySlices reads input 0 as the old value of the view. The last of several composed ops may read something else.
  if (edges.empty() || edges[0].node.get() != own.node.get() || edges[0].nr != own.nr)
    node = make_node<ReplacedBackward>(std::move(node));
  NodeRef slices = make_node<CopySlices>(base, t, std::move(node));
  move_retained(base.get(), static_cast<Node*>(base->grad_fn_raw()), slices.get(), 0);
  base->set_grad_fn(NodeBaseRef::adopt(slices.detach()), 0);
  base->ensure_meta().history_version = t->storage().version();
  regenerate(t);
}

}  // namespace views

Node* grad_fn(const TensorRef& t) {
  if (TP_UNLIKELY(t->view_is_stale()) && t->view().kind != ViewKind::NoGradMode &&
      (t->grad_fn_raw() || t->view().base->requires_grad())) {
    if (t->view().kind != ViewKind::Plain) wiring::raise_view_kind(t, true);
    views::regenerate(t);
  }
  return static_cast<Node*>(t->grad_fn_raw());
}

namespace wiring {

void mark_view(const TensorRef& t, const TensorRef& base, const char* op, ViewKind kind) {
  if (TP_UNLIKELY(base->is_inference())) {
    t->set_inference(true);
    return;
  }
  if (TP_UNLIKELY(!modes::grad_enabled())) kind = ViewKind::NoGradMode;
  ViewMeta& meta = t->view();
  if (base->is_view()) {
    const ViewMeta& from = base->view();
    meta.base = from.base;
    if (kind == ViewKind::Plain) kind = from.kind;
  } else {
    meta.base = base;
    base->set_viewed();
  }
  meta.kind = kind;
  meta.op = op;
  meta.seen_version = t->storage().version();
}

void raise_view_kind(const TensorRef& t, bool indirect) {
  const ViewMeta& v = t->view();
  const char* what = indirect ? "its base or another view of its base has been" : "is being";
  std::string m;
  if (Node* fn = static_cast<Node*>(t->grad_fn_raw()))
    m = "Output " + std::to_string(t->output_nr()) + " of " + fn->name() + " is a view and " + what +
        " modified inplace.";
  else if (v.kind == ViewKind::NoGradMode)
    m = std::string("A view was created in no_grad mode and ") + what + " modified inplace with grad mode enabled.";
  else
    m = std::string("A view made by ") + v.op + " and " + what + " modified inplace.";
  switch (v.kind) {
    case ViewKind::MultiOutput:
      m += " This view is the output of a function that returns multiple views. Such functions do not allow the output "
           "views to be modified inplace. You should replace the inplace operation by an out-of-place one.";
      break;
    case ViewKind::NoGradMode:
      m += " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
           "moving "
           "both the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
           "tracked) or both outside (if you want the inplace to be tracked).";
      break;
    default:
      m += " This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
           "logic to handle view+inplace would override the custom backward associated with the custom Function, "
           "leading "
           "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
           "Function.";
  }
  fail_with(ErrorKind::Runtime, std::move(m));
}

}  // namespace wiring
}  // namespace tp
