// Recording, in-place checks, out= and autocast. Views are in views.cpp, tangents in tangents.cpp. Knows no op by name.
#include "ops/wiring.h"

#include <algorithm>

#include "core/errors.h"
#include "kernels/staging.h"
#include "ops/views.h"

namespace tp::wiring {

bool records(std::initializer_list<const TensorRef*> inputs) {
  if (!modes::grad_enabled()) return false;
  for (const TensorRef* t : inputs)
    if (*t && (*t)->requires_grad()) return true;
  return false;
}

bool records(std::span<const TensorRef> inputs) {
  if (!modes::grad_enabled()) return false;
  for (const TensorRef& t : inputs)
    if (t && t->requires_grad()) return true;
  return false;
}

void note_forward(Node& node) {
  if (!forward_location) return;
  std::string where = forward_location();
  // A node made while a backward runs (double backward) also names the node whose backward made it.
  if (const Node* parent = Engine::current_node()) {
    where += "\nThis ran in the backward of " + parent->name() + ".";
    if (parent->meta() && !parent->meta()->anomaly.empty())
      where += " Its forward ran here:\n" + parent->meta()->anomaly;
  }
  node.ensure_meta().anomaly = std::move(where);
}

namespace {

/// Several elements in one place: writing them one after the other has no defined result.
bool overlaps_itself(const Storage& s) {
  return !std::equal(s.strides().begin(), s.strides().end(), s.sizes().begin(),
                     [](std::int64_t step, std::int64_t n) { return step || n <= 1; });
}

void check_writable(const OpSchema& schema, const TensorRef& t) {
  const Storage& s = t->storage();
  if (TP_UNLIKELY(t->is_inference()) && !modes::any(modes::kInference))
    runtime_error(
        schema.name,
        "_: Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
        "normal tensor before doing inplace update.");
  if (TP_UNLIKELY(s.block() && s.block()->read_only))
    runtime_error(schema.name, "_: the memory of this tensor is read-only; clone() it before writing");
  if (TP_UNLIKELY(!s.is_contiguous()) && overlaps_itself(s) && s.numel() > 0)
    runtime_error(schema.name,
                  "_: unsupported operation: more than one element of the written-to tensor refers to a single memory "
                  "location. Please clone() the tensor before performing the operation.");
  if (TP_UNLIKELY(modes::any(modes::kMutationAllowed))) modes::host.before_change(&t);
}

}  // namespace

void check_inplace(const OpSchema& schema, const TensorRef& t, bool will_record) {
  check_writable(schema, t);
  t->clear_reshaped();
  if (!will_record) {
    // Its base has a history that this change would have to enter, and a view made under no_grad has no way there.
    if (TP_UNLIKELY(t->is_view()) && modes::grad_enabled() && t->view().kind == ViewKind::NoGradMode &&
        t->view().base->requires_grad())
      raise_view_kind(t, false);
    return;
  }
  if (!is_differentiable(t->dtype()))
    runtime_error(schema.name, "_: the result requires grad and cannot be written into a tensor of ",
                  dtype_name(t->dtype()));
  if (TP_UNLIKELY(t->is_view())) {
    const ViewMeta& v = t->view();
    if (v.kind != ViewKind::Plain) raise_view_kind(t, false);
    if (v.base->is_leaf() && v.base->requires_grad())
      runtime_error(schema.name,
                    "_: a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  if (t->requires_grad() && t->is_leaf())
    runtime_error(
        schema.name,
        "_: a leaf Variable that requires grad is being used in an in-place operation. Use no_grad() for an update, "
        "or the out-of-place form to record one.");
}

void finish_inplace(const TensorRef& t, NodeRef node) {
  if (TP_LIKELY(!t->is_inference())) t->storage().bump_version();
  if (TP_UNLIKELY(modes::any(modes::kForward))) t->set_written(true);
  if (!node) return;
  if (TP_UNLIKELY(modes::any(modes::kAnomaly))) note_forward(*node);
  views::rebase(t, std::move(node));
}

void check_out(const OpSchema& schema, const TensorRef& out, std::initializer_list<const TensorRef*> inputs) {
  check_writable(schema, out);
  if (TP_UNLIKELY(modes::any(modes::kForward)) && (has_tangents({&out}) || [&] {
        for (const TensorRef* t : inputs)
          if (has_tangents({t})) return true;
        return false;
      }()))
    not_implemented(schema.name,
                    "(): functions with out=... arguments don't support forward-mode differentiation, but one of the "
                    "arguments carries a tangent; call it without out=.");
  if (!modes::grad_enabled()) return;
  bool any = out->requires_grad();
  for (const TensorRef* t : inputs) any |= *t && (*t)->requires_grad();
  if (any)
    runtime_error(
        schema.name,
        "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.");
}

void write_out(const OpSchema& schema, const TensorRef& out, const Storage& result) {
  if (!can_cast(result.dtype(), out->dtype()))
    runtime_error(schema.name, ": result type ", dtype_name(result.dtype()),
                  " can't be cast to the desired output type ", dtype_name(out->dtype()));
  if (!(out->sizes() == result.sizes())) {
    if (out->numel() != 0)
      modes::warn(
          (std::string(schema.name) +
           ": an output with one or more elements was resized since its sizes did not match; reuse an out= tensor "
           "only for results of the same sizes, or empty it first")
              .c_str());
    const std::size_t bytes = std::size_t(result.numel()) * item_size(out->dtype());
    const BlockRef& block = out->storage().block();
    if (bytes <= block->nbytes && block->owner == nullptr)
      out->set_storage(Storage(block, out->dtype(), result.sizes()));
    else
      out->set_storage(empty(result.sizes(), out->dtype()));
  }
  kernels::copy_into(out->storage(), result);
  finish_inplace(out, nullptr);
}

TensorRef autocast(const OpSchema& schema, const TensorRef& t) {
  if (!t) return t;
  const Dtype d = t->dtype();
  const bool half = d == Dtype::F16 || d == Dtype::BF16;
  if (!half && d != Dtype::F32) return t;  // float64, complex and integers are left alone
  Dtype to = d;
  if (schema.amp == Amp::ForceFp32)
    to = Dtype::F32;
  else if (schema.amp == Amp::Lower)
    to = Dtype(modes::autocast_dtype);
  return to == d ? t : engine_ops.cast_graph(t, to);
}

}  // namespace tp::wiring
