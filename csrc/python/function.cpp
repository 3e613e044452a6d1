// autograd.Function.apply: edges before forward, forward without recording, outputs attached after setup_context.
#include "python/function.h"
#include "autograd/dual_level.h"
#include "python/function_defaults.h"
#include "python/function_outputs.h"
#include "python/module.h"
#include "transforms/batched.h"

#include <new>

namespace tp::python {

FunctionDefaults function_defaults;

namespace {

PyObject* object_of(FunctionObject* f) { return reinterpret_cast<PyObject*>(f); }

// The node lives inside its context; the first count stands for a reference to it.
Ref<PythonNode> make_node_in(FunctionObject* f) {
  auto* n = new (f->room) PythonNode(f);
  f->base.node = n;
  Py_INCREF(object_of(f));
  return Ref<PythonNode>::adopt(n);
}

// What each argument is; the node with its edges where something is to be recorded.
Ref<PythonNode> begin(FunctionObject* f, PyObject* const* args, std::size_t n) {
  f->arguments = new std::vector<ArgInfo>(n);
  bool any = false;
  for (std::size_t i = 0; i < n; ++i) {
    if (!is_tensor(args[i])) continue;
    ArgInfo& a = (*f->arguments)[i];
    a.tensor = true;
    a.requires_grad = tensor_of(args[i])->requires_grad();
    any = any || a.requires_grad;
  }
  if (!any || !modes::grad_enabled()) return {};
  Ref<PythonNode> node = make_node_in(f);
  for (std::size_t i = 0; i < n; ++i)
    if ((*f->arguments)[i].tensor)
      node->edges.push_back((*f->arguments)[i].requires_grad ? gradient_edge(tensor_of(args[i])) : Edge{});
  return node;
}

// Missing positional arguments of a separate-style forward take their defaults, so that `inputs` is complete.
Owned with_defaults(PyObject* forward, PyObject* const* args, Py_ssize_t n) {
  PyObject* defaults = PyFunction_Check(forward) ? PyFunction_GetDefaults(forward) : nullptr;
  const Py_ssize_t have = defaults ? PyTuple_GET_SIZE(defaults) : 0;
  Py_ssize_t want = n;
  if (have) {
    const auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GetCode(forward));
    if (n < code->co_argcount && n >= code->co_argcount - have) want = code->co_argcount;
  }
  Owned t(PyTuple_New(want));
  if (!t) host_error();
  for (Py_ssize_t i = 0; i < want; ++i) {
    PyObject* v = i < n ? args[i] : PyTuple_GET_ITEM(defaults, have - (want - i));
    Py_INCREF(v);
    PyTuple_SET_ITEM(t.get(), i, v);
  }
  return t;
}

[[noreturn]] void refuse_combined(PyObject* cls) {
  runtime_error(
      "In order to use an autograd.Function with function transforms (vmap, grad, jvp, jacrev, ...), it must override "
      "the setup_context staticmethod: ",
      reinterpret_cast<PyTypeObject*>(cls)->tp_name, " does its forward and its saving in one forward(ctx, ...)");
}

PyObject* run(PyObject* cls, PyObject* const* args, Py_ssize_t n) {
  Owned forward(PyObject_GetAttr(cls, TP_INTERNED("forward")));
  Owned setup(PyObject_GetAttr(cls, TP_INTERNED("setup_context")));
  Owned context_class(PyObject_GetAttr(cls, TP_INTERNED("_backward_cls")));
  if (!forward || !setup || !context_class) host_error();
  const bool separate = setup.get() != function_defaults.setup_context;
  Owned inputs;
  if (TP_UNLIKELY(modes::any(modes::kDerivative)) && !separate) refuse_combined(cls);
  if (separate) {
    inputs = with_defaults(forward.get(), args, n);
    args = &PyTuple_GET_ITEM(inputs.get(), 0);
    n = PyTuple_GET_SIZE(inputs.get());
  }
  Owned ctx(new_context(reinterpret_cast<PyTypeObject*>(context_class.get())));
  if (!ctx) host_error();
  FunctionObject* f = as_function(ctx.get());
  Ref<PythonNode> node = begin(f, args, std::size_t(n));
  const InputVersions versions(args, std::size_t(n));
  const bool forward_mode = TP_UNLIKELY(modes::any(modes::kForward));

  Owned output;
  {
    modes::Guard inside(modes::kNoGrad, modes::kForward);
    InlineVec<PyObject*, 8> call(std::size_t(n) + 2);
    call[1] = ctx.get();
    for (Py_ssize_t i = 0; i < n; ++i) call[std::size_t(i) + 2] = args[i];
    const std::size_t skip = separate ? 2 : 1;
    output = Owned(PyObject_Vectorcall(forward.get(), call.data() + skip,
                                       (std::size_t(n) + 2 - skip) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!output) host_error();
    if (separate) {
      // Whatever setup_context returns is dropped.
      Owned ignored(PyObject_CallFunctionObjArgs(setup.get(), ctx.get(), inputs.get(), output.get(), nullptr));
      if (!ignored) host_error();
    }
  }
  return finish_function(f, cls, node, args, std::size_t(n), versions, std::move(output), forward_mode);
}

/// Whether an argument is batched; in a combined-style Function that is refused, as every transform does.
bool any_batched(PyObject* cls, PyObject* const* args, Py_ssize_t n) {
  bool any = false;
  for (Py_ssize_t i = 0; i < n && !any; ++i) any = is_tensor(args[i]) && batch::levels_of(tensor_of(args[i]));
  if (!any) return false;
  Owned setup(PyObject_GetAttr(cls, TP_INTERNED("setup_context")));
  if (!setup) host_error();
  if (setup.get() == function_defaults.setup_context) refuse_combined(cls);
  return true;
}

}  // namespace

PyObject* apply_function(PyObject* cls, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    const bool keywords = kwnames && PyTuple_GET_SIZE(kwnames);
    const bool transform = any_batched(cls, args, n);
    if (TP_LIKELY(!keywords && !transform)) return run(cls, args, n);
    // Keywords become positional by forward's signature, in Python.
    Owned positional(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      Py_INCREF(args[i]);
      PyTuple_SET_ITEM(positional.get(), i, args[i]);
    }
    if (keywords) {
      Owned named(PyDict_New());
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k)
        PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, k), args[n + k]);
      if (!function_defaults.bind) type_error("apply: keyword arguments need tensorplay.autograd.function");
      positional =
          Owned(PyObject_CallFunctionObjArgs(function_defaults.bind, cls, positional.get(), named.get(), nullptr));
      if (!positional) host_error();
      if (!PyTuple_Check(positional.get())) type_error("apply: binding keyword arguments gave no tuple");
    }
    if (transform) {
      Owned rule = import_attr("tensorplay.autograd._function_vmap", "apply");
      return PyObject_CallFunctionObjArgs(rule.get(), cls, positional.get(), nullptr);
    }
    return run(cls, &PyTuple_GET_ITEM(positional.get(), 0), PyTuple_GET_SIZE(positional.get()));
  });
}

