// Python objects of C++ nodes: one class per kind, one object per node while it lives; saved values for inspection.
#include "autograd/accumulate_grad.h"
#include "python/graph_objects.h"
#include "python/saved_hooks.h"
#include "python/tensor_type.h"

#include <cstring>
#include <string_view>

namespace tp::python {

PyTypeObject NodeType = {};

namespace {

NodeObject* as_node(PyObject* o) { return reinterpret_cast<NodeObject*>(o); }
PyObject* node_classes = nullptr;  // name -> class

Node& live(PyObject* self, const char* what) {
  Node* n = as_node(self)->node;
  if (!n) runtime_error(what, ": this context belongs to no recorded operation");
  return *n;
}

void node_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  NodeObject* o = as_node(self);
  if (o->weak) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  if (Node* n = o->node) {
    o->node = nullptr;
    if (n->meta() && n->meta()->host_object == self) n->meta()->host_object = nullptr;
    Node::release(n);
  }
  type->tp_free(self);
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(type);
}
int node_traverse(PyObject* self, visitproc visit, void* arg) {
  NodeObject* o = as_node(self);
  Py_VISIT(o->dict);
  if (Py_TYPE(self)->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_VISIT(Py_TYPE(self));
  if (o->node && o->node->use_count() == 1) return visit_node(o->node, visit, arg);
  return 0;
}
int node_clear(PyObject* self) {
  Py_CLEAR(as_node(self)->dict);
  return 0;
}

PyTypeObject* class_named(const std::string& full) {
  const std::size_t colon = full.rfind(':');
  const std::string name = colon == std::string::npos ? full : full.substr(colon + 1);
  Owned key(PyUnicode_FromString(name.c_str()));
  if (PyObject* known = PyDict_GetItem(node_classes, key.get())) return reinterpret_cast<PyTypeObject*>(known);
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                                {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                                {0, nullptr}};
  const std::string* qualified = new std::string("tensorplay.autograd." + name);  // the class keeps pointing to it
  PyType_Spec spec{qualified->c_str(), 0, 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  Owned bases(PyTuple_Pack(1, &NodeType));
  Owned type(PyType_FromSpecWithBases(&spec, bases.get()));
  if (!type || PyDict_SetItem(node_classes, key.get(), type.get()) < 0) host_error();
  return reinterpret_cast<PyTypeObject*>(type.get());
}

PyObject* node_repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", Py_TYPE(self)->tp_name, static_cast<void*>(self));
}
PyObject* node_name(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Node* n = as_node(self)->node;
    return PyUnicode_FromString(n ? n->name().c_str() : Py_TYPE(self)->tp_name);
  });
}

PyObject* next_functions(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node* n = as_node(self)->node;
    if (!n) return PyTuple_New(0);
    std::span<Edge> edges = n->next_edges();
    Owned t(PyTuple_New(Py_ssize_t(edges.size())));
    if (!t) return nullptr;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      PyObject* pair = Py_BuildValue("(NI)", wrap_node(edges[i].node.get()), edges[i].nr);
      if (!pair) return nullptr;
      PyTuple_SET_ITEM(t.get(), Py_ssize_t(i), pair);
    }
    return t.release();
  });
}
PyObject* metadata(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    NodeMeta& meta = live(self, "metadata").ensure_meta();
    if (!meta.host_metadata) {
      Owned made(PyDict_New());
      if (!made) return nullptr;
      if (!meta.anomaly.empty()) {  // what anomaly mode noted, under PyTorch's name and in its form
        Owned lines(Py_BuildValue("[s]", meta.anomaly.c_str()));
        if (!lines || PyDict_SetItemString(made.get(), "traceback_", lines.get()) < 0) return nullptr;
      }
      meta.host_metadata = made.release();
    }
    PyObject* d = static_cast<PyObject*>(meta.host_metadata);
    Py_INCREF(d);
    return d;
  });
}
PyObject* register_hook(PyObject* self, PyObject* f) {
  return guarded([&] { return add_hook(live(self, "register_hook"), HookKind::Post, 0, f); });
}
PyObject* register_prehook(PyObject* self, PyObject* f) {
  return guarded([&] { return add_hook(live(self, "register_prehook"), HookKind::Pre, 0, f); });
}
PyObject* sequence_number(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(live(self, "_sequence_nr").sequence_nr()); });
}
PyObject* requires_grad(PyObject*, void*) { Py_RETURN_TRUE; }
PyObject* variable(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    auto* a = dynamic_cast<AccumulateGrad*>(as_node(self)->node);
    if (!a) {
      PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", Py_TYPE(self)->tp_name);
      return nullptr;
    }
    return wrap(a->leaf());
  });
}
PyObject* input_metadata(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node& n = live(self, "_input_metadata");
    Owned t(PyTuple_New(n.num_outputs()));
    for (std::uint32_t i = 0; i < n.num_outputs(); ++i) {
      const Storage like = n.output_like(i);
      PyObject* pair = Py_BuildValue("(NN)", wrap_size(like.sizes()), wrap(like.dtype()));
      if (!pair) return nullptr;
      PyTuple_SET_ITEM(t.get(), i, pair);
    }
    return t.release();
  });
}

