// Methods of Tensor about history: flags, hooks, detaching, backward.
#include "autograd/dual_level.h"
#include "ops/wiring.h"
#include "python/graph_objects.h"
#include "python/tensor_type.h"
#include "transforms/batched.h"

namespace tp::python {
namespace {

PyObject* requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"input", Kind::Tensor}, {"requires_grad", Kind::Bool, true}};
  static const Spec spec{"requires_grad_", "requires_grad_(Tensor input, bool requires_grad=True)", params};
  return guarded([&]() -> PyObject* {
    Slots<2> a;
    parse(spec, a, self, args, n, kw);
    set_requires_grad_flag(tensor_of(self), to_bool(spec, a, 1, true));
    Py_INCREF(self);
    return self;
  });
}

PyObject* retain_grad_method(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = batch::physical(tensor_of(self));
    if (!t->requires_grad()) runtime_error("retain_grad: can't retain_grad on Tensor that has requires_grad=False");
    retain_grad(t);
    Py_RETURN_NONE;
  });
}

PyObject* register_hook(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"input", Kind::Tensor}, {"hook", Kind::Any}};
  static const Spec spec{"register_hook", "register_hook(Tensor input, callable hook)", params};
  return guarded([&]() -> PyObject* {
    Slots<2> a;
    parse(spec, a, self, args, n, kw);
    const TensorRef& shown = tensor_of(self);
    const TensorRef& t = batch::physical(shown);
    if (!t->requires_grad())
      runtime_error("register_hook: cannot register a hook on a tensor that doesn't require gradient");
    Node* node = t->is_leaf() ? static_cast<Node*>(accumulator_of(t)) : grad_fn(t);
    ensure_tracked(self);
    return add_hook(*node, HookKind::Tensor, t->is_leaf() ? 0 : t->output_nr(), a[1],
                    batch::levels_of(shown) ? shown.get() : nullptr);
  });
}

PyObject* register_post_accumulate_grad_hook(PyObject* self, PyObject* hook) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = batch::physical(tensor_of(self));
    if (!t->requires_grad())
      runtime_error(
          "register_post_accumulate_grad_hook: cannot register a hook on a tensor that doesn't require gradient");
    if (batch::levels_of(tensor_of(self)))
      runtime_error(
          "register_post_accumulate_grad_hook: backward() does not run inside vmap, so nothing accumulates into a "
          "batched tensor; register the hook on a tensor outside");
    if (!t->is_leaf())
      runtime_error(
          "register_post_accumulate_grad_hook: post accumulate grad hooks cannot be registered on non-leaf tensors");
    ensure_tracked(self);
    return add_hook(*accumulator_of(t), HookKind::Accumulated, 0, hook);
  });
}

PyObject* detach_(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = batch::physical(tensor_of(self));
    if (t->is_view()) runtime_error("detach_: Can't detach views in-place; use detach() instead");
    if (!t->is_leaf()) t->set_grad_fn(NodeBaseRef(), 0);
    t->set_requires_grad(false);
    dual::LevelList levels;
    dual::collect_levels(t, levels);
    for (std::uint32_t level : levels) dual::attach_tangent(t, nullptr, level);
    Py_INCREF(self);
    return self;
  });
}

PyObject* backward(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"input", Kind::Tensor},
                                     {"gradient", Kind::Any, true},
                                     {"retain_graph", Kind::Any, true},
                                     {"create_graph", Kind::Any, true},
                                     {"inputs", Kind::Any, true}};
  static const Spec spec{
      "backward",
      "backward(Tensor input, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False, "
      "Tensor[]? inputs=None)",
      params};
  return guarded([&]() -> PyObject* {
    if (n == 0 && !kw) return run_backward(self, nullptr, nullptr, nullptr, nullptr);
    Slots<5> a;
    parse(spec, a, self, args, n, kw);
    return run_backward(self, a[1], a[2], a[3], a[4]);
  });
}

}  // namespace

PyMethodDef tensor_autograd_methods[] = {
    {"requires_grad_", fast(requires_grad_), METH_FASTCALL | METH_KEYWORDS,
     "requires_grad_($self, /, requires_grad=True)\n--\n\nSets requires_grad and returns the tensor."},
    {"retain_grad", retain_grad_method, METH_NOARGS,
     "retain_grad($self, /)\n--\n\nMakes backward() fill .grad of this non-leaf."},
    {"register_hook", fast(register_hook), METH_FASTCALL | METH_KEYWORDS,
     "register_hook($self, /, hook)\n--\n\nCalls hook(grad) when the gradient of this tensor is known; may return "
     "another."},
    {"register_post_accumulate_grad_hook", register_post_accumulate_grad_hook, METH_O,
     "register_post_accumulate_grad_hook($self, hook, /)\n--\n\nCalls hook(tensor) after .grad of this leaf was "
     "updated."},
    {"detach_", detach_, METH_NOARGS, "detach_($self, /)\n--\n\nCuts the history of this tensor."},
    {"backward", fast(backward), METH_FASTCALL | METH_KEYWORDS,
     "backward($self, /, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Accumulates gradients of this tensor into the leaves it was computed from."},
    {}};

}  // namespace tp::python
