// Op libraries built outside: their module, their functions under a name of the caller's choice, methods of Tensor.
#include "python/op_library.h"

#include <memory>

#include "kernels/loops.h"
#include "python/module.h"
#include "python/op_names.h"

namespace tp::python {
namespace {

constexpr const char* kRegistry = "tensorplay.registry";

const Registry& registry_of(PyObject* library) {
  Owned capsule(PyObject_GetAttrString(library, "registry"));
  if (!capsule) host_error();
  void* found = PyCapsule_GetPointer(capsule.get(), kRegistry);
  if (!found) host_error();
  return *static_cast<const Registry*>(found);
}

// (library, module name) -> {home: {name: function}}. The functions say they are of that module, so that pickle finds them.
PyObject* library_functions(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&]() -> PyObject* {
    if (nargs != 2 || !PyModule_Check(args[0]) || !PyUnicode_Check(args[1]))
      type_error("library_functions: expected an op library and the name of a module");
    Owned homes(PyDict_New());
    if (!homes) host_error();
    for (const Registry::Table& t : registry_of(args[0]).functions()) {
      PyObject* home = PyDict_GetItemString(homes.get(), t.home);
      if (!home) {
        Owned made(PyDict_New());
        if (!made || PyDict_SetItemString(homes.get(), t.home, made.get()) < 0) host_error();
        home = made.get();
      }
      for (PyMethodDef* f = t.functions; f->ml_name; ++f) {
        Owned function(PyCFunction_NewEx(f, args[0], args[1]));
        if (!function || PyDict_SetItemString(home, f->ml_name, function.get()) < 0) host_error();
      }
    }
    return homes.release();
  });
}

// (library) -> names of the methods it brings.
PyObject* library_methods(PyObject*, PyObject* library) {
  return guarded([&]() -> PyObject* {
    Owned names(PyList_New(0));
    if (!names) host_error();
    for (PyMethodDef* table : registry_of(library).methods())
      for (PyMethodDef* f = table; f->ml_name; ++f) {
        Owned name(PyUnicode_FromString(f->ml_name));
        if (!name || PyList_Append(names.get(), name.get()) < 0) host_error();
      }
    return names.release();
  });
}

// (library): puts its methods on Tensor. Who may take which name is the caller's to decide.
PyObject* install_methods(PyObject*, PyObject* library) {
  return guarded([&]() -> PyObject* {
    for (PyMethodDef* table : registry_of(library).methods())
      for (PyMethodDef* f = table; f->ml_name; ++f) {
        Owned method(PyDescr_NewMethod(&TensorType, f));
        if (!method || PyDict_SetItemString(TensorType.tp_dict, f->ml_name, method.get()) < 0) host_error();
      }
    PyType_Modified(&TensorType);
    Py_RETURN_NONE;
  });
}

// (name of an entry) -> what messages call it.
PyObject* public_name_of(PyObject*, PyObject* entry) {
  return guarded([&]() -> PyObject* {
    const char* name = PyUnicode_AsUTF8(entry);
    return name ? PyUnicode_FromString(public_name(name).c_str()) : nullptr;
  });
}

PyMethodDef functions[] = {
    {"_public_name", public_name_of, METH_O, "The name of an entry of ops.yaml in messages."},
    {"_library_functions", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(library_functions)),
     METH_FASTCALL, "The functions of an op library, by home and name, as members of the named module."},
    {"_library_methods", library_methods, METH_O, "Names of the Tensor methods of an op library."},
    {"_install_methods", install_methods, METH_O, "Puts the methods of an op library on Tensor."},
    {},
};

}  // namespace

PyObject* make_op_library(PyModuleDef* definition, int abi, void (*fill)(Registry&)) noexcept {
  if (abi != abi_version())
    return PyErr_Format(PyExc_ImportError,
                        "built for ABI %d of tensorplay, the one installed has ABI %d; build it again against this one",
                        abi, abi_version());
  return guarded([&]() -> PyObject* {
    Owned module(PyModule_Create(definition));
    if (!module) host_error();
    auto registry = std::make_unique<Registry>();
    fill(*registry);
    note_names(*registry);
    // Lives as long as the process: so do the tables it points to.
    Owned capsule(PyCapsule_New(registry.get(), kRegistry, nullptr));
    if (!capsule) host_error();
    registry.release();
    if (PyObject_SetAttrString(module.get(), "registry", capsule.get()) < 0) host_error();
    return module.release();
  });
}

void init_op_libraries(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
  if (PyModule_AddIntConstant(module, "_abi", abi_version()) < 0) host_error();
  if (PyModule_AddStringConstant(module, "_isa", isa_name(active_isa()).data()) < 0) host_error();
}

}  // namespace tp::python
