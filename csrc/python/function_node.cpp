// The node of autograd.Function: runs the user's backward, checks what it returns. The forward side is in function.cpp.
#include "ops/wiring.h"
#include "python/function.h"
#include "python/function_defaults.h"
#include "python/tensor_type.h"

namespace tp::python {
namespace {

PyObject* object_of(FunctionObject* f) { return reinterpret_cast<PyObject*>(f); }

bool class_flag(PyObject* cls, PyObject* name) {
  Owned v(PyObject_GetAttr(cls, name));
  if (!v) {
    PyErr_Clear();
    return false;
  }
  return v.get() == Py_True || (v.get() != Py_False && PyObject_IsTrue(v.get()) == 1);
}

bool all_zero(const Storage& s) {
  for (std::int64_t i = 0; i < s.numel(); ++i)
    if (read_element(s, i).to_bool()) return false;
  return true;
}

// A gradient without history, made from one that has one, is a number pulled out of the graph: zero is a true constant,
// anything else would make second order silently wrong.
TensorRef inside_graph(FunctionObject* f, const TensorRef& g, std::span<const TensorRef> grad_outputs) {
  if (TP_LIKELY(!modes::grad_enabled()) || g->requires_grad() || !is_differentiable(g->dtype())) return g;
  bool history = false;
  for (const TensorRef& o : grad_outputs) history = history || (o && o->requires_grad());
  if (!history || !function_defaults.outside || all_zero(g->storage())) return g;
  Owned value(wrap(g)), from(wrap_list(grad_outputs));
  Owned r(value && from
              ? PyObject_CallFunctionObjArgs(function_defaults.outside, object_of(f), value.get(), from.get(), nullptr)
              : nullptr);
  if (!r) host_error();
  return tensor_of(r.get());
}

}  // namespace

Owned forward_class(PyObject* ctx) {
  Owned cls(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(ctx)), TP_INTERNED("_forward_cls")));
  if (!cls) host_error();
  return cls;
}

