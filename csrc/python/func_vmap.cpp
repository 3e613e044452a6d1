// func.vmap: one level around one call, and which dimension of which argument it maps over. Knows no op.
#include "python/func_support.h"
#include "python/module.h"

#include <cstring>
#include <new>

namespace tp::python {
namespace {

using namespace func;

struct VmapObject {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* function;
  PyObject* dict;
  PyObject* in_dims;
  PyObject* out_dims;
  batch::Randomness randomness;
  bool basis;  // over the rows of a basis: nothing but tangents is batched
};
PyTypeObject VmapType = {};

std::string name_of(PyObject* f) {
  Owned name(PyObject_GetAttrString(f, "__name__"));
  if (name && PyUnicode_Check(name.get())) return PyUnicode_AsUTF8(name.get());
  PyErr_Clear();
  Owned repr(PyObject_Repr(f));
  if (!repr) host_error();
  return PyUnicode_AsUTF8(repr.get());
}
std::string text_of(PyObject* o) {
  Owned repr(PyObject_Repr(o));
  if (!repr) host_error();
  return PyUnicode_AsUTF8(repr.get());
}

bool is_dim(PyObject* o) { return o == Py_None || PyLong_Check(o); }

/// Calls f(leaf, dim) for every leaf and None of `tree`; `dims` is an int or None, or a tree whose leaves are, and which may end
/// higher up than `tree` does. False where the two do not fit.
template <class F>
bool each_with_dim(PyObject* tree, PyObject* dims, F&& f) {
  const TreeKind kind = tree_kind(tree);
  if (kind == TreeKind::Leaf || kind == TreeKind::None) {
    if (tree_kind(dims) != TreeKind::Leaf && dims != Py_None) return false;
    f(tree, dims);
    return true;
  }
  const TreeKind of_dims = tree_kind(dims);
  if (of_dims == TreeKind::Leaf || of_dims == TreeKind::None) {
    bool fits = true;
    each_child(kind, tree, [&](PyObject* child) { fits = fits && each_with_dim(child, dims, f); });
    return fits;
  }
  const bool sequence = kind != TreeKind::Dict && of_dims != TreeKind::Dict;
  if ((kind != of_dims && !sequence) || child_count(kind, tree) != child_count(of_dims, dims)) return false;
  bool fits = true;
  if (kind == TreeKind::Dict) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (fits && PyDict_Next(tree, &at, &key, &value)) {
      PyObject* dim = PyDict_GetItemWithError(dims, key);
      if (!dim && PyErr_Occurred()) host_error();
      fits = dim && each_with_dim(value, dim, f);
    }
    return fits;
  }
  for (Py_ssize_t i = 0; fits && i < PySequence_Fast_GET_SIZE(tree); ++i)
    fits = each_with_dim(PySequence_Fast_GET_ITEM(tree, i), PySequence_Fast_GET_ITEM(dims, i), f);
  return fits;
}

std::string head(const VmapObject* self) {
  return "vmap(" + name_of(self->function) + ", in_dims=" + text_of(self->in_dims) + ", ...)(<inputs>): ";
}

/// The dimension a leaf is mapped over, counted from the front; -1: none.
std::int64_t checked_dim(const VmapObject* self, PyObject* leaf, PyObject* dim) {
  if (dim == Py_None) return -1;
  if (!PyLong_Check(dim))
    value_error(head(self), "Got in_dim=", text_of(dim),
                " for an input but in_dim must be either an integer dimension or None.");
  const long d = PyLong_AsLong(dim);
  if (!is_tensor(leaf))
    value_error(head(self), "Got in_dim=", d, " for an input but the input is of type ", Py_TYPE(leaf)->tp_name,
                ". We cannot vmap over non-Tensor arguments, please use None as the respective in_dim");
  const int rank = tensor_of(leaf)->dim();
  if (d < -rank || d >= rank)
    value_error(head(self), "Got in_dim=", d, " for some input, but that input is a Tensor of dimensionality ", rank,
                " so expected in_dim to satisfy -", rank, " <= in_dim < ", rank, ".");
  return d < 0 ? d + rank : d;
}

struct Mapped {
  InlineVec<std::int64_t, 8> dims;  // one per leaf, -1: not mapped
  std::int64_t size = -1;
};

Mapped map_inputs(const VmapObject* self, PyObject* const* args, Py_ssize_t n) {
  PyObject* in_dims = self->in_dims;
  if (!PyLong_Check(in_dims) && !PyTuple_Check(in_dims))
    value_error(head(self),
                "expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
                "inputs, got: ",
                Py_TYPE(in_dims)->tp_name, ".");
  if (n == 0)
    value_error("vmap(", name_of(self->function),
                ")(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
                "are trying to vmap over a function with no inputs. The latter is unsupported.");
  Mapped m;
  bool fits = PyLong_Check(in_dims) || PyTuple_GET_SIZE(in_dims) == n;
  bool differ = false;
  InlineVec<std::int64_t, 8> sizes;
  for (Py_ssize_t i = 0; fits && i < n; ++i) {
    PyObject* dim = PyLong_Check(in_dims) ? in_dims : PyTuple_GET_ITEM(in_dims, i);
    fits = each_with_dim(args[i], dim, [&](PyObject* leaf, PyObject* d) {
      if (leaf == Py_None) return;  // an argument that is not given
      m.dims.push_back(checked_dim(self, leaf, d));
      if (m.dims.back() < 0) return;
      const std::int64_t length = tensor_of(leaf)->sizes()[int(m.dims.back())];
      if (m.size < 0) m.size = length;
      differ |= length != m.size;
      sizes.push_back(length);
    });
  }
  if (!fits) {
    std::string structure = "(";
    for (Py_ssize_t i = 0; i < n; ++i) structure += (i ? ", " : "") + describe_tree(args[i]);
    value_error(head(self), "in_dims is not compatible with the structure of `inputs`. in_dims has structure ",
                describe_tree(in_dims), " but inputs has structure ", structure + (n == 1 ? ",)" : ")"), ".");
  }
  if (m.size < 0) value_error("vmap: Expected at least one Tensor to vmap over");
  if (differ) {
    std::string all;
    for (std::int64_t s : sizes) all += (all.empty() ? "" : ", ") + std::to_string(s);
    value_error("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes [", all,
                "] for the mapped dimension");
  }
  return m;
}

Owned unbatched(const VmapObject* self, PyObject* leaf, PyObject* dim, int level, std::int64_t size) {
  if (dim == Py_None) {
    if (is_tensor(leaf) && (batch::levels_of(tensor_of(leaf)) >> (level - 1) & 1)) {
      const std::string name = name_of(self->function);
      value_error("vmap(", name, ", ...): `", name, "` can not return a BatchedTensor when out_dim is None");
    }
    return Owned::share(leaf);
  }
  if (!is_tensor(leaf)) {
    const std::string name = name_of(self->function);
    value_error("vmap(", name, ", ...): `", name, "` must only return Tensors, got type ", Py_TYPE(leaf)->tp_name,
                ". Did you mean to set out_dims= to None for output?");
  }
  const long d = PyLong_AsLong(dim);
  const int room = tensor_of(leaf)->dim() + 1;
  if (d < -room || d >= room)
    index_error("vmap: Dimension out of range: out_dims=", d, " for a result of sizes ", tensor_of(leaf)->sizes(),
                " (expected to be in range of [", -room, ", ", room - 1, "])");
  return Owned(wrap(batch::remove_dim(tensor_of(leaf), level, size, d)));
}

Owned unbatch_outputs(const VmapObject* self, PyObject* output, int level, std::int64_t size) {
  PyObject* dims = self->out_dims;
  if (TP_LIKELY(is_tensor(output) && is_dim(dims))) return unbatched(self, output, dims, level, size);
  if (is_tensor(output) && PyTuple_Check(dims) && PyTuple_GET_SIZE(dims) == 1) dims = PyTuple_GET_ITEM(dims, 0);
  std::vector<Owned> leaves;
  const bool fits = each_with_dim(output, dims, [&](PyObject* leaf, PyObject* dim) {
    Owned whole = unbatched(self, leaf, dim, level, size);
    if (leaf != Py_None) leaves.push_back(std::move(whole));
  });
  if (!fits)
    value_error("vmap(", name_of(self->function), ", ..., out_dims=", text_of(self->out_dims),
                ")(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has structure ",
                describe_tree(self->out_dims), " but outputs has structure ", describe_tree(output), ".");
  std::size_t next = 0;
  return map_tree(output, [&](PyObject*) { return std::move(leaves[next++]); });
}

Owned mapped_call(VmapObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const Mapped m = map_inputs(self, args, n);
  const Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  InlineVec<PyObject*, 8> call(std::size_t(total) + 1);
  for (Py_ssize_t i = 0; i < total; ++i) call[std::size_t(i) + 1] = args[i];
  LevelScope level(m.size, self->randomness, self->basis);
  InlineVec<Owned, 8> trees;
  std::size_t next = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    trees.push_back(map_tree(args[i], [&](PyObject* leaf) {
      const std::int64_t dim = m.dims[next++];
      if (dim < 0) return Owned::share(leaf);
      return Owned(wrap(batch::add_dim(tensor_of(leaf), dim, level.number())));
    }));
    call[std::size_t(i) + 1] = trees.back().get();
  }
  Owned output(
      PyObject_Vectorcall(self->function, call.data() + 1, std::size_t(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames));
  if (!output) host_error();
  return unbatch_outputs(self, output.get(), level.number(), m.size);
}

PyObject* vmap_call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  return guarded([&] {
    Owned r = mapped_call(reinterpret_cast<VmapObject*>(self), args, PyVectorcall_NARGS(nargsf), kwnames);
    if (!r) host_error();
    return r.release();
  });
}

