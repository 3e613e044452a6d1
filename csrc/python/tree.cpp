// Containers: what kind they are, how they are made again, how they compare.
#include "python/tree.h"

#include "python/module.h"

namespace tp::python {

namespace {

// Results with names (`values, indices`) are struct sequences: made from one sequence, where a named tuple takes its items.
bool has(PyObject* o, const char* name) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), name);
}
bool is_struct_sequence(PyObject* o) { return has(o, "n_sequence_fields"); }

}  // namespace

TreeKind tree_kind_slow(PyObject* o) {
  if (o == Py_None) return TreeKind::None;
  if (PyTuple_CheckExact(o)) return TreeKind::Tuple;
  if (PyList_CheckExact(o)) return TreeKind::List;
  if (PyDict_Check(o)) return TreeKind::Dict;
  if (PyTuple_Check(o) && (has(o, "_fields") || is_struct_sequence(o))) return TreeKind::Named;
  if (PyList_Check(o)) return TreeKind::List;
  return TreeKind::Leaf;
}

Owned rebuild(TreeKind kind, PyObject* like, Owned items) {
  Owned out;
  if (kind == TreeKind::Tuple) return items;
  if (kind == TreeKind::Named) {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(like));
    out = Owned(is_struct_sequence(like) ? PyObject_CallOneArg(type, items.get())
                                         : PyObject_Call(type, items.get(), nullptr));
  } else if (kind == TreeKind::List) {
    out = Owned(PySequence_List(items.get()));
  } else {
    // A copy keeps what a subclass adds: the default of a defaultdict, the order of an OrderedDict.
    out = Owned(PyDict_CheckExact(like) ? PyDict_New() : PyObject_CallMethod(like, "copy", nullptr));
    if (!out) host_error();
    PyObject *key, *value;
    Py_ssize_t at = 0, i = 0;
    while (PyDict_Next(like, &at, &key, &value))
      if (PyObject_SetItem(out.get(), key, PyTuple_GET_ITEM(items.get(), i++)) < 0) host_error();
  }
  if (!out) host_error();
  return out;
}

bool same_structure(PyObject* a, PyObject* b) {
  const TreeKind kind = tree_kind(a);
  if (kind != tree_kind(b)) return false;
  if (kind == TreeKind::Leaf || kind == TreeKind::None) return true;
  if (child_count(kind, a) != child_count(kind, b)) return false;
  if (kind == TreeKind::Named && Py_TYPE(a) != Py_TYPE(b)) return false;
  if (Py_EnterRecursiveCall(" in a tree of arguments")) host_error();
  bool same = true;
  if (kind == TreeKind::Dict) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (same && PyDict_Next(a, &at, &key, &value)) {
      PyObject* other = PyDict_GetItemWithError(b, key);
      if (!other && PyErr_Occurred()) {
        Py_LeaveRecursiveCall();
        host_error();
      }
      same = other && same_structure(value, other);
    }
  } else {
    for (Py_ssize_t i = 0; same && i < PySequence_Fast_GET_SIZE(a); ++i)
      same = same_structure(PySequence_Fast_GET_ITEM(a, i), PySequence_Fast_GET_ITEM(b, i));
  }
  Py_LeaveRecursiveCall();
  return same;
}

std::string describe_tree(PyObject* o) {
  switch (const TreeKind kind = tree_kind(o)) {
    case TreeKind::Leaf: return "*";
    case TreeKind::None: return "None";
    case TreeKind::Dict: {
      std::string s = "{";
      PyObject *key, *value;
      Py_ssize_t at = 0;
      while (PyDict_Next(o, &at, &key, &value)) {
        Owned k(PyObject_Repr(key));
        if (!k) host_error();
        s += (s.size() > 1 ? ", " : "") + std::string(PyUnicode_AsUTF8(k.get())) + ": " + describe_tree(value);
      }
      return s + "}";
    }
    default: {
      std::string s = kind == TreeKind::Named ? std::string(Py_TYPE(o)->tp_name) : "";
      s += kind == TreeKind::List ? "[" : "(";
      bool first = true;
      each_child(kind, o, [&](PyObject* child) {
        s += (first ? "" : ", ") + describe_tree(child);
        first = false;
      });
      if (kind == TreeKind::Tuple && child_count(kind, o) == 1) s += ",";
      return s + (kind == TreeKind::List ? "]" : ")");
    }
  }
}

namespace {

// (f, tree, *rest) -> the tree of f(leaf, leaves of rest)
PyObject* map_trees(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n < 2) type_error("tree_map: takes a function and one or more trees");
    std::vector<std::vector<PyObject*>> rest(std::size_t(n) - 2);
    for (std::size_t k = 0; k < rest.size(); ++k) {
      if (!same_structure(args[1], args[k + 2]))
        value_error("tree_map: tree ", k + 1, " has the structure ", describe_tree(args[k + 2]), ", the first one ",
                    describe_tree(args[1]));
      each_leaf_like(args[1], args[k + 2], [&](PyObject* leaf) { rest[k].push_back(leaf); });
    }
    std::vector<PyObject*> call(std::size_t(n) - 1);
    std::size_t at = 0;
    return map_tree(args[1],
                    [&](PyObject* leaf) {
                      call[0] = leaf;
                      for (std::size_t k = 0; k < rest.size(); ++k) call[k + 1] = rest[k][at];
                      ++at;
                      Owned r(PyObject_Vectorcall(args[0], call.data(), call.size(), nullptr));
                      if (!r) host_error();
                      return r;
                    })
        .release();
  });
}
PyObject* leaves_of(PyObject*, PyObject* tree) {
  return guarded([&]() -> PyObject* {
    Owned list(PyList_New(0));
    each_leaf(tree, [&](PyObject* leaf) {
      if (PyList_Append(list.get(), leaf) < 0) host_error();
    });
    return list.release();
  });
}

PyMethodDef functions[] = {
    {"_tree_map", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(map_trees)), METH_FASTCALL, nullptr},
    {"_tree_leaves", leaves_of, METH_O, nullptr},
    {}};

}  // namespace

void init_trees(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
