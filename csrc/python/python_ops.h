// Ops that are written in Python over other ops: their bindings check the arguments here and call a Python function.
#pragma once
#include "python/args.h"

// Exported from _C: the bindings of op libraries built outside call it too.
#pragma GCC visibility push(default)

namespace tp::python {

/// `module:function` of an entry and its signatures; none where the function checks its own (it takes tensors one by one).
struct PythonOp {
  const char* op;
  const char* module;
  const char* function;
  std::span<const Spec* const> specs;
  mutable PyObject* callable = nullptr;  // imported at the first call
};

/// Arguments are bound by the first signature that takes them; out= is written from the result.
PyObject* call_python(const PythonOp& op, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
/// op_: self is overwritten with the result and takes its history.
PyObject* call_python_inplace(const PythonOp& op, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames);

/// An in-place method as a function: the first argument is the tensor.
PyObject* call_inplace_method(const char* op, FastFunction method, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames);

/// Writes results (a new reference, taken over) into the tensors of out=, one or a tuple of as many, and returns those.
PyObject* written_out(const char* op, PyObject* result, PyObject* out);

}  // namespace tp::python

#pragma GCC visibility pop