// (func, in_dims, out_dims, randomness[, basis]) -> the transformed function
PyObject* make_vmap(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n < 4 || n > 5 || !PyUnicode_Check(args[3]))
      type_error("_func_vmap: takes (func, in_dims, out_dims, randomness)");
    if (!PyCallable_Check(args[0])) type_error("vmap: expected a function, not ", Py_TYPE(args[0])->tp_name);
    if (!is_dim(args[2]))
      each_leaf(args[2], [&](PyObject* dim) {
        if (!is_dim(dim))
          value_error("vmap(", name_of(args[0]), ", ..., out_dims=", text_of(args[2]),
                      "): `out_dims` must be an int, None or a python collection of ints representing where in the "
                      "outputs the vmapped dimension should appear.");
      });
    const char* how = PyUnicode_AsUTF8(args[3]);
    auto* v = PyObject_GC_New(VmapObject, &VmapType);
    if (!v) host_error();
    v->call = vmap_call;
    v->dict = nullptr;
    v->function = Owned::share(args[0]).release();
    v->in_dims = Owned::share(args[1]).release();
    v->out_dims = Owned::share(args[2]).release();
    v->randomness = how[0] == 'e' ? batch::Randomness::Error
        : how[0] == 's'           ? batch::Randomness::Same
                                  : batch::Randomness::Different;
    v->basis = n == 5 && PyObject_IsTrue(args[4]) == 1 && how[0] == 'e';
    PyObject_GC_Track(reinterpret_cast<PyObject*>(v));
    return reinterpret_cast<PyObject*>(v);
  });
}

