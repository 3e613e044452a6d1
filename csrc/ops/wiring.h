// The one way an op gets its history: edges, saved values, versions, in-place checks, views, tangents.
// Generated ops call nothing else of autograd. Knows no op by name.
#pragma once
#include <initializer_list>

#include "autograd/autograd_node.h"
#include "autograd/dual_level.h"
#include "autograd/engine.h"
#include "core/function_ref.h"

/// Of functions that run in a mode alone (forward mode, vmap): kept out of the way of plain calls, and small.
#define TP_COLD [[gnu::cold, gnu::noinline]]

namespace tp {

namespace wiring {

/// True when a result computed from these must be recorded: gradients are on and one of them requires grad.
inline bool records(const TensorRef& a) { return a->requires_grad() && modes::grad_enabled(); }
inline bool records(const TensorRef& a, const TensorRef& b) {
  return (a->requires_grad() || b->requires_grad()) && modes::grad_enabled();
}
inline bool records(const TensorRef& a, const TensorRef& b, const TensorRef& c) {
  return (a->requires_grad() || b->requires_grad() || c->requires_grad()) && modes::grad_enabled();
}
TP_API bool records(std::initializer_list<const TensorRef*> inputs);  // null entries allowed
TP_API bool records(std::span<const TensorRef> inputs);

/// Edge i of `node` towards `t`; null or non-requiring: absent.
inline void connect(Node& node, std::size_t i, const TensorRef& t) {
  if (t && t->requires_grad()) node.set_next_edge(i, gradient_edge(t));
}

TP_API void note_forward(Node& node);  // anomaly mode: remembers where the forward ran

/// A fresh result without history: what `kernel()` computes.
template <class F>
inline TensorRef result_of(F&& kernel) {
  TensorRef t = TensorImpl::make_from(kernel);
  if (TP_UNLIKELY(modes::any(modes::kInference))) t->set_inference(true);
  return t;
}
inline TensorRef wrap(Storage&& s) {
  return result_of([&]() -> Storage&& { return std::move(s); });
}
inline TensorRef wrap(const Storage& s) { return wrap(Storage(s)); }
/// Gives `out` its history: result `output_nr` of `node`.
inline void attach(const TensorRef& out, NodeRef node, std::uint32_t output_nr = 0) {
  if (TP_UNLIKELY(modes::any(modes::kAnomaly))) note_forward(*node);
  out->set_grad_fn(NodeBaseRef::adopt(node.detach()), output_nr);
}

/// Marks `t`, which shows memory of `base`, as its view (differentiable views follow in-place changes of either).
TP_API void mark_view(const TensorRef& t, const TensorRef& base, const char* op, ViewKind kind = ViewKind::Plain);
inline TensorRef make_view(const TensorRef& base, Storage&& view, const char* op, ViewKind kind = ViewKind::Plain) {
  TensorRef t = TensorImpl::make(std::move(view));
  mark_view(t, base, op, kind);
  return t;
}

/// Raises for a view whose history no in-place op may move ("Output 0 of UnbindBackward0 is a view and ...").
/// `indirect`: it was not the view itself that changed but its base or another view.
[[noreturn]] TP_API void raise_view_kind(const TensorRef& t, bool indirect);

/// Raises when an in-place op on `t` cannot be given a right history (leaf that requires grad, multi-output view, ...).
TP_API void check_inplace(const OpSchema& schema, const TensorRef& t, bool will_record);
/// After the memory was written: bumps the version and, when `node` is given, moves the history of `t` (and its base).
/// The node's edges must have been set before, from the history `t` had.
TP_API void finish_inplace(const TensorRef& t, NodeRef node);
/// Raises where out= is given a tensor that requires grad while recording; resizes it when its sizes differ.
TP_API void check_out(const OpSchema& schema, const TensorRef& out, std::initializer_list<const TensorRef*> inputs);
TP_API void write_out(const OpSchema& schema, const TensorRef& out, const Storage& result);

/// Forward mode.
inline bool has_tangents(std::initializer_list<const TensorRef*> inputs) {
  for (const TensorRef* t : inputs)
    if (*t && (*t)->has_tangent()) return true;
  return false;
}
TP_API bool has_tangents(std::span<const TensorRef> inputs);

/// The forward level whose tangents are being computed; 0 outside each_level.
extern TP_API thread_local constinit std::uint32_t working_level;
class TP_API WorkingLevel {
 public:
  explicit WorkingLevel(std::uint32_t level) : before_(working_level) { working_level = level; }
  ~WorkingLevel() { working_level = before_; }
  WorkingLevel(const WorkingLevel&) = delete;

 private:
  std::uint32_t before_;
};
/// Runs `f`, which gives results their tangents, once for each level of which an input carries one. Outer levels come
/// first: at its level f reads primals (and results) that carry the tangents of the levels outside it and no others, so
/// that what it computes by differentiable ops carries them too, and perturbations of different levels never mix.
/// Where there is one level and its tangents carry no others, nothing that f reads is dual: forward mode is off meanwhile.
TP_API void each_level(std::initializer_list<const TensorRef*> inputs,
                       std::initializer_list<std::span<const TensorRef>> lists, FunctionRef<void()> f);

/// The tangent of `t` at the working level, or null. Outside each_level: at the innermost open level.
inline TensorRef tangent(const TensorRef& t) {
  if (!t || !t->has_tangent()) return nullptr;
  return dual::tangent_of(t, working_level ? working_level : dual::current_level());
}
/// The tangent of `t`, or zeros like it.
TP_API TensorRef tangent_or_zeros(const TensorRef& t);
/// Right after an in-place op on `out` the tangent it shares with its base or its views is overwritten, else it is hung on.
TP_API void set_tangent(const TensorRef& out, TensorRef tangent);
/// Right after `out` was overwritten: it gets the tangents of `result`, the same value computed out of place (null: none
/// of the old value is left). Levels of which the result carries none become zero.
TP_API void take_tangents(const TensorRef& out, const TensorRef& result);
/// What an in-place op on `changed` records of `t`, ahead of the write: a copy, tangents included, where both show one
/// memory and gradients are on.
TP_API TensorRef before_change(const TensorRef& t, const TensorRef& changed);
/// Memory and tangents copied: what a node saves of an input that its op overwrites. Its history is the node's edge.
TP_API TensorRef copied(const TensorRef& t);
/// The same tensor without its tangents of the working level and those inside it, history kept: what a formula reads.
TP_API TensorRef primal(const TensorRef& t);
TP_API TensorRef primal(const TensorRef& t, std::uint32_t level);
/// The tangent of a result whose vjp is linear in its cotangent: the transpose of that map applied to the tangents of the
/// inputs (null: zero). `vjp` gives one gradient per input. Differentiable in tangents and primals while gradients are on.
TP_API TensorRef tangent_by_transpose(const TensorRef& out, FunctionRef<GraphGradVec(const TensorRef& u)> vjp,
                                      std::span<const TensorRef> tangents);
/// The same for several results; null where a result has no tangent (integers).
TP_API std::vector<TensorRef> tangent_by_transpose(std::span<const TensorRef> outs,
                                                   FunctionRef<GraphGradVec(std::span<const TensorRef> us)> vjp,
                                                   std::span<const TensorRef> tangents);

/// Autocast: `t` in the dtype the schema's policy asks for (itself when nothing is to be done).
TP_API TensorRef autocast(const OpSchema& schema, const TensorRef& t);

}  // namespace wiring

}  // namespace tp
