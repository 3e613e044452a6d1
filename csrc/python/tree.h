// Trees of Python containers: tuples, lists, dicts, named tuples, None, and leaves. Knows neither tensors nor transforms.
#pragma once
#include "python/values.h"

namespace tp::python {

enum class TreeKind : std::uint8_t { Leaf, None, Tuple, Named, List, Dict };
TreeKind tree_kind_slow(PyObject* o);
inline TreeKind tree_kind(PyObject* o) { return is_tensor(o) ? TreeKind::Leaf : tree_kind_slow(o); }

/// A container of the kind and type of `like` that holds `items` (a tuple, in the order each_child visits).
Owned rebuild(TreeKind kind, PyObject* like, Owned items);

/// Calls f(child) for each child of a container, dict values in insertion order.
template <class F>
void each_child(TreeKind kind, PyObject* o, F&& f) {
  if (kind == TreeKind::Dict) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(o, &at, &key, &value)) f(value);
    return;
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n; ++i) f(PySequence_Fast_GET_ITEM(o, i));
}
inline Py_ssize_t child_count(TreeKind kind, PyObject* o) {
  return kind == TreeKind::Dict ? PyDict_GET_SIZE(o) : PySequence_Fast_GET_SIZE(o);
}

/// The same tree with f(leaf), an Owned, in place of every leaf; None stays.
template <class F>
Owned map_tree(PyObject* o, F&& f) {
  const TreeKind kind = tree_kind(o);
  if (kind == TreeKind::Leaf) return f(o);
  if (kind == TreeKind::None) return Owned::share(o);
  if (Py_EnterRecursiveCall(" in a tree of arguments")) host_error();
  Owned items(PyTuple_New(child_count(kind, o)));
  Py_ssize_t i = 0;
  try {
    each_child(kind, o, [&](PyObject* child) { PyTuple_SET_ITEM(items.get(), i++, map_tree(child, f).release()); });
  } catch (...) {
    Py_LeaveRecursiveCall();
    throw;
  }
  Py_LeaveRecursiveCall();
  return rebuild(kind, o, std::move(items));
}

/// Calls f(leaf) for every leaf.
template <class F>
void each_leaf(PyObject* o, F&& f) {
  const TreeKind kind = tree_kind(o);
  if (kind == TreeKind::Leaf) return f(o);
  if (kind == TreeKind::None) return;
  if (Py_EnterRecursiveCall(" in a tree of arguments")) host_error();
  try {
    each_child(kind, o, [&](PyObject* child) { each_leaf(child, f); });
  } catch (...) {
    Py_LeaveRecursiveCall();
    throw;
  }
  Py_LeaveRecursiveCall();
}

/// Calls f(leaf) for every leaf of `tree`, in the order in which `like`, of the same structure, has them.
template <class F>
void each_leaf_like(PyObject* like, PyObject* tree, F&& f) {
  const TreeKind kind = tree_kind(like);
  if (kind == TreeKind::Leaf) return f(tree);
  if (kind == TreeKind::None) return;
  if (kind == TreeKind::Dict) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(like, &at, &key, &value)) each_leaf_like(value, PyDict_GetItemWithError(tree, key), f);
    return;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(like); ++i)
    each_leaf_like(PySequence_Fast_GET_ITEM(like, i), PySequence_Fast_GET_ITEM(tree, i), f);
}

/// Whether two trees differ in their leaves alone.
bool same_structure(PyObject* a, PyObject* b);
/// The tree with `*` for leaves, for messages.
std::string describe_tree(PyObject* o);

}  // namespace tp::python
