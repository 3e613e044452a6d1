// func.vjp: the output, and a function that pulls cotangents back through the graph it kept. Also all rows of a Jacobian
// as one batch of them. Knows no op but views.
#include "ops/formula.h"
#include "python/func_support.h"
#include "python/module.h"

#include <new>

namespace tp::python {
namespace {

/// Ones on the diagonal of a contiguous square of zeros.
void fill_diagonal(Storage& square) {
  const std::int64_t n = square.size(0);
  const Scalar one(1.0);
  for (std::int64_t i = 0; i < n; ++i)
    write_element(square.raw() + i * (n + 1) * std::int64_t(item_size(square.dtype())), square.dtype(), one);
}

using namespace func;

/// What vjp returns beside the output: takes cotangents, gives gradients of the primals.
struct VjpObject {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* outputs;  // tree of indices into `like`
  PyObject* primals;  // tuple of trees of None-like leaves
  struct State {
    Aliases aliases;
    InlineVec<Edge, 2> roots;  // one per output; absent where it has no history
    InlineVec<Storage, 2> like;  // sizes and dtype of each physical output
    InlineVec<std::uint32_t, 2> levels;
    bool followed = false;
  }* state;
};
PyTypeObject VjpType = {};

constexpr const char* kVjpApi = "vjp(f, *primals)";

/// A cotangent on the physical level of its output.
TensorRef physical_cotangent(const TensorRef& given, const Storage& like, std::uint32_t levels, std::size_t i) {
  TensorRef ct = peeled(given, levels);
  if (!(ct->sizes() == like.sizes()))
    runtime_error("Mismatch in shape: cotangent ", i, " of vjp has a shape of ", given->sizes(), " and output ", i,
                  " has a shape of ", logical_sizes(like.sizes(), levels), ".");
  if (is_complex(ct->dtype()) != is_complex(like.dtype()))
    runtime_error("vjp: Mismatch in dtype: cotangent ", i, " has a dtype of ", dtype_name(ct->dtype()), " and output ",
                  i, " has a dtype of ", dtype_name(like.dtype()), ".");
  return ct->dtype() == like.dtype() ? ct : engine_ops.cast_graph(ct, like.dtype());
}

Owned pull_back_call(VjpObject* self, PyObject* cotangents, bool keep_graph) {
  VjpObject::State& s = *self->state;
  if (!same_structure(cotangents, self->outputs))
    runtime_error(
        "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
        "cotangents: ",
        describe_tree(cotangents), ", primal output: ", describe_tree(self->outputs));
  const bool recording = modes::grad_enabled();
  Derivative scope;
  InlineVec<Edge, 2> roots;
  InlineVec<TensorRef, 2> seeds;
  bool follow = s.followed;
  std::size_t i = 0;
  each_leaf_like(self->outputs, cotangents, [&](PyObject* leaf) {
    if (!is_tensor(leaf)) type_error("vjp: cotangents must be Tensors, cotangent ", i, " is ", Py_TYPE(leaf)->tp_name);
    if (s.roots[i].node) {
      TensorRef ct = physical_cotangent(tensor_of(leaf), s.like[i], s.levels[i], i);
      follow |= ct->requires_grad();
      roots.push_back(s.roots[i]);
      seeds.push_back(std::move(ct));
    }
    ++i;
  });
  follow &= recording;
  std::vector<TensorRef> grads =
      pull_back(s.aliases, {roots.data(), roots.size()}, {seeds.data(), seeds.size()}, keep_graph || follow, follow);
  std::size_t next = 0;
  const auto take = [&](PyObject*) {
    TensorRef g = output_wrapped(std::move(grads[next]), s.aliases.levels[next]);
    ++next;
    return Owned(wrap(std::move(g)));
  };
  return map_tree(self->primals, take);
}

PyObject* vjp_call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  return guarded([&] {
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    bool keep = true;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
      PyObject* name = PyTuple_GET_ITEM(kwnames, k);
      if (PyUnicode_CompareWithASCIIString(name, "retain_graph") == 0)
        keep = PyObject_IsTrue(args[n + k]) == 1;
      else if (PyUnicode_CompareWithASCIIString(name, "create_graph") != 0)
        type_error("vjp_fn: unexpected keyword argument '", PyUnicode_AsUTF8(name), "'");
    }
    if (n != 1)
      type_error("vjp_fn: takes one tree of cotangents with the structure of the output, got ", n, " arguments");
    return pull_back_call(reinterpret_cast<VjpObject*>(self), args[0], keep).release();
  });
}

