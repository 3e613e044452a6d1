// The private functions behind tensorplay.func.vmap: levels, and tensors going in and out of them. Knows no op.
#include "transforms/batched.h"

#include <cstring>

#include "python/module.h"
#include "transforms/loop.h"

namespace tp::python {
namespace {

const TensorRef& tensor_argument(const char* op, PyObject* o) {
  if (!is_tensor(o)) type_error(op, ": expected a Tensor, not ", Py_TYPE(o)->tp_name);
  return tensor_of(o);
}
std::int64_t integer(const char* op, PyObject* o) {
  const long long v = PyLong_AsLongLong(o);
  if (v == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    type_error(op, ": expected an int, not ", Py_TYPE(o)->tp_name);
  }
  return v;
}

PyObject* enter(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !PyUnicode_Check(args[1])) type_error("_vmap_enter: takes (batch_size, randomness)");
    const char* how = PyUnicode_AsUTF8(args[1]);
    batch::Randomness randomness;
    if (!std::strcmp(how, "error"))
      randomness = batch::Randomness::Error;
    else if (!std::strcmp(how, "same"))
      randomness = batch::Randomness::Same;
    else if (!std::strcmp(how, "different"))
      randomness = batch::Randomness::Different;
    else
      value_error("vmap: Only allowed values for randomness are 'error', 'different', or 'same'. Got ", how);
    return PyLong_FromLong(batch::enter(integer("_vmap_enter", args[0]), randomness));
  });
}
PyObject* exit(PyObject*, PyObject* level) {
  return guarded([&]() -> PyObject* {
    batch::exit(int(integer("_vmap_exit", level)));
    Py_RETURN_NONE;
  });
}
PyObject* active(PyObject*, PyObject*) { return PyBool_FromLong(batch::depth() > 0); }

PyObject* add_batch_dim(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3) type_error("_add_batch_dim: takes (tensor, dim, level)");
    return wrap(
        batch::add_dim(tensor_argument("vmap", args[0]), integer("vmap", args[1]), int(integer("vmap", args[2]))));
  });
}
PyObject* remove_batch_dim(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 4) type_error("_remove_batch_dim: takes (tensor, level, batch_size, out_dim)");
    return wrap(batch::remove_dim(tensor_argument("vmap", args[0]), int(integer("vmap", args[1])),
                                  integer("vmap", args[2]), integer("vmap", args[3])));
  });
}
PyObject* is_batched(PyObject*, PyObject* o) { return PyBool_FromLong(is_tensor(o) && tensor_of(o)->is_batched()); }
PyObject* batch_levels(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Dims numbers;
    const batch::Levels levels = batch::levels_of(tensor_argument("_batch_levels", o));
    for (int l = 0; levels >> l; ++l)
      if (levels >> l & 1) numbers.push_back(l + 1);
    return wrap(numbers);
  });
}
/// Without its innermost level, whose dimension leads: what the printed form shows.
PyObject* batch_value(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_argument("_batch_value", o);
    const batch::Levels levels = batch::levels_of(t);
    return wrap(levels ? batch::peel(t, std::bit_floor(levels)) : t);
  });
}
PyObject* expand_to_levels(PyObject*, PyObject* o) {
  return guarded([&] { return wrap(batch::expand_to_levels(tensor_argument("_expand_to_levels", o))); });
}
PyObject* set_loop_warning(PyObject*, PyObject* on) {
  const int v = PyObject_IsTrue(on);
  if (v < 0) return nullptr;
  batch::warn_of_loops = v;
  Py_RETURN_NONE;
}

template <class F>
PyCFunction fastcall(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyMethodDef functions[] = {{"_vmap_enter", fastcall(enter), METH_FASTCALL, nullptr},
                           {"_vmap_exit", exit, METH_O, nullptr},
                           {"_vmap_active", active, METH_NOARGS, nullptr},
                           {"_add_batch_dim", fastcall(add_batch_dim), METH_FASTCALL, nullptr},
                           {"_remove_batch_dim", fastcall(remove_batch_dim), METH_FASTCALL, nullptr},
                           {"_is_batched", is_batched, METH_O, nullptr},
                           {"_batch_levels", batch_levels, METH_O, nullptr},
                           {"_batch_value", batch_value, METH_O, nullptr},
                           {"_expand_to_levels", expand_to_levels, METH_O, nullptr},
                           {"_vmap_warn_of_loops", set_loop_warning, METH_O, nullptr},
                           {}};

}  // namespace

void init_transforms(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
