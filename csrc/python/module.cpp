// The module tensorplay._C: made by pybind11, filled by hand-written and generated tables.
#include <pybind11/pybind11.h>

#include <algorithm>
#include <map>
#include <string>

#include "python/creation.h"
#include "python/module.h"
#include "python/op_names.h"
#include "python/saved_hooks.h"

namespace tp::python {

PyObject* linalg_error_type() noexcept;  // in args.cpp, which raises it

namespace {

// Functions of each home of the catalogue become a module object of that name: _C.functions, _C.linalg, _C.nn_functional.
void add_homes(PyObject* module, const Registry& registry) {
  std::map<std::string, PyObject*> homes;
  for (const Registry::Table& t : registry.functions()) {
    const std::string home = t.home;
    PyObject*& m = homes[home];
    if (!m) {
      const std::string full = home.empty() ? "tensorplay" : "tensorplay." + home;
      m = PyModule_New(full.c_str());
      if (!m) host_error();
      std::string name = home.empty() ? "functions" : home;
      std::replace(name.begin(), name.end(), '.', '_');
      add_object(module, name.c_str(), m);
    }
    if (PyModule_AddFunctions(m, t.functions) < 0) host_error();
  }
  for (auto& [home, m] : homes) Py_DECREF(m);
}

void fill(PyObject* module) {
  Registry registry;
  register_all(registry);
  register_queries(registry);
  note_names(registry);
  init_dtypes(module);
  init_modes(module);
  init_nodes(module);
  init_hooks(module);
  init_saved_hooks(module);
  init_function(module);
  init_engine(module);
  init_trees(module);
  init_func_grad(module);
  init_func_vjp(module);
  init_func_jvp(module);
  init_func_vmap(module);
  init_tensor(module, registry);
  init_creation(module);
  init_arrays(module);
  init_generator(module);
  init_runtime(module);
  init_op_libraries(module);
  init_transforms(module);
  add_homes(module, registry);
  PyObject* error = linalg_error_type();
  if (!error) host_error();
  Py_INCREF(error);
  add_object(module, "_LinAlgError", error);
  Py_DECREF(error);
}

}  // namespace
}  // namespace tp::python

PYBIND11_MODULE(_C, m) {
  try {
    tp::python::fill(m.ptr());
  } catch (...) {
    tp::python::set_python_error();
    throw pybind11::error_already_set();
  }
}