PyObject* node_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Node& n = live(self, "call");
    if (kwargs && PyDict_GET_SIZE(kwargs)) type_error(n.name(), ": takes gradients only, no keyword arguments");
    std::vector<TensorRef> grads;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* g = PyTuple_GET_ITEM(args, i);
      if (g != Py_None && !is_tensor(g))
        type_error(n.name(), ": gradient ", i, " must be Tensor or None, not ", Py_TYPE(g)->tp_name);
      grads.push_back(g == Py_None ? TensorRef() : tensor_of(g));
    }
    NodeRef keep = node_of(self);
    GraphGradVec result = call_node(n, grads);
    if (result.size() == 1) return wrap(result[0]);
    return wrap_list(std::span<const TensorRef>(result.data(), result.size()));
  });
}

// ---- saved values ----------------------------------------------------------------------------------------------------
struct SavedObject {
  PyObject_HEAD
  PyObject* node;
  std::size_t slot;
};
PyTypeObject SavedType = {};

void saved_dealloc(PyObject* o) {
  Py_XDECREF(reinterpret_cast<SavedObject*>(o)->node);
  PyObject_Free(o);
}
TensorRef saved_value(Node& n, std::size_t k) {
  SavedSlot s = n.saved_at(k);
  if (s.value->released()) freed_error(n, s.name);
  if (!s.value->saved()) return {};
  s.value->check(n, s.name);
  return s.value->tensor(n, s.name, s.edge);
}
PyObject* saved_unpack(PyObject* self, PyObject*) {
  return guarded([&] {
    auto* o = reinterpret_cast<SavedObject*>(self);
    return wrap(saved_value(live(o->node, "SavedTensor"), o->slot));
  });
}
PyObject* saved_register_hooks(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    auto* o = reinterpret_cast<SavedObject*>(self);
    if (n != 2 || !PyCallable_Check(args[0]) || !PyCallable_Check(args[1]))
      type_error("register_hooks: takes two callables, pack_hook and unpack_hook");
    Node& node = live(o->node, "register_hooks");
    SavedSlot s = node.saved_at(o->slot);
    if (s.value->released()) runtime_error("register_hooks: the saved tensor has already been freed");
    if (!s.value->plain())
      runtime_error("register_hooks: calling register_hooks on a saved tensor with hooks already registered");
    TensorRef t = saved_value(node, o->slot);
    if (!t) runtime_error("register_hooks: nothing was saved in '", s.name, "'");
    // Without its history: a hook that keeps what it is given must not close a cycle through this node.
    if (s.output) t = TensorImpl::make(t->storage());
    s.value->pack(pack_with(args[0], args[1], t));
    Py_RETURN_NONE;
  });
}
PyMethodDef saved_methods[] = {
    {"unpack", saved_unpack, METH_NOARGS, "unpack($self, /)\n--\n\nThe saved tensor with its history."},
    {"register_hooks", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(saved_register_hooks)), METH_FASTCALL,
     "register_hooks($self, pack_hook, unpack_hook, /)\n--\n\nStores pack_hook(tensor) in place of the tensor."},
    {}};

