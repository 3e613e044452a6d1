// The parts of the module and the order they are made in; each init_* readies its types and adds its functions.
#pragma once
#include "python/values.h"

namespace tp::python {

void init_dtypes(PyObject* module);
void init_modes(PyObject* module);
void init_nodes(PyObject* module);
void init_hooks(PyObject* module);
void init_function(PyObject* module);
void init_engine(PyObject* module);
void init_trees(PyObject* module);
void init_func_grad(PyObject* module);
void init_func_vjp(PyObject* module);
void init_func_jvp(PyObject* module);
void init_func_vmap(PyObject* module);
void init_creation(PyObject* module);
void init_arrays(PyObject* module);
void init_generator(PyObject* module);
void init_runtime(PyObject* module);
void init_op_libraries(PyObject* module);
void init_transforms(PyObject* module);
/// Functions and methods that answer with a plain value.
void register_queries(Registry& registry);
/// Last of the types: operators of the registry go into its slots.
void init_tensor(PyObject* module, const Registry& registry);

}  // namespace tp::python
