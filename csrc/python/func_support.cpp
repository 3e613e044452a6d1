// Aliases of arguments, histories of results, and the pass between them.
#include "python/func_support.h"

#include "python/function.h"

namespace tp::python::func {

ArgNums parse_argnums(PyObject* o) {
  ArgNums nums;
  const auto one = [&](PyObject* i) {
    if (!PyLong_Check(i)) runtime_error("argnum must be int, got: ", Py_TYPE(i)->tp_name);
    const Py_ssize_t v = PyLong_AsSsize_t(i);
    if (PyErr_Occurred()) host_error();
    nums.at.push_back(v);
  };
  if (!PyTuple_Check(o)) {
    if (!PyLong_Check(o)) runtime_error("argnums must be int or Tuple[int, ...], got: ", Py_TYPE(o)->tp_name);
    one(o);
    return nums;
  }
  nums.tuple = true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) one(PyTuple_GET_ITEM(o, i));
  if (nums.at.empty()) runtime_error("argnums must be non-empty");
  return nums;
}

Positions find_arguments(const ArgNums& nums, Py_ssize_t n) {
  Positions found;
  for (Py_ssize_t at : nums.at) {
    if (at < -n || at >= n) runtime_error("Got argnum=", at, ", but only ", n, " positional inputs");
    const Py_ssize_t position = at < 0 ? at + n : at;
    for (Py_ssize_t seen : found)
      if (seen == position) runtime_error("argnums elements must be unique, got argument ", position, " twice");
    found.push_back(position);
  }
  return found;
}

Owned Aliases::add(PyObject* leaf, const char* api) {
  if (!is_tensor(leaf))
    value_error(api, ": Thing passed to transform API must be Tensor, got ", Py_TYPE(leaf)->tp_name,
                "; leave it out of argnums");
  const TensorRef& t = tensor_of(leaf);
  if (!is_differentiable(t->dtype()))
    runtime_error(api, ": only Tensors of floating point and complex dtype can require gradients, got ",
                  dtype_name(t->dtype()));
  outside |= t->requires_grad();
  // What the function captures may differ from sample to sample: so does the gradient, and so must the graph.
  batch::Levels at = batch::open_levels();
  if (TP_UNLIKELY(at)) at = batch::levels_of(t) | (at & ~batch::basis_levels);
  const TensorRef physical = TP_UNLIKELY(at) ? batch::physical_at(t, at) : t;
  TensorRef alias = make_alias(physical);
  edges.push_back(gradient_edge(alias));
  tensors.push_back(without_history(physical));
  levels.push_back(at);
  return Owned(wrap(batch::wrap(std::move(alias), at)));
}

Output output_of(const TensorRef& t) { return {batch::physical(t), batch::levels_of(t)}; }
TensorRef output_wrapped(TensorRef physical, std::uint32_t levels) { return batch::cover(physical, levels); }
TensorRef peeled(const TensorRef& t, std::uint32_t levels) { return batch::peel(t, levels); }
Shape logical_sizes(const Shape& physical, std::uint32_t levels) {
  Shape sizes;
  for (int i = batch::count(levels); i < physical.size(); ++i) sizes.push_back(physical[i]);
  return sizes;
}

void split_aux(const char* api, Owned& result, Owned& aux) {
  PyObject* pair = result.get();
  if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2)
    runtime_error(api, ": output of function f should be a tuple: (output, aux) if has_aux is True");
  aux = Owned::share(PyTuple_GET_ITEM(pair, 1));
  result = Owned::share(PyTuple_GET_ITEM(pair, 0));
}

bool followed(const Aliases& aliases, std::span<const Edge> histories, bool recording) {
  if (!recording) return false;
  return aliases.outside || (!aliases.captures_nothing && Engine::reaches_older(histories, aliases.age));
}

namespace {

/// A tensor, batched or not, without its history.
TensorRef plain(const TensorRef& t) {
  const Output out = output_of(t);
  return output_wrapped(without_history(out.physical), out.levels);
}

}  // namespace

TensorRef released(const TensorRef& t, const Aliases& aliases, bool recording) {
  if (!t->requires_grad()) return t;
  const Output out = output_of(t);
  const Edge history = gradient_edge(out.physical);
  if (followed(aliases, {&history, 1}, recording)) return t;
  return output_wrapped(without_history(out.physical), out.levels);
}

Owned released(Owned tree, const Aliases& aliases, bool recording) {
  return map_tree(tree.get(), [&](PyObject* leaf) {
    if (!is_tensor(leaf)) return Owned::share(leaf);
    const TensorRef& t = tensor_of(leaf);
    TensorRef r = released(t, aliases, recording);
    return r == t ? Owned::share(leaf) : Owned(wrap(std::move(r)));
  });
}

std::vector<TensorRef> pull_back(const Aliases& aliases, std::span<const Edge> roots, std::span<const TensorRef> seeds,
                                 bool keep_graph, bool create_graph) {
  std::vector<TensorRef> grads;
  if (roots.empty())
    grads.resize(aliases.edges.size());
  else
    grads = Engine::run({.roots = roots,
                         .seeds = seeds,
                         .inputs = {aliases.edges.data(), aliases.edges.size()},
                         .keep_graph = keep_graph,
                         .create_graph = create_graph,
                         .accumulate = false});
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const TensorRef& like = aliases.tensors[i];
    if (!grads[i])
      grads[i] = wiring::wrap(zeros_storage(like->sizes(), like->dtype()));
    else if (!create_graph && grads[i]->requires_grad())
      grads[i] = plain(grads[i]);
  }
  return grads;
}

namespace {

PyObject* bind_method(PyObject* o, PyObject* instance, PyObject*) {
  if (instance && instance != Py_None) return PyMethod_New(o, instance);
  Py_INCREF(o);
  return o;
}
PyGetSetDef own_attributes[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};

}  // namespace

void make_callable(PyTypeObject& t, const char* name, Py_ssize_t size, Py_ssize_t call_offset, Py_ssize_t dict_offset) {
  t.tp_name = name;
  t.tp_basicsize = size;
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  t.tp_vectorcall_offset = call_offset;
  t.tp_call = PyVectorcall_Call;
  if (!dict_offset) return;
  t.tp_dictoffset = dict_offset;
  t.tp_setattro = PyObject_GenericSetAttr;
  t.tp_descr_get = bind_method;
  t.tp_getset = own_attributes;
}

PyObject* wrapped_attribute(PyObject* self, PyObject* func, PyObject* name) {
  // The type has a __doc__ of its own, which would hide the function's.
  PyObject* found = PyUnicode_CompareWithASCIIString(name, "__doc__") == 0 ? PyObject_GetAttr(func, name)
                                                                           : PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
    Py_INCREF(func);
    return func;
  }
  return PyObject_GetAttr(func, name);
}

}  // namespace tp::python::func
