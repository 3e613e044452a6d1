// The context of autograd.Function as Python sees it: what forward tells it, what backward reads. Type of the object.
#include "python/function.h"
#include "python/function_defaults.h"
#include "python/module.h"
#include "python/tensor_type.h"

#include <new>

namespace tp::python {

PyTypeObject FunctionBaseType = {};

PyObject* node_getattr(PyObject* self, PyObject* name);
PyObject* saved_tuple(Node& n);
PyObject* raw_saved_tuple(PyObject* self);

namespace {

PyObject* keep_tuple(PyObject** field, PyObject* const* args, Py_ssize_t n) {
  PyObject* t = PyTuple_New(n);
  if (!t) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(t, i, args[i]);
  }
  Py_XSETREF(*field, t);
  Py_RETURN_NONE;
}

PyObject* save_for_backward(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return keep_tuple(&as_function(self)->to_save, args, n);
}
PyObject* save_for_forward(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i)
    if (args[i] != Py_None && !is_tensor(args[i])) {
      PyErr_Format(
          PyExc_AssertionError,
          "save_for_forward expects all arguments to be tensors, argument %zd is %s; you should save non-tensors as "
          "attributes on ctx.",
          i, Py_TYPE(args[i])->tp_name);
      return nullptr;
    }
  return keep_tuple(&as_function(self)->saved_for_forward, args, n);
}
PyObject* mark_dirty(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return keep_tuple(&as_function(self)->dirty, args, n);
}
PyObject* mark_non_differentiable(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return keep_tuple(&as_function(self)->non_differentiable, args, n);
}
PyObject* set_output_grad_dtype(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i)
    if (args[i] != Py_None && !is_dtype(args[i])) {
      PyErr_Format(PyExc_TypeError, "set_output_grad_dtype: declaration %zd must be a dtype or None, not %s", i,
                   Py_TYPE(args[i])->tp_name);
      return nullptr;
    }
  return keep_tuple(&as_function(self)->output_grad_dtypes, args, n);
}
PyObject* set_materialize_grads(PyObject* self, PyObject* v) {
  if (!PyBool_Check(v)) {
    PyErr_Format(PyExc_TypeError, "set_materialize_grads: expected a bool, not %s", Py_TYPE(v)->tp_name);
    return nullptr;
  }
  as_function(self)->materialize = v == Py_True;
  Py_RETURN_NONE;
}

PyObject* saved_tensors(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    FunctionObject* f = as_function(self);
    if (f->in_jvp) {
      PyObject* t = f->saved_for_forward ? f->saved_for_forward : f->to_save;
      if (!t) return PyTuple_New(0);
      Py_INCREF(t);
      return t;
    }
    if (!f->node()) return PyTuple_New(0);
    if (f->saved_read)
      runtime_error(f->node()->name(),
                    ": saved_tensors were freed on their first access (clear_saved_tensors_on_access); "
                    "read them once and keep the tuple");
    Owned keep = Owned::share(self);
    Owned t(saved_tuple(*f->node()));
    if (!t) return nullptr;
    Owned clear(PyObject_GetAttr(forward_class(self).get(), TP_INTERNED("clear_saved_tensors_on_access")));
    if (!clear) PyErr_Clear();
    if (clear && clear.get() == Py_True) {
      f->node()->release_saved();
      f->saved_read = true;
    }
    return t.release();
  });
}
PyObject* raw_saved_tensors(PyObject* self, void*) {
  return guarded([&] { return raw_saved_tuple(self); });
}

PyObject* needs_input_grad(PyObject* self, void*) {
  FunctionObject* f = as_function(self);
  NodeObject& base = f->base;
  if (base.dict)
    if (PyObject* own = PyDict_GetItem(base.dict, TP_INTERNED("needs_input_grad"))) {
      Py_INCREF(own);
      return own;
    }
  const std::size_t n = f->arguments ? f->arguments->size() : 0;
  PyObject* t = PyTuple_New(Py_ssize_t(n));
  if (!t) return nullptr;
  // While the node runs, inputs the pass does not want count as not needed.
  const bool running = f->node() && Engine::current_node() == f->node();
  std::size_t edge = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const ArgInfo& a = (*f->arguments)[i];
    bool needs = a.requires_grad;
    if (a.tensor) {
      if (running && needs) needs = f->node()->wants(edge);
      ++edge;
    }
    PyObject* v = needs ? Py_True : Py_False;
    Py_INCREF(v);
    PyTuple_SET_ITEM(t, Py_ssize_t(i), v);
  }
  return t;
}
int set_needs_input_grad(PyObject* self, PyObject* value, void*) {
  NodeObject& base = as_function(self)->base;
  if (!value) {
    PyErr_SetString(PyExc_AttributeError, "needs_input_grad can't be deleted");
    return -1;
  }
  if (!base.dict && !(base.dict = PyDict_New())) return -1;
  return PyDict_SetItem(base.dict, TP_INTERNED("needs_input_grad"), value);
}