// `_saved_x` gives the tensor, `_raw_saved_x` a SavedTensor; several slots of one name give a tuple. Null: no such slot.
PyObject* saved_attribute(PyObject* self, const char* name) {
  const bool raw = !std::strncmp(name, "_raw_saved_", 11);
  if (!raw && std::strncmp(name, "_saved_", 7) != 0) return nullptr;
  std::string_view slot = name + (raw ? 11 : 7);
  Node* n = as_node(self)->node;
  if (!n) return nullptr;
  std::vector<std::size_t> found;
  for (std::size_t k = 0; k < n->saved_count(); ++k)
    if (n->saved_at(k).name == slot) found.push_back(k);
  if (found.empty()) {
    // The names PyTorch gives them in its documentation.
    slot = slot == "self" ? "input" : slot == "result" ? "out" : "";
    for (std::size_t k = 0; k < n->saved_count(); ++k)
      if (n->saved_at(k).name == slot) found.push_back(k);
  }
  if (found.empty()) return nullptr;
  const auto one = [&](std::size_t k) -> PyObject* {
    if (!raw) return wrap(saved_value(*n, k));
    if (n->saved_at(k).value->released()) freed_error(*n, n->saved_at(k).name);
    SavedObject* o = PyObject_New(SavedObject, &SavedType);
    if (!o) host_error();
    Py_INCREF(self);
    o->node = self;
    o->slot = k;
    return reinterpret_cast<PyObject*>(o);
  };
  if (found.size() == 1 && slot != "tensors") return one(found[0]);
  Owned t(PyTuple_New(Py_ssize_t(found.size())));
  for (std::size_t i = 0; i < found.size(); ++i) PyTuple_SET_ITEM(t.get(), Py_ssize_t(i), one(found[i]));
  return t.release();
}

// dir(): with the names of what the node saved, which its class does not know.
PyObject* node_dir(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const Owned plain = import_attr("builtins", "object");
    const Owned inherited(PyObject_CallMethod(plain.get(), "__dir__", "O", self));
    Owned names(inherited ? PySet_New(inherited.get()) : nullptr);
    if (!names) return nullptr;
    Node* n = as_node(self)->node;
    for (std::size_t k = 0; n && k < n->saved_count(); ++k)
      for (const char* prefix : {"_saved_", "_raw_saved_"}) {
        const Owned name(PyUnicode_FromString((prefix + std::string(n->saved_at(k).name)).c_str()));
        if (!name || PySet_Add(names.get(), name.get()) < 0) return nullptr;
      }
    return PySequence_List(names.get());
  });
}

PyMethodDef node_methods[] = {
    {"__dir__", node_dir, METH_NOARGS, nullptr},
    {"name", node_name, METH_NOARGS, "name($self, /)\n--\n\nThe name of the backward function."},
    {"register_hook", register_hook, METH_O,
     "register_hook($self, fn, /)\n--\n\nCalls fn(grad_inputs, grad_outputs) after the node ran; may return other "
     "grad_inputs."},
    {"register_prehook", register_prehook, METH_O,
     "register_prehook($self, fn, /)\n--\n\nCalls fn(grad_outputs) before the node runs; may return others."},
    {"_sequence_nr", sequence_number, METH_NOARGS, "_sequence_nr($self, /)\n--\n\nWhen the node was made, as a count."},
    {}};
PyGetSetDef node_attributes[] = {
    {"next_functions", next_functions, nullptr, "Pairs (node, output number) the gradients go to.", nullptr},
    {"metadata", metadata, nullptr, "A dict for notes about the node.", nullptr},
    {"requires_grad", requires_grad, nullptr, "Always True: nodes exist where gradients are wanted.", nullptr},
    {"variable", variable, nullptr, "AccumulateGrad only: the leaf.", nullptr},
    {"_input_metadata", input_metadata, nullptr, "Sizes and dtype of each forward output.", nullptr},
    {}};

}  // namespace