// (func, primals, has_aux) -> (output, vjp_fn) or (output, vjp_fn, aux)
PyObject* run_vjp(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3 || !PyTuple_Check(args[1])) type_error("_func_vjp: takes (func, primals, has_aux)");
    const bool recording = modes::grad_enabled();
    const bool has_aux = PyObject_IsTrue(args[2]) == 1;
    auto state = std::make_unique<VjpObject::State>();
    // A pullback reads the graph it kept, which nobody but it may follow, and its cotangents.
    if (Py_TYPE(args[0]) == &VjpType)
      state->aliases.captures_nothing = !reinterpret_cast<VjpObject*>(args[0])->state->followed;
    Owned inputs, output, aux;
    {
      Recording scope;
      inputs = map_tree(args[1], [&](PyObject* leaf) { return state->aliases.add(leaf, "vjp"); });
      output = Owned(PyObject_CallObject(args[0], inputs.get()));
      if (!output) host_error();
      if (has_aux) split_aux(kVjpApi, output, aux);
    }
    InlineVec<Edge, 2> histories;
    Owned spec = map_tree(output.get(), [&](PyObject* leaf) {
      if (!is_tensor(leaf))
        runtime_error(kVjpApi, ": expected f(*primals) to return only tensors, got unsupported type ",
                      Py_TYPE(leaf)->tp_name);
      const TensorRef& t = tensor_of(leaf);
      if (!is_differentiable(t->dtype()))
        runtime_error("vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype ",
                      dtype_name(t->dtype()));
      const Output out = output_of(t);
      state->roots.push_back(out.physical->requires_grad() ? gradient_edge(out.physical) : Edge());
      if (state->roots.back().node) histories.push_back(state->roots.back());
      state->like.push_back(Storage(BlockRef(), out.physical->dtype(), out.physical->sizes()));
      state->levels.push_back(out.levels);
      return Owned(PyLong_FromSize_t(state->roots.size() - 1));
    });
    if (state->roots.empty())
      runtime_error(kVjpApi, ": Expected f to be a function that has non-empty output (got output = ",
                    describe_tree(output.get()), ")");
    state->followed = followed(state->aliases, {histories.data(), histories.size()}, recording);
    output = released(std::move(output), state->aliases, recording);
    if (has_aux) aux = released(std::move(aux), state->aliases, recording);
    Owned primals = map_tree(inputs.get(), [](PyObject*) { return Owned(PyLong_FromLong(0)); });
    auto* v = PyObject_GC_New(VjpObject, &VjpType);
    if (!v) host_error();
    v->call = vjp_call;
    v->outputs = spec.release();
    v->primals = primals.release();
    v->state = state.release();
    PyObject_GC_Track(reinterpret_cast<PyObject*>(v));
    Owned fn(reinterpret_cast<PyObject*>(v));
    return has_aux ? PyTuple_Pack(3, output.get(), fn.get(), aux.get()) : PyTuple_Pack(2, output.get(), fn.get());
  });
}

void vjp_dealloc(PyObject* o) {
  auto* v = reinterpret_cast<VjpObject*>(o);
  PyObject_GC_UnTrack(o);
  Py_CLEAR(v->outputs);
  Py_CLEAR(v->primals);
  delete v->state;
  PyObject_GC_Del(o);
}
int vjp_traverse(PyObject* o, visitproc visit, void* arg) {
  auto* v = reinterpret_cast<VjpObject*>(o);
  Py_VISIT(v->outputs);
  Py_VISIT(v->primals);
  return 0;
}

// (vjp_fn, output) -> the Jacobian of a function of one tensor with one tensor for its output: every row of a basis pulled
// back as one batch
PyObject* jacobian(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || Py_TYPE(args[0]) != &VjpType || !is_tensor(args[1]))
      type_error("_func_jacobian: takes (vjp_fn, output)");
    VjpObject::State& s = *reinterpret_cast<VjpObject*>(args[0])->state;
    if (s.roots.size() != 1 || s.aliases.edges.size() != 1) Py_RETURN_NOTIMPLEMENTED;
    const Storage& like = s.like[0];
    const Shape of = logical_sizes(like.sizes(), s.levels[0]);
    const Shape in = logical_sizes(s.aliases.tensors[0]->sizes(), s.aliases.levels[0]);
    Dims whole = of;
    for (std::int64_t d : in) whole.push_back(d);
    const std::int64_t rows = product(of);
    if (!rows || !s.roots[0].node) {
      // Nothing to pull back; of every sample the same zeros.
      return wrap(wiring::wrap(zeros_storage(whole, s.aliases.tensors[0]->dtype())));
    }
    // The identity over the elements of one sample, the same for all.
    Storage eye = zeros_storage({rows, rows}, like.dtype());
    fill_diagonal(eye);
    const int batches = batch::count(s.levels[0]);
    Dims sizes{rows};
    for (int i = 0; i < batches; ++i) sizes.push_back(1);
    for (std::int64_t d : of) sizes.push_back(d);
    TensorRef seed = wiring::wrap(ops::reshape(eye, sizes));
    if (batches) {
      Dims full{rows};
      for (std::int64_t d : like.sizes()) full.push_back(d);
      seed = ops::expand(seed, full);
    }
    const bool follow = s.followed && modes::grad_enabled();
    Derivative scope;
    LevelScope level(rows, batch::Randomness::Error, false);
    const TensorRef seeds[] = {batch::cover(seed, batch::Levels(1) << (level.number() - 1))};
    std::vector<TensorRef> grads = pull_back(s.aliases, {s.roots.data(), 1}, seeds, true, follow);
    TensorRef out = output_wrapped(std::move(grads[0]), s.aliases.levels[0]);
    return wrap(ops::reshape(batch::remove_dim(out, level.number(), rows, 0), whole));
  });
}

template <class F>
PyCFunction fastcall(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyMethodDef functions[] = {{"_func_vjp", fastcall(run_vjp), METH_FASTCALL, nullptr},
                           {"_func_jacobian", fastcall(jacobian), METH_FASTCALL, nullptr},
                           {}};

}  // namespace

void init_func_vjp(PyObject* module) {
  make_callable(VjpType, "tensorplay.func.Pullback", sizeof(VjpObject), offsetof(VjpObject, call), 0);
  VjpType.tp_dealloc = vjp_dealloc;
  VjpType.tp_traverse = vjp_traverse;
  ready(VjpType);
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