// (vmapped function, args) -> (batch size, the dimension of each leaf or None)
PyObject* dims_of_inputs(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || Py_TYPE(args[0]) != &VmapType || !PyTuple_Check(args[1])) type_error("_vmap_dims: takes (f, args)");
    const Mapped m =
        map_inputs(reinterpret_cast<VmapObject*>(args[0]), &PyTuple_GET_ITEM(args[1], 0), PyTuple_GET_SIZE(args[1]));
    Owned dims(PyList_New(Py_ssize_t(m.dims.size())));
    for (std::size_t i = 0; i < m.dims.size(); ++i)
      PyList_SET_ITEM(dims.get(), Py_ssize_t(i),
                      m.dims[i] < 0 ? Owned::share(Py_None).release() : PyLong_FromLongLong(m.dims[i]));
    return Py_BuildValue("LO", static_cast<long long>(m.size), dims.get());
  });
}
// (vmapped function, its output) -> where the batch dimension stands in each leaf, or None
PyObject* dims_of_outputs(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || Py_TYPE(args[0]) != &VmapType) type_error("_vmap_out_dims: takes (f, output)");
    PyObject* dims = reinterpret_cast<VmapObject*>(args[0])->out_dims;
    if (is_tensor(args[1]) && PyTuple_Check(dims) && PyTuple_GET_SIZE(dims) == 1) dims = PyTuple_GET_ITEM(dims, 0);
    Owned list(PyList_New(0));
    each_with_dim(args[1], dims, [&](PyObject* leaf, PyObject* dim) {
      if (leaf == Py_None) return;
      if (PyList_Append(list.get(), dim) < 0) host_error();
    });
    return list.release();
  });
}