PyObject* node_getattr(PyObject* self, PyObject* name) {
  PyObject* v = PyObject_GenericGetAttr(self, name);
  if (v || !PyErr_ExceptionMatches(PyExc_AttributeError)) return v;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  bool found = false;
  v = guarded([&]() -> PyObject* {
    const char* text = PyUnicode_AsUTF8(name);
    PyObject* r = text ? saved_attribute(self, text) : nullptr;
    found = r != nullptr;
    return r;
  });
  if (found || PyErr_Occurred()) {
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    return v;
  }
  PyErr_Restore(type, value, trace);
  return nullptr;
}

PyObject* saved_tuple(Node& n) {
  Owned t(PyTuple_New(Py_ssize_t(n.saved_count())));
  if (!t) return nullptr;
  for (std::size_t k = 0; k < n.saved_count(); ++k) {
    PyObject* v = wrap(saved_value(n, k));
    if (!v) return nullptr;
    PyTuple_SET_ITEM(t.get(), Py_ssize_t(k), v);
  }
  return t.release();
}
PyObject* raw_saved_tuple(PyObject* self) {
  PyObject* t = saved_attribute(self, "_raw_saved_tensors");
  return t ? t : PyTuple_New(0);
}

PyObject* wrap_node(Node* n) {
  if (!n) Py_RETURN_NONE;
  if (PyObject* own = python_node_object(n)) {
    Py_INCREF(own);
    return own;
  }
  NodeMeta& meta = n->ensure_meta();
  if (meta.host_object) {
    PyObject* o = static_cast<PyObject*>(meta.host_object);
    Py_INCREF(o);
    return o;
  }
  PyTypeObject* type = class_named(n->name());
  NodeObject* o = PyObject_GC_New(NodeObject, type);
  if (!o) host_error();
  o->dict = nullptr;
  o->weak = nullptr;
  Node::retain(n);
  o->node = n;
  meta.host_object = o;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(o));
  return reinterpret_cast<PyObject*>(o);
}

NodeRef node_of(PyObject* o) {
  Node* n = as_node(o)->node;
  // A count on a context's node stands for a reference to the context.
  if (n && n->use_count() == 0) Py_INCREF(o);
  return NodeRef::share(n);
}

void init_nodes(PyObject* module) {
  node_classes = PyDict_New();
  host_metadata_free = [](void* p) { Py_XDECREF(static_cast<PyObject*>(p)); };

  NodeType.tp_name = "tensorplay.autograd.graph.Node";
  NodeType.tp_basicsize = sizeof(NodeObject);
  NodeType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  NodeType.tp_doc = "A node of the graph: the backward of one recorded operation.";
  NodeType.tp_weaklistoffset = offsetof(NodeObject, weak);
  NodeType.tp_dealloc = node_dealloc;
  NodeType.tp_traverse = node_traverse;
  NodeType.tp_clear = node_clear;
  NodeType.tp_free = PyObject_GC_Del;
  NodeType.tp_repr = node_repr;
  NodeType.tp_call = node_call;
  NodeType.tp_getattro = node_getattr;
  NodeType.tp_methods = node_methods;
  NodeType.tp_getset = node_attributes;
  ready(NodeType);
  add_object(module, "Node", reinterpret_cast<PyObject*>(&NodeType));

  SavedType.tp_name = "tensorplay.autograd.SavedTensor";
  SavedType.tp_basicsize = sizeof(SavedObject);
  SavedType.tp_flags = Py_TPFLAGS_DEFAULT;
  SavedType.tp_dealloc = saved_dealloc;
  SavedType.tp_methods = saved_methods;
  SavedType.tp_doc = "What a node keeps of one tensor for its backward.";
  ready(SavedType);
  add_object(module, "SavedTensor", reinterpret_cast<PyObject*>(&SavedType));
}

}  // namespace tp::python
