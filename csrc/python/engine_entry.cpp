// backward() and grad(): every check of their arguments, then one engine pass. Knows no op and no node by name.
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ops/wiring.h"
#include "python/function.h"
#include "python/graph_objects.h"
#include "python/tensor_type.h"
#include "transforms/batched.h"

namespace tp::python {
namespace {

/// A tensor or a GradientEdge (a named tuple of node, output number and what keeps it alive).
struct Target {
  const TensorRef* tensor = nullptr;  // null for an edge
  Edge edge;
};

bool is_edge(PyObject* o) {
  return PyTuple_Check(o) && !PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) >= 2 && is_node(PyTuple_GET_ITEM(o, 0)) &&
      PyLong_Check(PyTuple_GET_ITEM(o, 1));
}
bool is_target(PyObject* o) { return is_tensor(o) || is_edge(o); }

Edge edge_from(PyObject* o) {
  const long nr = PyLong_AsLong(PyTuple_GET_ITEM(o, 1));
  NodeRef n = node_of(PyTuple_GET_ITEM(o, 0));
  if (nr < 0 || !n || std::uint64_t(nr) >= n->num_outputs())
    index_error("GradientEdge: output number ", nr, " is out of range for ",
                n ? n->name() : std::string("an empty context"));
  return {std::move(n), std::uint32_t(nr)};
}

template <class F>
void each_item(const char* op, const char* name, PyObject* o, F&& f) {
  if (is_target(o)) return f(std::size_t(0), o);
  Owned fast(PySequence_Fast(o, ""));
  if (!fast) {
    PyErr_Clear();
    type_error(op, ": ", name, " must be a Tensor, a GradientEdge or a sequence of them, not ", Py_TYPE(o)->tp_name);
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
  for (Py_ssize_t i = 0; i < n; ++i) f(std::size_t(i), PySequence_Fast_GET_ITEM(fast.get(), i));
}

struct Roots {
  InlineVec<Edge, 2> edges;
  InlineVec<TensorRef, 2> tensors;  // null for edges
  InlineVec<TensorRef, 2> seeds;
  batch::Levels levels = 0;  // of all roots
};

void add_root(const char* op, Roots& r, std::size_t i, PyObject* o) {
  if (is_tensor(o)) {
    const TensorRef& t = tensor_of(o);
    if (!t->requires_grad())
      runtime_error(op, ": element ", i, " of tensors does not require grad and does not have a grad_fn");
    r.edges.push_back(gradient_edge(t));
    // A Function may ask for a gradient of another dtype than its output has: there the node decides.
    r.tensors.push_back(python_node_object(r.edges.back().node.get()) && !t->is_batched() ? TensorRef() : t);
    if (TP_UNLIKELY(t->is_batched())) r.levels |= batch::levels_of(t);
  } else if (is_edge(o)) {
    r.edges.push_back(edge_from(o));
    r.tensors.emplace_back();
  } else {
    type_error(op, ": element ", i, " of tensors must be a Tensor or a GradientEdge, not ", Py_TYPE(o)->tp_name);
  }
}

void check_implicit(const char* op, const Roots& r, std::size_t i) {
  Dtype dtype;
  std::int64_t numel;
  if (r.tensors[i]) {
    dtype = r.tensors[i]->dtype();
    numel = r.tensors[i]->numel();
  } else {
    const Storage like = r.edges[i].node->output_like(r.edges[i].nr);
    dtype = like.dtype();
    numel = like.numel();
  }
  if (numel != 1)
    runtime_error(op, ": grad can be implicitly created only for scalar outputs, output ", i, " has ",
                  r.tensors[i] ? r.tensors[i]->sizes() : r.edges[i].node->output_like(r.edges[i].nr).sizes(),
                  "; pass a gradient of that size");
  if (is_complex(dtype))
    runtime_error(op, ": grad can be implicitly created only for real scalar outputs, output ", i, " is ",
                  dtype_name(dtype));
}

void check_seed(const char* op, const Roots& r, std::size_t i, const TensorRef& seed, bool batched) {
  const Storage like = r.tensors[i] ? r.tensors[i]->storage() : r.edges[i].node->output_like(r.edges[i].nr);
  if (!batched && !(seed->sizes() == like.sizes()))
    runtime_error(op, ": Mismatch in shape: grad_output[", i, "] has a shape of ", seed->sizes(), " and output[", i,
                  "] has a shape of ", like.sizes(), ".");
  if (is_complex(seed->dtype()) != is_complex(like.dtype()))
    runtime_error(op,
                  ": For complex Tensors, both grad_output and output are required to have the same dtype. "
                  "Mismatch in dtype: grad_output[",
                  i, "] has a dtype of ", dtype_name(seed->dtype()), " and output[", i, "] has a dtype of ",
                  dtype_name(like.dtype()), ".");
}

/// The pass runs on physical tensors: there a batched root has its batch dimensions, and so has its gradient. Samples are
/// independent, so ones for all of them give each its own gradient.
void to_physical(Roots& r) {
  if (TP_LIKELY(!r.levels)) return;
  for (std::size_t i = 0; i < r.edges.size(); ++i) {
    TensorRef& t = r.tensors[i];
    if (!t || !t->is_batched()) continue;
    const batch::Levels own = batch::levels_of(t);
    const TensorRef p = batch::physical(t);
    r.seeds[i] = r.seeds[i] ? batch::peel(r.seeds[i], own) : wiring::wrap(ones_storage(p->sizes(), p->dtype()));
    t = p;
  }
}

void add_seeds(const char* op, Roots& r, PyObject* gradients) {
  const std::size_t n = r.edges.size();
  if (!gradients || gradients == Py_None) {
    for (std::size_t i = 0; i < n; ++i) {
      check_implicit(op, r, i);
      r.seeds.emplace_back();
    }
    return;
  }
  const auto add = [&](std::size_t i, PyObject* g) {
    if (g == Py_None) {
      if (i < n) check_implicit(op, r, i);
      r.seeds.emplace_back();
    } else if (is_tensor(g)) {
      if (i < n) check_seed(op, r, i, tensor_of(g), false);
      r.seeds.push_back(tensor_of(g));
    } else {
      type_error(op, ": gradients can be either Tensors or None, element ", i, " is ", Py_TYPE(g)->tp_name);
    }
  };
  if (is_tensor(gradients)) {
    add(0, gradients);
  } else {
    Owned fast(PySequence_Fast(gradients, ""));
    if (!fast) {
      PyErr_Clear();
      type_error(op, ": gradients can be either Tensors or None, not ", Py_TYPE(gradients)->tp_name);
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
      add(std::size_t(i), PySequence_Fast_GET_ITEM(fast.get(), i));
  }
  if (r.seeds.size() != n) runtime_error(op, ": got ", n, " tensors and ", r.seeds.size(), " gradients");
}

struct Inputs {
  InlineVec<Edge, 4> edges;
  InlineVec<TensorRef, 4> tensors;  // physical
  InlineVec<batch::Levels, 4> levels;
};

void add_input(const char* op, Inputs& in, std::size_t i, PyObject* o) {
  if (is_tensor(o)) {
    const TensorRef& t = tensor_of(o);
    if (!t->requires_grad())
      runtime_error(op, ": One of the differentiated Tensors does not require grad (input ", i, ")");
    in.edges.push_back(gradient_edge(t));
    in.tensors.push_back(batch::physical(t));
    in.levels.push_back(batch::levels_of(t));
  } else if (is_edge(o)) {
    in.edges.push_back(edge_from(o));
    in.tensors.emplace_back();
    in.levels.push_back(0);
  } else {
    runtime_error(op, ": input ", i, " must be a Tensor or a GradientEdge, not ", Py_TYPE(o)->tp_name);
  }
}

/// A mapping that is no plain dict: in what order, and as what, its gradients would come back is not said.
bool is_other_mapping(PyObject* o) {
  if (is_target(o) || PyTuple_Check(o) || PyList_Check(o)) return false;
  Owned mapping = import_attr("collections.abc", "Mapping");
  const int is = PyObject_IsInstance(o, mapping.get());
  if (is < 0) host_error();
  return is;
}

bool truth(const char* op, const char* name, PyObject* o, bool absent) {
  if (!o || o == Py_None) return absent;
  if (PyBool_Check(o)) return o == Py_True;
  const int v = number_kind(o) != Number::None ? PyObject_IsTrue(o) : -1;
  if (v < 0) type_error(op, ": ", name, " must be a bool, not ", Py_TYPE(o)->tp_name);
  return v;
}

void refuse_in_transform(const char* op) {
  if (TP_UNLIKELY(modes::any(modes::kDerivative) || modes::open_transforms))
    runtime_error(
        op,
        "() called inside a func transform (grad, vjp, jvp, vmap, ...). This is not supported: use func.grad or "
        "func.vjp instead, or call it outside");
}

// ---- the pass that runs on this thread, as Python sees it ------------------------------------------------------------
class PassScope {
 public:
  PassScope(std::span<const Edge> roots, std::span<const Edge> inputs)
      : roots_(roots), inputs_(inputs), id_(++last_id), outer_(current) {
    current = this;
  }
  ~PassScope() { current = outer_; }
  PassScope(const PassScope&) = delete;
  std::uint64_t id() const { return id_; }
  /// backward() without inputs=: every leaf that is reached gets its .grad.
  bool fills_leaves() const { return inputs_.empty(); }
  /// Whether a gradient may reach `n` on its way to what is asked for: the graph is walked once, when somebody first asks.
  bool reaches(Node* n) {
    if (!walked_) walk();
    return reached_.count(n);
  }
  static thread_local PassScope* current;

 private:
  void walk() {
    walked_ = true;
    std::unordered_map<Node*, std::vector<Node*>> users;
    std::vector<Node*> next;
    const auto visit = [&](Node* node) {
      if (node && reached_.insert(node).second) next.push_back(node);
    };
    for (const Edge& e : roots_) visit(e.node.get());
    while (!next.empty()) {
      Node* at = next.back();
      next.pop_back();
      for (const Edge& e : at->next_edges()) {
        visit(e.node.get());
        if (e.node && !inputs_.empty()) users[e.node.get()].push_back(at);
      }
    }
    if (inputs_.empty()) return;
    const std::unordered_set<Node*> all = std::exchange(reached_, {});
    for (const Edge& e : inputs_)
      if (all.count(e.node.get())) visit(e.node.get());
    while (!next.empty()) {
      Node* at = next.back();
      next.pop_back();
      for (Node* user : users[at]) visit(user);
    }
  }

  static thread_local std::uint64_t last_id;
  std::span<const Edge> roots_, inputs_;
  std::uint64_t id_;
  PassScope* outer_;
  bool walked_ = false;
  std::unordered_set<Node*> reached_;
};
thread_local PassScope* PassScope::current = nullptr;
thread_local std::uint64_t PassScope::last_id = 0;

template <class T, std::size_t N>
std::span<const T> view(const InlineVec<T, N>& v) {
  return {v.data(), v.size()};
}

// ---- grad ------------------------------------------------------------------------------------------------------------
enum { kOutputs, kInputs, kGradOutputs, kRetain, kCreate, kOnlyInputs, kAllowUnused, kBatched, kMaterialize };
constexpr Param kGradParams[] = {{"outputs", Kind::Any},
                                 {"inputs", Kind::Any},
                                 {"grad_outputs", Kind::Any, true},
                                 {"retain_graph", Kind::Any, true},
                                 {"create_graph", Kind::Any, true},
                                 {"only_inputs", Kind::Any, true},
                                 {"allow_unused", Kind::Any, true},
                                 {"is_grads_batched", Kind::Any, true},
                                 {"materialize_grads", Kind::Any, true}};
const Spec kGradSpec{
    "grad",
    "grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, "
    "allow_unused=None, is_grads_batched=False, materialize_grads=False) -> tuple",
    kGradParams};

PyObject* grad(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&]() -> PyObject* {
    Slots<9> a;
    parse(kGradSpec, a, nullptr, args, n, kw);
    const bool create = truth("grad", "create_graph", a[kCreate], false);
    const bool retain = truth("grad", "retain_graph", a[kRetain], create);
    const bool materialize = truth("grad", "materialize_grads", a[kMaterialize], false);
    if (materialize && a.given(kAllowUnused) && !truth("grad", "allow_unused", a[kAllowUnused], true))
      value_error(
          "grad: Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
          "allow_unused=False.");
    const bool allow_unused = truth("grad", "allow_unused", a[kAllowUnused], materialize);
    if (!truth("grad", "only_inputs", a[kOnlyInputs], true) &&
        PyErr_WarnEx(PyExc_FutureWarning, "only_inputs argument is deprecated and is ignored now (defaults to True)",
                     1) < 0)
      return nullptr;
    if (truth("grad", "is_grads_batched", a[kBatched], false)) {
      Owned f = import_attr("tensorplay.autograd._batched", "grad");
      return PyObject_CallFunction(f.get(), "OOOOOOO", a[kOutputs], a[kInputs],
                                   a[kGradOutputs] ? a[kGradOutputs] : Py_None, retain ? Py_True : Py_False,
                                   create ? Py_True : Py_False, allow_unused ? Py_True : Py_False,
                                   materialize ? Py_True : Py_False);
    }

    Roots roots;
    each_item("grad", "outputs", a[kOutputs], [&](std::size_t i, PyObject* o) { add_root("grad", roots, i, o); });
    Inputs inputs;
    Owned keys;
    PyObject* wanted = a[kInputs];
    Owned values;
    if (PyDict_CheckExact(wanted)) {
      keys = Owned(PyDict_Keys(wanted));
      values = Owned(PyDict_Values(wanted));
      wanted = values.get();
    } else if (is_other_mapping(wanted)) {
      type_error("grad: inputs must be a Tensor, a sequence or a dict, not ", Py_TYPE(wanted)->tp_name);
    }
    each_item("grad", "inputs", wanted, [&](std::size_t i, PyObject* o) {
      if (materialize && is_edge(o))
        runtime_error("grad: materialize_grads cannot be used when the given input is a GradientEdge");
      add_input("grad", inputs, i, o);
    });
    if (inputs.edges.empty()) runtime_error("grad: inputs cannot be empty");
    add_seeds("grad", roots, a[kGradOutputs]);
    to_physical(roots);
    for (std::size_t i = 0; i < inputs.levels.size(); ++i)
      if (TP_UNLIKELY(roots.levels & ~inputs.levels[i]) && inputs.tensors[i])
        runtime_error("grad: input ", i,
                      " is the same for all samples of a vmap that the outputs are batched by, so its gradient "
                      "would be summed over them; use tensorplay.func.grad, or expand it inside the mapped function");

    PassScope scope(view(roots.edges), view(inputs.edges));
    std::vector<TensorRef> result = Engine::run({.roots = view(roots.edges),
                                                 .seeds = view(roots.seeds),
                                                 .root_tensors = view(roots.tensors),
                                                 .inputs = view(inputs.edges),
                                                 .keep_graph = retain,
                                                 .create_graph = create,
                                                 .accumulate = false});
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result[i]) {
        result[i] = batch::cover(result[i], inputs.levels[i]);
        continue;
      }
      if (!allow_unused)
        runtime_error(
            "grad: the differentiated Tensor at index ", i,
            " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
      if (materialize) {
        result[i] = wiring::wrap(zeros_storage(inputs.tensors[i]->sizes(), inputs.tensors[i]->dtype()));
        if (create) result[i]->set_requires_grad(true);
        result[i] = batch::wrap(std::move(result[i]), inputs.levels[i]);
      }
    }
    if (!keys) return wrap_list(result);
    Owned dict(PyDict_New());
    for (std::size_t i = 0; i < result.size(); ++i) {
      Owned g(wrap(result[i]));
      if (!g || PyDict_SetItem(dict.get(), PyList_GET_ITEM(keys.get(), Py_ssize_t(i)), g.get()) < 0) return nullptr;
    }
    return dict.release();
  });
}