// ---- levels, for rules written in Python ---------------------------------------------------------------------------
int level_number(PyObject* o) {
  const long v = PyLong_AsLong(o);
  if (PyErr_Occurred()) host_error();
  if (v < 1 || v > batch::depth()) runtime_error("vmap: level ", v, " is not open");
  return int(v);
}
// level -> (batch size, randomness)
PyObject* level_info(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    const batch::Level& l = batch::level(level_number(number));
    const char* how = l.randomness == batch::Randomness::Error ? "error"
        : l.randomness == batch::Randomness::Same              ? "same"
                                                               : "different";
    return Py_BuildValue("Ls", static_cast<long long>(l.size), how);
  });
}
// level -> what resume takes. Transforms inside a rule do not expand what they differentiate to the rule's level and those
// inside it: the operands are unwrapped already. They stay open, for tangents may be batched there.
PyObject* suspend(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    const batch::Levels outside = (batch::Levels(1) << (level_number(number) - 1)) - 1;
    const batch::Levels before = batch::basis_levels;
    batch::basis_levels |= batch::open_levels() & ~outside;
    return PyLong_FromUnsignedLong(before);
  });
}
PyObject* resume(PyObject*, PyObject* before) {
  return guarded([&]() -> PyObject* {
    const unsigned long mask = PyLong_AsUnsignedLong(before);
    if (PyErr_Occurred()) host_error();
    batch::basis_levels = batch::Levels(mask);
    Py_RETURN_NONE;
  });
}

void vmap_dealloc(PyObject* o) {
  auto* v = reinterpret_cast<VmapObject*>(o);
  PyObject_GC_UnTrack(o);
  for (PyObject** field : {&v->function, &v->dict, &v->in_dims, &v->out_dims}) Py_CLEAR(*field);
  PyObject_GC_Del(o);
}
int vmap_traverse(PyObject* o, visitproc visit, void* arg) {
  auto* v = reinterpret_cast<VmapObject*>(o);
  for (PyObject* field : {v->function, v->dict, v->in_dims, v->out_dims}) Py_VISIT(field);
  return 0;
}
int vmap_clear(PyObject* o) {
  Py_CLEAR(reinterpret_cast<VmapObject*>(o)->dict);
  return 0;
}
PyObject* vmap_attribute(PyObject* o, PyObject* name) {
  return wrapped_attribute(o, reinterpret_cast<VmapObject*>(o)->function, name);
}
PyObject* vmap_repr(PyObject* o) {
  return PyUnicode_FromFormat("<vmap of %R>", reinterpret_cast<VmapObject*>(o)->function);
}

template <class F>
PyCFunction fastcall(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyMethodDef functions[] = {{"_func_vmap", fastcall(make_vmap), METH_FASTCALL, nullptr},
                           {"_vmap_dims", fastcall(dims_of_inputs), METH_FASTCALL, nullptr},
                           {"_vmap_info", level_info, METH_O, nullptr},
                           {"_vmap_suspend", suspend, METH_O, nullptr},
                           {"_vmap_resume", resume, METH_O, nullptr},
                           {"_vmap_out_dims", fastcall(dims_of_outputs), METH_FASTCALL, nullptr},
                           {}};

}  // namespace

void init_func_vmap(PyObject* module) {
  make_callable(VmapType, "tensorplay.func.Mapped", sizeof(VmapObject), offsetof(VmapObject, call),
                offsetof(VmapObject, dict));
  VmapType.tp_dealloc = vmap_dealloc;
  VmapType.tp_traverse = vmap_traverse;
  VmapType.tp_clear = vmap_clear;
  VmapType.tp_getattro = vmap_attribute;
  VmapType.tp_repr = vmap_repr;
  ready(VmapType);
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
