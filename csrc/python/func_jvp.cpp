// func.jvp: one forward level around one call. Knows no op.
#include "python/func_support.h"
#include "python/module.h"

namespace tp::python {
namespace {

using namespace func;

constexpr const char* kJvp = "jvp(f, primals, tangents)";

void check_tensor(PyObject* o, const char* what) {
  if (!is_tensor(o)) runtime_error(kJvp, ": Expected ", what, " to only contain Tensors, got ", Py_TYPE(o)->tp_name);
}

/// The primal behind a tensor of its own that carries the tangent.
TensorRef make_dual(const TensorRef& x, const TensorRef& t, std::uint32_t level) {
  if (!is_differentiable(x->dtype()) || !is_differentiable(t->dtype()))
    value_error(kJvp, ": primals and tangents must be floating point or complex, got ", dtype_name(x->dtype()), " and ",
                dtype_name(t->dtype()));
  const Output primal = output_of(x);
  TensorRef tangent = peeled(t, primal.levels);
  if (!(tangent->sizes() == primal.physical->sizes()))
    runtime_error(kJvp, ": a tangent has the size ", t->sizes(), " but its primal has ", x->sizes(),
                  "; they must be equal");
  if (tangent->dtype() != x->dtype()) tangent = engine_ops.cast_graph(tangent, x->dtype());
  TensorRef dual = without_history(primal.physical);
  if (Edge e = gradient_edge(primal.physical); e.node) dual->set_grad_fn(NodeBaseRef::adopt(e.node.detach()), e.nr);
  dual::attach_tangent(dual, std::move(tangent), level);
  return output_wrapped(std::move(dual), primal.levels);
}

Owned pair_up(PyObject* primals, PyObject* tangents, std::uint32_t level) {
  if (TP_LIKELY(is_tensor(primals) && is_tensor(tangents)))
    return Owned(wrap(make_dual(tensor_of(primals), tensor_of(tangents), level)));
  std::vector<PyObject*> leaves;
  each_leaf_like(primals, tangents, [&](PyObject* t) { leaves.push_back(t); });
  std::size_t next = 0;
  return map_tree(primals, [&](PyObject* x) {
    PyObject* t = leaves[next++];
    check_tensor(x, "primals");
    check_tensor(t, "tangents");
    return Owned(wrap(make_dual(tensor_of(x), tensor_of(t), level)));
  });
}

// (func, primals, tangents, strict, has_aux, argnums) -> (output, tangent) or (output, tangent, aux); with argnums
// (else None), the tangents are those of the listed arguments, the others are constants.
PyObject* run_jvp(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 6) type_error("_func_jvp: takes (func, primals, tangents, strict, has_aux, argnums)");
    PyObject *primals = args[1], *tangents = args[2];
    const bool strict = PyObject_IsTrue(args[3]) == 1, has_aux = PyObject_IsTrue(args[4]) == 1;
    if (!PyTuple_Check(primals))
      runtime_error(kJvp, ": Expected primals to be a tuple. E.g. it should be valid to call f(*primals). Got ",
                    Py_TYPE(primals)->tp_name);
    const Py_ssize_t count = PyTuple_GET_SIZE(primals);
    Owned chosen;  // the differentiated arguments, in the structure of the tangents
    Positions at;
    if (args[5] == Py_None) {
      chosen = Owned::share(primals);
    } else {
      at = find_arguments(parse_argnums(args[5]), count);
      chosen = Owned(PyTuple_New(Py_ssize_t(at.size())));
      for (std::size_t k = 0; k < at.size(); ++k) {
        PyObject* x = PyTuple_GET_ITEM(primals, at[k]);
        Py_INCREF(x);
        PyTuple_SET_ITEM(chosen.get(), Py_ssize_t(k), x);
      }
    }
    if (!PyTuple_Check(tangents) || !same_structure(chosen.get(), tangents))
      runtime_error(kJvp,
                    ": Expected primals and tangents to have the same python structure. For example, if primals is a "
                    "tuple of 3 tensors, tangents also must be. Got primals with structure ",
                    describe_tree(chosen.get()), " and tangents with structure ", describe_tree(tangents));
    if (PyTuple_GET_SIZE(chosen.get()) == 0) runtime_error(kJvp, ": Expected primals to contain at least one Tensor.");

    Derivative derivative;
    dual::Scope scope;
    InlineVec<PyObject*, 8> call(std::size_t(count) + 1);
    for (Py_ssize_t i = 0; i < count; ++i) call[std::size_t(i) + 1] = PyTuple_GET_ITEM(primals, i);
    InlineVec<Owned, 4> duals;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(chosen.get()); ++k) {
      duals.push_back(pair_up(PyTuple_GET_ITEM(chosen.get(), k), PyTuple_GET_ITEM(tangents, k), scope.level()));
      call[std::size_t(at.empty() ? k : at[std::size_t(k)]) + 1] = duals.back().get();
    }
    Owned output(
        PyObject_Vectorcall(args[0], call.data() + 1, std::size_t(count) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!output) host_error();
    Owned aux;
    if (has_aux) split_aux(kJvp, output, aux);

    bool any = false;
    InlineVec<TensorRef, 2> found;
    Owned primal_out = map_tree(output.get(), [&](PyObject* leaf) {
      if (!is_tensor(leaf))
        runtime_error(kJvp, ": expected f(*primals) to return only tensors, got unsupported type ",
                      Py_TYPE(leaf)->tp_name);
      any = true;
      const TensorRef& t = tensor_of(leaf);
      const Output out = output_of(t);
      TensorRef tangent = dual::tangent_of(out.physical, scope.level());
      if (!tangent) {
        if (strict)
          runtime_error(
              "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
              "allowed with strict=True.");
        tangent = wiring::wrap(zeros_storage(out.physical->sizes(), out.physical->dtype()));
      }
      found.push_back(output_wrapped(std::move(tangent), out.levels));
      TensorRef plain = wiring::primal(out.physical, scope.level());
      return plain == out.physical ? Owned::share(leaf) : Owned(wrap(output_wrapped(std::move(plain), out.levels)));
    });
    if (!any)
      runtime_error(kJvp, ": Expected f to be a function that has non-empty output (got output = ",
                    describe_tree(output.get()), ")");
    std::size_t next = 0;
    Owned tangent_out = map_tree(output.get(), [&](PyObject*) { return Owned(wrap(std::move(found[next++]))); });
    if (!has_aux) return PyTuple_Pack(2, primal_out.get(), tangent_out.get());
    aux = map_tree(aux.get(), [&](PyObject* leaf) {
      if (!is_tensor(leaf)) return Owned::share(leaf);
      const Output out = output_of(tensor_of(leaf));
      TensorRef plain = wiring::primal(out.physical, scope.level());
      return plain == out.physical ? Owned::share(leaf) : Owned(wrap(output_wrapped(std::move(plain), out.levels)));
    });
    return PyTuple_Pack(3, primal_out.get(), tangent_out.get(), aux.get());
  });
}

PyMethodDef functions[] = {
    {"_func_jvp", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_jvp)), METH_FASTCALL, nullptr}, {}};

}  // namespace

void init_func_jvp(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