// ---- backward --------------------------------------------------------------------------------------------------------
constexpr Param kBackwardParams[] = {{"tensors", Kind::Any},
                                     {"grad_tensors", Kind::Any, true},
                                     {"retain_graph", Kind::Any, true},
                                     {"create_graph", Kind::Any, true},
                                     {"grad_variables", Kind::Any, true},
                                     {"inputs", Kind::Any, true}};
const Spec kBackwardSpec{
    "backward",
    "backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, "
    "inputs=None) -> None",
    kBackwardParams};

PyObject* backward(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&]() -> PyObject* {
    Slots<6> a;
    parse(kBackwardSpec, a, nullptr, args, n, kw);
    PyObject* gradients = a[1];
    if (a.given(4)) {
      if (PyErr_WarnEx(PyExc_FutureWarning, "`grad_variables` is deprecated. Use `grad_tensors` instead.", 1) < 0)
        return nullptr;
      if (a.given(1))
        runtime_error(
            "backward: `grad_tensors` and `grad_variables` (deprecated) arguments both passed to backward(). "
            "Please only use `grad_tensors`.");
      gradients = a[4];
    }
    return run_backward(a[0], gradients, a[2], a[3], a[5]);
  });
}

PyObject* engine_running(PyObject*, PyObject*) { return PyBool_FromLong(Engine::running()); }
PyObject* queue_callback(PyObject*, PyObject* f) {
  return guarded([&]() -> PyObject* {
    if (!PyCallable_Check(f)) type_error("queue_callback: expected a function, not ", Py_TYPE(f)->tp_name);
    // std::function copies; the reference is dropped with the last copy.
    std::shared_ptr<PyObject> own(Owned::share(f).release(), [](PyObject* p) { Py_DECREF(p); });
    Engine::queue_callback([own] {
      Owned r(PyObject_CallNoArgs(own.get()));
      if (!r) host_error();
    });
    Py_RETURN_NONE;
  });
}
PyObject* pass_id(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(PassScope::current ? PassScope::current->id() : 0);
}
PyObject* pass_runs(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_node(o)) type_error("_pass_runs: expected a node, not ", Py_TYPE(o)->tp_name);
    NodeRef n = node_of(o);
    return PyBool_FromLong(PassScope::current && n && PassScope::current->reaches(n.get()));
  });
}
PyObject* pass_fills_leaves(PyObject*, PyObject*) {
  return PyBool_FromLong(PassScope::current && PassScope::current->fills_leaves());
}
PyObject* current_node(PyObject*, PyObject*) {
  return guarded([&] { return wrap_node(const_cast<Node*>(Engine::current_node())); });
}

