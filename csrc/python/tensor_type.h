// What the files that make up the Python Tensor share. The type object and its life are in tensor_type.cpp.
#pragma once
#include "autograd/accumulate_grad.h"
#include "python/module.h"

namespace tp::python {

/// A new object of `type` (Tensor or a subclass) for `t`, which must have none.
PyObject* new_tensor_object(PyTypeObject* type, TensorRef t);
/// A view of all of `t` that no object stands for yet.
TensorRef alias_of(const TensorRef& t);
/// Lets the cycle collector see a tensor that gained a history, hooks or attributes.
inline void ensure_tracked(PyObject* o) {
  if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
}
/// An attribute or a method of Tensor defined outside csrc/python (the Python face).
void set_tensor_attribute(const char* name, PyObject* value);

// Attribute and method tables, each in the file of that name.
extern PyGetSetDef tensor_attributes[];
extern PyMethodDef tensor_methods[];           // tensor_methods.cpp
extern PyMethodDef tensor_autograd_methods[];  // tensor_autograd.cpp
extern PyMethodDef tensor_array_methods[];     // buffers.cpp
extern PyMethodDef tensor_dlpack_methods[];    // dlpack.cpp

// Slots.
PyObject* tensor_repr(PyObject* self);
PyObject* tensor_str(PyObject* self);
PyObject* tensor_subscript(PyObject* self, PyObject* key);
int tensor_assign_subscript(PyObject* self, PyObject* key, PyObject* value);
Py_ssize_t tensor_length(PyObject* self);
PyObject* tensor_iter(PyObject* self);
int tensor_contains(PyObject* self, PyObject* value);
PyObject* tensor_float(PyObject* self);
PyObject* tensor_int(PyObject* self);
PyObject* tensor_index(PyObject* self);
int tensor_bool(PyObject* self);
int tensor_get_buffer(PyObject* self, Py_buffer* view, int flags);
void tensor_release_buffer(PyObject* self, Py_buffer* view);

/// Checks and sets the leaf flag.
void set_requires_grad_flag(const TensorRef& t, bool on);
/// The value of a one-element tensor; raises by name otherwise.
PyObject* item_of(const TensorRef& t, const char* op);
/// New tensor from nested sequences, arrays and numbers (creation.cpp).
TensorRef tensor_from_data(PyObject* data, const char* op, std::optional<Dtype> dtype);
/// The same memory where possible, else a copy.
TensorRef tensor_like_array(PyObject* data, const char* op, std::optional<Dtype> dtype);

// Graph walks for the cycle collector (graph_gc.cpp): visit what `t` or `n` owns alone.
int visit_tensor(TensorImpl* t, visitproc visit, void* arg);
int visit_node(Node* n, visitproc visit, void* arg);

/// The Python object of a node (node_type.cpp); None for null.
PyObject* wrap_node(Node* n);

/// backward() of one tensor (engine_entry.cpp): `gradient`, `inputs` may be null.
PyObject* run_backward(PyObject* tensors, PyObject* gradients, PyObject* retain_graph, PyObject* create_graph,
                       PyObject* inputs);

}  // namespace tp::python
