// func.grad and grad_and_value: one call of the function, one pass back to its aliases. Knows no op.
#include "python/func_support.h"
#include "python/module.h"

#include <new>

namespace tp::python {
namespace {

using namespace func;

/// What grad(f) returns: called like f, gives the gradient of its first (or the listed) arguments.
struct GradObject {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* function;
  PyObject* dict;
  ArgNums argnums;
  bool has_aux;
  bool with_value;
};
PyTypeObject GradType = {};

constexpr const char* kGradApi = "grad_and_value(f)(*args)";

Owned gradient_of(GradObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const bool recording = modes::grad_enabled();
  Aliases aliases;
  const Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  InlineVec<PyObject*, 8> call(std::size_t(total) + 1);
  for (Py_ssize_t i = 0; i < total; ++i) call[std::size_t(i) + 1] = args[i];
  InlineVec<Owned, 4> trees;  // aliases in the structure of each differentiated argument
  Owned output, aux;
  {
    Recording scope;
    for (Py_ssize_t at : find_arguments(self->argnums, n)) {
      const std::size_t i = std::size_t(at) + 1;
      trees.push_back(map_tree(args[i - 1], [&](PyObject* leaf) { return aliases.add(leaf, "grad"); }));
      call[i] = trees.back().get();
    }
    output = Owned(
        PyObject_Vectorcall(self->function, call.data() + 1, std::size_t(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames));
    if (!output) host_error();
    if (self->has_aux) split_aux(kGradApi, output, aux);
    if (!is_tensor(output.get()))
      runtime_error(kGradApi, ": Expected f(*args) to return a Tensor, got ", Py_TYPE(output.get())->tp_name);
  }
  const TensorRef& value = tensor_of(output.get());
  if (value->dim() != 0)
    runtime_error(kGradApi, ": Expected f(*args) to return a scalar Tensor, got tensor with ", value->dim(),
                  " dims. Maybe you wanted to use the vjp or jacrev APIs instead?");
  const Output out = output_of(value);
  std::vector<TensorRef> grads;
  bool keep = false;
  if (out.physical->requires_grad()) {
    if (is_complex(value->dtype()))
      runtime_error(kGradApi, ": grad can be computed only for real scalar outputs but got ",
                    dtype_name(value->dtype()), "; use vjp");
    const Edge root = gradient_edge(out.physical);
    keep = followed(aliases, {&root, 1}, recording);
    TensorRef seed;
    if (out.levels) seed = wiring::wrap(ones_storage(out.physical->sizes(), out.physical->dtype()));
    grads = pull_back(aliases, {&root, 1}, {&seed, 1}, keep, keep);
  } else {
    grads = pull_back(aliases, {}, {}, false, false);
  }

  std::size_t next = 0;
  const auto take = [&](PyObject*) {
    TensorRef g = output_wrapped(std::move(grads[next]), aliases.levels[next]);
    ++next;
    return Owned(wrap(std::move(g)));
  };
  Owned result;
  if (!self->argnums.tuple) {
    result = map_tree(trees[0].get(), take);
  } else {
    result = Owned(PyTuple_New(Py_ssize_t(trees.size())));
    for (std::size_t k = 0; k < trees.size(); ++k)
      PyTuple_SET_ITEM(result.get(), Py_ssize_t(k), map_tree(trees[k].get(), take).release());
  }
  if (!self->has_aux && !self->with_value) return result;
  if (self->has_aux) aux = released(std::move(aux), aliases, recording);
  if (!self->with_value) return Owned(PyTuple_Pack(2, result.get(), aux.get()));
  TensorRef v = keep || !value->requires_grad() ? value : output_wrapped(without_history(out.physical), out.levels);
  Owned shown(wrap(std::move(v)));
  if (self->has_aux) shown = Owned(PyTuple_Pack(2, shown.get(), aux.get()));
  return Owned(shown ? PyTuple_Pack(2, result.get(), shown.get()) : nullptr);
}

PyObject* grad_call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  return guarded([&] {
    Owned r = gradient_of(reinterpret_cast<GradObject*>(self), args, PyVectorcall_NARGS(nargsf), kwnames);
    if (!r) host_error();
    return r.release();
  });
}

// (func, argnums, has_aux, with_value) -> the transformed function
PyObject* make_grad(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 4) type_error("_func_grad: takes (func, argnums, has_aux, with_value)");
    if (!PyCallable_Check(args[0])) type_error("grad: expected a function, not ", Py_TYPE(args[0])->tp_name);
    ArgNums nums = parse_argnums(args[1]);
    auto* g = PyObject_GC_New(GradObject, &GradType);
    if (!g) host_error();
    g->call = grad_call;
    Py_INCREF(args[0]);
    g->function = args[0];
    g->dict = nullptr;
    new (&g->argnums) ArgNums(std::move(nums));
    g->has_aux = PyObject_IsTrue(args[2]) == 1;
    g->with_value = PyObject_IsTrue(args[3]) == 1;
    PyObject_GC_Track(reinterpret_cast<PyObject*>(g));
    return reinterpret_cast<PyObject*>(g);
  });
}

void grad_dealloc(PyObject* o) {
  auto* g = reinterpret_cast<GradObject*>(o);
  PyObject_GC_UnTrack(o);
  Py_CLEAR(g->function);
  Py_CLEAR(g->dict);
  g->argnums.~ArgNums();
  PyObject_GC_Del(o);
}
int grad_traverse(PyObject* o, visitproc visit, void* arg) {
  auto* g = reinterpret_cast<GradObject*>(o);
  Py_VISIT(g->function);
  Py_VISIT(g->dict);
  return 0;
}
int grad_clear(PyObject* o) {
  auto* g = reinterpret_cast<GradObject*>(o);
  Py_CLEAR(g->dict);
  return 0;
}
PyObject* grad_attribute(PyObject* o, PyObject* name) {
  return wrapped_attribute(o, reinterpret_cast<GradObject*>(o)->function, name);
}
PyObject* grad_repr(PyObject* o) {
  return PyUnicode_FromFormat("<gradient of %R>", reinterpret_cast<GradObject*>(o)->function);
}

PyMethodDef functions[] = {
    {"_func_grad", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_grad)), METH_FASTCALL, nullptr}, {}};

}  // namespace

void init_func_grad(PyObject* module) {
  make_callable(GradType, "tensorplay.func.Gradient", sizeof(GradObject), offsetof(GradObject, call),
                offsetof(GradObject, dict));
  GradType.tp_dealloc = grad_dealloc;
  GradType.tp_traverse = grad_traverse;
  GradType.tp_clear = grad_clear;
  GradType.tp_getattro = grad_attribute;
  GradType.tp_repr = grad_repr;
  ready(GradType);
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