PyMethodDef functions[] = {
    {"backward", fast(backward), METH_FASTCALL | METH_KEYWORDS,
     "backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, "
     "inputs=None)\n--\n\n"
     "Accumulates the gradients of `tensors` into the .grad of the leaves they were computed from."},
    {"grad", fast(grad), METH_FASTCALL | METH_KEYWORDS,
     "grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, "
     "allow_unused=None, "
     "is_grads_batched=False, materialize_grads=False)\n--\n\nThe gradients of `outputs` with respect to `inputs`; "
     ".grad is "
     "left alone."},
    {"_pass_id", pass_id, METH_NOARGS, nullptr},
    {"_pass_runs", pass_runs, METH_O, nullptr},
    {"_pass_fills_leaves", pass_fills_leaves, METH_NOARGS, nullptr},
    {"_engine_running", engine_running, METH_NOARGS,
     "_engine_running()\n--\n\nWhether a backward pass runs on this thread."},
    {"_queue_callback", queue_callback, METH_O,
     "_queue_callback(f)\n--\n\nCalls f at the end of the running backward pass."},
    {"_current_graph_node", current_node, METH_NOARGS, "_current_graph_node()\n--\n\nThe node that runs now, or None."},
    {}};

}  // namespace

PyObject* run_backward(PyObject* tensors, PyObject* gradients, PyObject* retain_graph, PyObject* create_graph,
                       PyObject* inputs) {
  refuse_in_transform("backward");
  const bool create = truth("backward", "create_graph", create_graph, false);
  const bool retain = truth("backward", "retain_graph", retain_graph, create);
  Roots roots;
  each_item("backward", "tensors", tensors, [&](std::size_t i, PyObject* o) { add_root("backward", roots, i, o); });
  add_seeds("backward", roots, gradients);
  to_physical(roots);
  Inputs wanted;
  Owned values;
  if (inputs && inputs != Py_None) {
    if (PyDict_Check(inputs)) {
      values = Owned(PyDict_Values(inputs));
      inputs = values.get();
    }
    each_item("backward", "inputs", inputs, [&](std::size_t i, PyObject* o) {
      Inputs one;
      add_input("backward", one, i, o);
      // The same input named twice still accumulates once.
      for (const Edge& e : wanted.edges)
        if (e.node == one.edges[0].node && e.nr == one.edges[0].nr) return;
      wanted.edges.push_back(std::move(one.edges[0]));
      wanted.tensors.push_back(std::move(one.tensors[0]));
    });
    if (wanted.edges.empty()) runtime_error("backward: inputs argument to backward() cannot be empty");
  }
  if (roots.edges.size() == 0) Py_RETURN_NONE;
  if (create &&
      PyErr_WarnEx(
          PyExc_UserWarning,
          "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
          "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to "
          "avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters "
          "to None after use to break the cycle and avoid the leak.",
          1) < 0)
    return nullptr;
  PassScope scope(view(roots.edges), view(wanted.edges));
  Engine::run({.roots = view(roots.edges),
               .seeds = view(roots.seeds),
               .root_tensors = view(roots.tensors),
               .inputs = view(wanted.edges),
               .keep_graph = retain,
               .create_graph = create,
               .accumulate = true,
               .input_tensors = view(wanted.tensors)});
  Py_RETURN_NONE;
}

void init_engine(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