PyObject* input_grad_buffers(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    FunctionObject* f = as_function(self);
    if (!f->node() || Engine::current_node() != f->node())
      runtime_error(Py_TYPE(self)->tp_name,
                    ": input_grad_buffers is available only while this Function's backward runs in "
                    "backward() or grad()");
    if (modes::grad_enabled())
      runtime_error(Py_TYPE(self)->tp_name, ": input_grad_buffers is not available with create_graph=True");
    if (modes::any(modes::kAnomaly))
      runtime_error(Py_TYPE(self)->tp_name, ": input_grad_buffers is not available in anomaly mode");
    if (f->node()->meta() && !f->node()->meta()->post_hooks.empty())
      runtime_error(Py_TYPE(self)->tp_name, ": input_grad_buffers is not available on a node with a post-hook");
    Owned t(PyTuple_New(Py_ssize_t(f->arguments->size())));
    if (!t) return nullptr;
    std::size_t edge = 0;
    for (std::size_t i = 0; i < f->arguments->size(); ++i) {
      TensorRef buffer;
      if ((*f->arguments)[i].tensor) buffer = Engine::input_buffer(edge++);
      PyObject* v = wrap(std::move(buffer));
      if (!v) return nullptr;
      PyTuple_SET_ITEM(t.get(), Py_ssize_t(i), v);
    }
    return t.release();
  });
}

PyObject* get_materialize(PyObject* self, void*) { return PyBool_FromLong(as_function(self)->materialize); }
int set_materialize(PyObject* self, PyObject* v, void*) {
  PyObject* r = v ? set_materialize_grads(self, v) : nullptr;
  Py_XDECREF(r);
  return r ? 0 : -1;
}
template <PyObject* FunctionObject::* Field>
PyObject* get_tuple(PyObject* self, void*) {
  PyObject* t = as_function(self)->*Field;
  t = t ? t : Py_None;
  Py_INCREF(t);
  return t;
}

// What calling the node does: the user's backward, its result as it is.
PyObject* apply(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] { return call_user_backward(self, args, std::size_t(n)); });
}
PyObject* apply_boxed(PyObject* self, PyObject* grads) {
  return guarded([&]() -> PyObject* {
    if (!PyList_Check(grads)) type_error("apply_boxed: expected a list of gradients, not ", Py_TYPE(grads)->tp_name);
    Owned cls = forward_class(self);
    Owned f(PyObject_GetAttr(cls.get(), TP_INTERNED("backward")));
    return f ? PyObject_CallFunctionObjArgs(f.get(), self, grads, nullptr) : nullptr;
  });
}
PyObject* apply_jvp(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    Owned cls = forward_class(self);
    Owned f(PyObject_GetAttr(cls.get(), TP_INTERNED("jvp")));
    if (!f) return nullptr;
    InlineVec<PyObject*, 6> all;
    all.push_back(self);
    for (Py_ssize_t i = 0; i < n; ++i) all.push_back(args[i]);
    return PyObject_Vectorcall(f.get(), all.data(), all.size(), nullptr);
  });
}

template <class F>
PyCFunction fastcall(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

void context_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  FunctionObject* f = as_function(self);
  PyObject_GC_UnTrack(self);
  if (f->base.weak) PyObject_ClearWeakRefs(self);
  Py_CLEAR(f->base.dict);
  Py_CLEAR(f->to_save);
  Py_CLEAR(f->saved_for_forward);
  Py_CLEAR(f->dirty);
  Py_CLEAR(f->non_differentiable);
  Py_CLEAR(f->output_grad_dtypes);
  if (PythonNode* n = f->node()) {
    f->base.node = nullptr;
    n->~PythonNode();
  }
  delete f->arguments;
  // Subclasses come through CPython's deallocator, which drops the class itself.
  type->tp_free(self);
}
int context_traverse(PyObject* self, visitproc visit, void* arg) {
  FunctionObject* f = as_function(self);
  Py_VISIT(f->base.dict);
  Py_VISIT(f->to_save);
  Py_VISIT(f->saved_for_forward);
  Py_VISIT(f->dirty);
  Py_VISIT(f->non_differentiable);
  if (f->node()) return visit_node(f->node(), visit, arg);
  return 0;
}
int context_clear(PyObject* self) {
  FunctionObject* f = as_function(self);
  Py_CLEAR(f->base.dict);
  Py_CLEAR(f->to_save);
  Py_CLEAR(f->saved_for_forward);
  Py_CLEAR(f->dirty);
  Py_CLEAR(f->non_differentiable);
  if (PythonNode* n = f->node()) {
    n->release_saved();
    for (Edge& e : n->edges) NodeRef dropped = std::move(e.node);
    for (SavedFrom& s : n->saved_from) NodeRef dropped = std::move(s.edge.node);
  }
  return 0;
}
PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) { return new_context(type); }

