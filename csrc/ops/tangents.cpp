// Forward mode: tangents of results, of views and of what is changed in place. Knows no op by name.
#include <algorithm>

#include "autograd/layout.h"
#include "core/errors.h"
#include "ops/wiring.h"

namespace tp::wiring {
namespace {

TensorRef zeros_like(const TensorRef& t) { return TensorImpl::make(zeros_storage(t->sizes(), t->dtype())); }

/// Zeros whose memory is laid out as `t`'s, so that the strides of a view of `t` name the right part of them.
TensorRef zeros_laid_out(const TensorRef& t) {
  const Storage& s = t->storage();
  return TensorImpl::make(zeros_under(s, s.dtype())->storage().with_geometry(s.sizes(), s.strides(), 0));
}

bool writable(const TensorRef& tangent) {
  const TensorRef& memory = tangent->is_batched() ? tangent->meta()->physical : tangent;
  return !(modes::grad_enabled() && tangent->requires_grad() && tangent->is_leaf()) &&
      !memory->storage().block()->read_only;
}

/// Values saved for the backward of `out` read its tangent too (forward over reverse).
void tell_node(const TensorRef& out, const TensorRef& tangent, std::uint32_t level) {
  Node* fn = static_cast<Node*>(out->grad_fn_raw());
  if (!fn) return;
  const std::size_t n = fn->saved_count();
  for (std::size_t k = 0; k < n; ++k) {
    const SavedSlot slot = fn->saved_at(k);
    if (slot.output && slot.edge.nr == out->output_nr() && slot.value && slot.value->saved())
      slot.value->set_tangent(*fn, tangent, level);
  }
}

void refuse_size(const TensorRef& out, const TensorRef& tangent) {
  runtime_error(
      "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
      "supported. Tensor is of size ",
      out->sizes(), " while the given forward gradient is of size ", tangent->sizes(), ".");
}

/// After `out`'s memory was written: base and views show parts of one tangent, as they show parts of one memory, so it is
/// written too, not replaced.
void update_tangent(const TensorRef& out, TensorRef tangent, std::uint32_t level) {
  if (!out->is_view() && !out->is_viewed()) {
    tell_node(out, tangent, level);
    dual::attach_tangent(out, std::move(tangent), level);
    return;
  }
  if (out->is_view() && !dual::tangent_of(out, level)) {
    const TensorRef& base = out->view().base;
    if (base->dtype() == out->dtype()) dual::attach_tangent(base, zeros_laid_out(base), level);
  }
  TensorRef own = dual::tangent_of(out, level);
  const auto batch = [](const TensorRef& t) { return t->is_batched() ? t->meta()->levels : 0u; };
  if (own && own->dtype() == tangent->dtype() && writable(own) && !(batch(tangent) & ~batch(own))) {
    engine_ops.copy_graph(own, tangent);
  } else if (own && out->is_view() && batch(tangent)) {
    // Of every sample its own, where the base had one for all: the base gets a new one, and the view reads it from there.
    const TensorRef& base = out->view().base;
    const Storage &b = base->storage(), &v = out->storage();
    TensorRef flat = zeros_under(b, b.dtype());
    flat = engine_ops.as_strided_scatter_graph(flat, dual::tangent_of(base, level), b.sizes(), b.strides(), 0);
    flat = engine_ops.as_strided_scatter_graph(flat, tangent, v.sizes(), v.strides(), v.offset() - b.offset());
    dual::attach_tangent(out, nullptr, level);
    dual::attach_tangent(base, engine_ops.as_strided_graph(flat, b.sizes(), b.strides(), 0), level);
  } else {
    dual::attach_tangent(out, std::move(tangent), level);
  }
}

}  // namespace

thread_local constinit std::uint32_t working_level = 0;

void each_level(std::initializer_list<const TensorRef*> inputs, std::initializer_list<std::span<const TensorRef>> lists,
                FunctionRef<void()> f) {
  dual::LevelList levels;
  for (const TensorRef* t : inputs) dual::collect_levels(*t, levels);
  for (std::span<const TensorRef> list : lists)
    for (const TensorRef& t : list) dual::collect_levels(t, levels);
  const auto nested = [&](const TensorRef& t) {
    const TensorRef tangent = dual::tangent_of(t, levels[0]);
    return tangent && tangent->has_tangent();
  };
  bool lone = levels.size() == 1;
  for (const TensorRef* t : inputs) lone = lone && !nested(*t);
  for (std::span<const TensorRef> list : lists)
    for (const TensorRef& t : list) lone = lone && !nested(t);
  modes::Guard off(0, lone ? std::uint32_t(modes::kForward) : 0u);
  for (std::uint32_t level : levels) {
    WorkingLevel at(level);
    f();
  }
}

bool has_tangents(std::span<const TensorRef> inputs) {
  for (const TensorRef& t : inputs)
    if (t && t->has_tangent()) return true;
  return false;
}

TensorRef tangent_or_zeros(const TensorRef& t) {
  if (TensorRef d = tangent(t)) return d;
  return zeros_like(t);
}

void set_tangent(const TensorRef& out, TensorRef tangent) {
  if (!tangent || !is_differentiable(out->dtype())) return;
  const std::uint32_t level = working_level ? working_level : dual::current_level();
  if (!level)
    runtime_error("Trying to use forward AD outside of a dual level: make_dual and tangents need an open dual_level()");
  if (!(tangent->sizes() == out->sizes())) refuse_size(out, tangent);
  if (out->written()) return update_tangent(out, std::move(tangent), level);
  // Memory of its own for what owns memory: a later change of `out` through a view is written into its tangent, and must
  // not reach the tangent of the input that this one may be (x + 1) or show (a reshape that copied).
  if (!out->is_view() && (tangent->use_count() > 1 || !tangent->storage().unique()))
    tangent = engine_ops.clone_graph(tangent);
  tell_node(out, tangent, level);
  dual::attach_tangent(out, std::move(tangent), level);
}

void take_tangents(const TensorRef& out, const TensorRef& result) {
  // unsqueeze_ and kin show the same elements in other sizes: the tangent is shown so too, and nothing is written.
  const bool reshaped = result->storage().block() == out->storage().block();
  if (!is_differentiable(out->dtype())) return;
  dual::LevelList levels;
  dual::collect_levels(out, levels);
  dual::collect_levels(result, levels);
  for (std::uint32_t level : levels) {
    WorkingLevel at(level);
    TensorRef t = dual::tangent_of(result, level);
    if (!t) t = zeros_like(out);
    if (!(t->sizes() == out->sizes())) refuse_size(out, t);
    if (t->dtype() != out->dtype()) t = engine_ops.cast_graph(t, out->dtype());
    if (reshaped) {
      dual::attach_tangent(out, std::move(t), level);
    } else {
      update_tangent(out, std::move(t), level);
    }
  }
}

TensorRef before_change(const TensorRef& t, const TensorRef& changed) {
  if (!t || !modes::grad_enabled() || t->storage().block() != changed->storage().block()) return t;
  return engine_ops.clone_graph(t);
}

TensorRef copied(const TensorRef& t) {
  if (TP_LIKELY(!t->has_tangent())) return wrap(engine_ops.clone(t->storage()));
  return engine_ops.clone_graph(t);  // its own history is not kept, that of the tangents is
}

TensorRef primal(const TensorRef& t) {
  if (!modes::any(modes::kForward)) return t;  // nobody looks at its tangents
  return primal(t, working_level ? working_level : dual::current_level());
}

TensorRef primal(const TensorRef& t, std::uint32_t level) {
  dual::LevelList levels;
  dual::collect_levels(t, levels);
  if (std::none_of(levels.begin(), levels.end(), [&](std::uint32_t l) { return l >= level; })) return t;
  TensorRef p = TensorImpl::make(t->storage());
  p->set_inference(t->is_inference());
  if (Edge e = gradient_edge(t); e.node) p->set_grad_fn(NodeBaseRef::adopt(e.node.detach()), e.nr);
  dual::share_tangents(p, t, level);
  return p;
}

std::vector<TensorRef> tangent_by_transpose(std::span<const TensorRef> outs,
                                            FunctionRef<GraphGradVec(std::span<const TensorRef>)> vjp,
                                            std::span<const TensorRef> tangents) {
  const bool lasting = modes::grad_enabled();
  std::vector<TensorRef> us(outs.size());
  std::vector<Edge> inputs(outs.size());
  GraphGradVec w;
  {
    modes::GradMode on(true);
    for (std::size_t i = 0; i < outs.size(); ++i) {
      us[i] = zeros_like(outs[i]);
      if (!is_differentiable(outs[i]->dtype())) continue;
      us[i]->set_requires_grad(true);
      inputs[i] = gradient_edge(us[i]);
    }
    w = vjp(us);
  }
  std::vector<Edge> roots;
  std::vector<TensorRef> seeds;
  for (std::size_t i = 0; i < w.size() && i < tangents.size(); ++i) {
    if (!w[i] || !tangents[i] || !w[i]->requires_grad()) continue;
    roots.push_back(gradient_edge(w[i]));
    seeds.push_back(tangents[i]);
  }
  std::vector<TensorRef> result(outs.size());
  if (!roots.empty()) {
    Engine::Request request;
    request.roots = roots;
    request.seeds = seeds;
    request.inputs = inputs;
    request.create_graph = lasting;
    request.accumulate = false;
    result = Engine::run(request);
  }
  const auto filled = [](TensorRef& r, const TensorRef& u) { return r || !u->requires_grad() ? r : zeros_like(u); };
  std::transform(result.begin(), result.end(), us.begin(), result.begin(), filled);
  return result;
}

TensorRef tangent_by_transpose(const TensorRef& out, FunctionRef<GraphGradVec(const TensorRef&)> vjp,
                               std::span<const TensorRef> tangents) {
  return tangent_by_transpose(
      std::span<const TensorRef>(&out, 1), [&](std::span<const TensorRef> us) { return vjp(us[0]); }, tangents)[0];
}

}  // namespace tp::wiring