// grads: one object per output. The user's function gets them as arguments, or as one list where it asked for that.
PyObject* call_user_backward(PyObject* ctx, PyObject* const* grads, std::size_t n) {
  Owned cls = forward_class(ctx);
  Owned backward(PyObject_GetAttr(cls.get(), TP_INTERNED("backward")));
  Owned vjp(PyObject_GetAttr(cls.get(), TP_INTERNED("vjp")));
  if (!backward || !vjp) host_error();
  const bool has_backward = backward.get() != function_defaults.backward, has_vjp = vjp.get() != function_defaults.vjp;
  if (has_backward && has_vjp)
    runtime_error(Py_TYPE(ctx)->tp_name,
                  ": Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                  "should only implement one of them.");
  PyObject* f = has_vjp ? vjp.get() : backward.get();
  if (TP_UNLIKELY(class_flag(cls.get(), TP_INTERNED("boxed_grads_call")))) {
    Owned list(PyList_New(Py_ssize_t(n)));
    if (!list) host_error();
    for (std::size_t i = 0; i < n; ++i) {
      Py_INCREF(grads[i]);
      PyList_SET_ITEM(list.get(), Py_ssize_t(i), grads[i]);
    }
    return PyObject_CallFunctionObjArgs(f, ctx, list.get(), nullptr);
  }
  InlineVec<PyObject*, 6> args(n + 2);
  args[1] = ctx;
  for (std::size_t i = 0; i < n; ++i) args[i + 2] = grads[i];
  return PyObject_Vectorcall(f, args.data() + 1, (n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}

std::string PythonNode::name() const { return Py_TYPE(object_of(self))->tp_name; }

Storage PythonNode::output_like(std::uint32_t nr) const {
  if (nr >= outputs.size()) return {};
  return Storage(BlockRef(), outputs[nr].dtype, outputs[nr].sizes);
}

SavedSlot PythonNode::saved_at(std::size_t k) {
  const SavedFrom& from = saved_from[k];
  if (from.output < 0) return {"tensors", &saved[k], from.edge, false};
  return {"tensors", &saved[k], Edge{node_of(object_of(self)), std::uint32_t(from.output)}, true};
}

void PythonNode::release_saved() {
  for (SavedValue& s : saved) s.release();
}

// Where the engine hands over plain memory: tensors around it, and back.
GradVec PythonNode::apply(std::span<Storage> grad_outputs) {
  InlineVec<TensorRef, 3> tensors;
  for (Storage& s : grad_outputs) tensors.push_back(s.defined() ? TensorImpl::make(std::move(s)) : TensorRef());
  modes::GradMode off(false);
  GraphGradVec grads = apply_for_graph(std::span<const TensorRef>(tensors.data(), tensors.size()));
  GradVec plain;
  for (const TensorRef& g : grads) plain.push_back(storage_or_absent(g));
  return plain;
}

GraphGradVec PythonNode::apply_for_graph(std::span<const TensorRef> grad_outputs) {
  PyObject* ctx = object_of(self);
  Owned keep = Owned::share(ctx);
  const std::size_t n = outputs.size();
  InlineVec<Owned, 3> owned;
  InlineVec<PyObject*, 3> grads;
  for (std::size_t i = 0; i < n; ++i) {
    TensorRef g = i < grad_outputs.size() ? grad_outputs[i] : TensorRef();
    if (g && g->dtype() != outputs[i].dtype && !outputs[i].any_dtype) g = engine_ops.cast_graph(g, outputs[i].dtype);
    if (!g && self->materialize && outputs[i].tensor)
      g = wiring::wrap(zeros_storage(outputs[i].sizes, outputs[i].dtype));
    owned.push_back(Owned(wrap(std::move(g))));
    if (!owned.back()) host_error();
    grads.push_back(owned.back().get());
  }
  Owned result(call_user_backward(ctx, grads.data(), n));
  if (!result) host_error();

  PyObject* single = result.get();
  const bool tuple = PyTuple_Check(result.get());
  PyObject* const* items = tuple ? &PyTuple_GET_ITEM(result.get(), 0) : &single;
  std::size_t got = tuple ? std::size_t(PyTuple_GET_SIZE(result.get())) : 1;
  const std::vector<ArgInfo>& args = *self->arguments;
  if (got > args.size()) {
    bool all_none = true;
    for (std::size_t i = args.size(); i < got; ++i) all_none = all_none && items[i] == Py_None;
    if (all_none) got = args.size();
  }
  if (got != args.size())
    runtime_error("function ", name(), " returned an incorrect number of gradients (expected ", args.size(), ", got ",
                  got, ")");

  GraphGradVec out;
  for (std::size_t i = 0; i < got; ++i) {
    PyObject* g = items[i];
    if (!args[i].tensor) {
      if (g != Py_None)
        runtime_error("function ", name(), " returned a gradient different than None at position ", i + 1,
                      ", but the corresponding forward input was not a Variable");
      continue;
    }
    if (g == Py_None) {
      out.emplace_back();
    } else if (is_tensor(g)) {
      out.push_back(args[i].requires_grad ? inside_graph(self, tensor_of(g), grad_outputs) : TensorRef());
    } else {
      runtime_error("function ", name(), ": expected Variable or None (got ", Py_TYPE(g)->tp_name, ") at position ",
                    i + 1);
    }
  }
  return out;
}

// While Python still holds the context its links stay; the last reference hands them over, so that long chains end
// without recursion.
void PythonNode::take_links(std::vector<NodeBase*>& out) {
  if (Py_REFCNT(object_of(self)) != 1) return;
  Node::take_links(out);
  for (SavedFrom& s : saved_from)
    if (s.edge.node) out.push_back(s.edge.node.detach());
}

// The count on the node stood for one reference to the context; the context's end is the node's end.
void PythonNode::dispose() { Py_DECREF(object_of(self)); }

// Tensors with the history of a recorded call's inputs: what leads there leads to the inputs of a value made in its backward.
PyObject* histories_of(PyObject* ctx) {
  GraphGradVec tensors;
  if (is_function(ctx) && as_function(ctx)->base.node) {
    for (const Edge& e : as_function(ctx)->node()->edges) {
      if (!e.node) continue;
      TensorRef t = leaf_of_edge(e);
      if (!t && !e.node->is_accumulator()) {
        t = TensorImpl::make(zeros_storage({0}, Dtype::F32));
        t->set_grad_fn(NodeBaseRef::share(e.node.get()), e.nr);
      }
      if (t) tensors.push_back(std::move(t));
    }
  }
  return wrap_list(std::span<const TensorRef>(tensors.data(), tensors.size()));
}

PyObject* python_node_object(Node* n) {
  if (!n->is_host() || typeid(*n) != typeid(PythonNode)) return nullptr;  // types are compared by name
  return object_of(static_cast<PythonNode*>(n)->self);
}

}  // namespace tp::python