PyMethodDef methods[] = {
    {"save_for_backward", fastcall(save_for_backward), METH_FASTCALL,
     "save_for_backward($self, /, *tensors)\n--\n\nKeeps tensors for backward, guarded against changes in place."},
    {"save_for_forward", fastcall(save_for_forward), METH_FASTCALL,
     "save_for_forward($self, /, *tensors)\n--\n\nKeeps tensors for jvp."},
    {"mark_dirty", fastcall(mark_dirty), METH_FASTCALL,
     "mark_dirty($self, /, *args)\n--\n\nDeclares which inputs forward changed in place."},
    {"mark_non_differentiable", fastcall(mark_non_differentiable), METH_FASTCALL,
     "mark_non_differentiable($self, /, *args)\n--\n\nDeclares outputs that have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "set_materialize_grads($self, value, /)\n--\n\nWhether absent gradients reach backward as zeros (the default) or "
     "as None."},
    {"set_output_grad_dtype", fastcall(set_output_grad_dtype), METH_FASTCALL,
     "set_output_grad_dtype($self, /, *dtypes)\n--\n\nThe dtype backward receives each output's gradient in."},
    {"apply", fastcall(apply), METH_FASTCALL, "apply($self, /, *grads)\n--\n\nRuns the user's backward."},
    {"apply_boxed", apply_boxed, METH_O,
     "apply_boxed($self, grads, /)\n--\n\nRuns the user's backward on a list it may empty."},
    {"apply_jvp", fastcall(apply_jvp), METH_FASTCALL, "apply_jvp($self, /, *tangents)\n--\n\nRuns the user's jvp."},
    {}};
PyGetSetDef attributes[] = {
    {"saved_tensors", saved_tensors, nullptr, "What save_for_backward kept.", nullptr},
    {"saved_variables", saved_tensors, nullptr, "The old name of saved_tensors.", nullptr},
    {"_raw_saved_tensors", raw_saved_tensors, nullptr, "The same as SavedTensor objects.", nullptr},
    {"needs_input_grad", needs_input_grad, set_needs_input_grad, "Which arguments of forward need a gradient.",
     nullptr},
    {"materialize_grads", get_materialize, set_materialize, "See set_materialize_grads.", nullptr},
    {"to_save", get_tuple<&FunctionObject::to_save>, nullptr, "Tensors given to save_for_backward.", nullptr},
    {"saved_for_forward", get_tuple<&FunctionObject::saved_for_forward>, nullptr, "Tensors given to save_for_forward.",
     nullptr},
    {"dirty_tensors", get_tuple<&FunctionObject::dirty>, nullptr, "Tensors given to mark_dirty.", nullptr},
    {"non_differentiable", get_tuple<&FunctionObject::non_differentiable>, nullptr,
     "Tensors given to mark_non_differentiable.", nullptr},
    {"input_grad_buffers", input_grad_buffers, nullptr,
     "While backward runs: the buffer of each input's gradient that may be added to in place, or None.", nullptr},
    {}};

}  // namespace

PyObject* new_context(PyTypeObject* type) {
  PyObject* self = type->tp_alloc(type, 0);  // zeroed
  if (!self) return nullptr;
  as_function(self)->materialize = true;
  return self;
}

void init_function_context(PyObject* module) {
  PyTypeObject& t = FunctionBaseType;
  t.tp_name = "tensorplay._C._FunctionBase";
  t.tp_base = &NodeType;
  t.tp_basicsize = sizeof(FunctionObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_doc = "The context of a Function, and the node of its result.";
  t.tp_dictoffset = offsetof(FunctionObject, base) + offsetof(NodeObject, dict);
  t.tp_weaklistoffset = offsetof(FunctionObject, base) + offsetof(NodeObject, weak);
  t.tp_new = context_new;
  t.tp_dealloc = context_dealloc;
  t.tp_traverse = context_traverse;
  t.tp_clear = context_clear;
  t.tp_free = PyObject_GC_Del;
  // Saved values have an attribute here; the generic look-up is the faster one.
  t.tp_getattro = PyObject_GenericGetAttr;
  t.tp_methods = methods;
  t.tp_getset = attributes;
  ready(t);
  add_object(module, "_FunctionBase", reinterpret_cast<PyObject*>(&t));
}

}  // namespace tp::python
