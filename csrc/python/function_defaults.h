// What the Python class Function defines itself: found by identity where a subclass overrides nothing.
#pragma once
#include "python/values.h"

namespace tp::python {

struct FunctionDefaults {
  PyObject* setup_context = nullptr;
  PyObject* backward = nullptr;
  PyObject* vjp = nullptr;
  PyObject* bind = nullptr;       // (cls, args, kwargs) -> positional arguments of forward
  PyObject* outside = nullptr;    // (ctx, value, gradients) -> value whose differentiation raises
};
extern FunctionDefaults function_defaults;

/// The Function subclass a context belongs to.
Owned forward_class(PyObject* ctx);
/// A tuple of tensors with the histories that the inputs of a recorded call have; empty for any other object.
PyObject* histories_of(PyObject* ctx);
PyObject* call_user_backward(PyObject* ctx, PyObject* const* grads, std::size_t n);

}  // namespace tp::python