namespace {

// ---- the two halves, for the fallback in Python ----------------------------------------------------------------------
// (ctx, args) -> state to hand to _finish
PyObject* begin_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !is_function(args[0]) || !PyTuple_Check(args[1])) type_error("_function_begin: takes (ctx, args)");
    FunctionObject* f = as_function(args[0]);
    if (f->arguments) runtime_error("_function_begin: this context was used before");
    const std::size_t count = std::size_t(PyTuple_GET_SIZE(args[1]));
    PyObject* const* items = &PyTuple_GET_ITEM(args[1], 0);
    Ref<PythonNode> node = begin(f, items, count);
    auto* state = new FunctionState{std::move(node), InputVersions(items, count), modes::any(modes::kForward)};
    return PyCapsule_New(state, "tensorplay.function", [](PyObject* c) {
      delete static_cast<FunctionState*>(PyCapsule_GetPointer(c, "tensorplay.function"));
    });
  });
}
// (ctx, cls, args, output, state) -> outputs with history
PyObject* end_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 5 || !is_function(args[0]) || !PyTuple_Check(args[2]))
      type_error("_function_finish: takes (ctx, cls, args, output, state)");
    auto* state = static_cast<FunctionState*>(PyCapsule_GetPointer(args[4], "tensorplay.function"));
    if (!state) host_error();
    return finish_function(as_function(args[0]), args[1], state->node, &PyTuple_GET_ITEM(args[2], 0),
                           std::size_t(PyTuple_GET_SIZE(args[2])), state->versions, Owned::share(args[3]),
                           state->forward_mode);
  });
}

PyObject* function_histories(PyObject*, PyObject* ctx) {
  return guarded([&] { return histories_of(ctx); });
}

PyObject* set_defaults(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3) type_error("_set_function_defaults: takes (Function, bind, outside)");
    FunctionDefaults& d = function_defaults;
    const auto get = [&](PyObject** field, const char* name) {
      Owned v(PyObject_GetAttrString(args[0], name));
      if (!v) host_error();
      Py_XSETREF(*field, v.release());
    };
    get(&d.setup_context, "setup_context");
    get(&d.backward, "backward");
    get(&d.vjp, "vjp");
    Py_XSETREF(d.bind, Owned::share(args[1]).release());
    Py_XSETREF(d.outside, Owned::share(args[2]).release());
    Py_RETURN_NONE;
  });
}

PyMethodDef head_methods[] = {{"apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(apply_function)),
                               METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
                               "apply(*args, **kwargs)\n--\n\nRuns forward and gives its outputs their history."},
                              {}};
PyTypeObject HeadType = {};

template <class F>
PyCFunction fastcall(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyMethodDef functions[] = {{"_function_begin", fastcall(begin_function), METH_FASTCALL, nullptr},
                           {"_function_finish", fastcall(end_function), METH_FASTCALL, nullptr},
                           {"_function_histories", function_histories, METH_O, nullptr},
                           {"_set_function_defaults", fastcall(set_defaults), METH_FASTCALL, nullptr},
                           {}};

}  // namespace

void init_function(PyObject* module) {
  init_function_context(module);
  HeadType.tp_name = "tensorplay._C._FunctionHead";
  HeadType.tp_basicsize = sizeof(PyObject);
  HeadType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  HeadType.tp_new = PyType_GenericNew;
  HeadType.tp_methods = head_methods;
  HeadType.tp_doc = "What Function inherits its apply from.";
  ready(HeadType);
  add_object(module, "_FunctionHead", reinterpret_cast<PyObject*>(&HeadType));
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
