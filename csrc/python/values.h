// Hand-written helpers shared by the files of this room: elements, dtypes, devices, sizes. Generated bindings use args.h.
#pragma once
#include "python/args.h"

namespace tp::python {

/// Raises for what needs the values of a batched tensor: `op` says in which words it was asked.
[[noreturn]] void refuse_batched_values(const char* op);
inline void need_values(const TensorRef& t, const char* op) {
  if (TP_UNLIKELY(t->is_batched())) refuse_batched_values(op);
}

/// What would be lost if the tensor were read as a number: "gradient", "tangent"; null: nothing, or no tensor.
const char* lost_with(PyObject* o);

/// Element `at` (in elements from the first) of `s`, as the number it is.
Scalar read_element(const Storage& s, std::int64_t at);
PyObject* python_element(const char* data, Dtype d);
/// Writes a number into memory of any dtype.
void write_element(char* data, Dtype d, const Scalar& v);

/// A dtype object, `float`, `int`, `bool`, `complex`, or NumPy's spelling of one of ours.
bool dtype_from(PyObject* o, Dtype* d);
/// Accepts 'cpu'; raises naming what is refused.
Device device_from(const char* op, PyObject* o);

/// A Size (tuple with numel()).
PyObject* wrap_size(const Dims& d);
extern PyTypeObject SizeType;

/// Adds `object` to `module` under `name`, keeping a reference of its own.
void add_object(PyObject* module, const char* name, PyObject* object);
void ready(PyTypeObject& type);
/// An interned name, made once; for attribute look-ups.
#define TP_INTERNED(text)                                     \
  ([]() -> PyObject* {                                        \
    static PyObject* name = PyUnicode_InternFromString(text); \
    return name;                                              \
  }())
/// An attribute of a module imported when first needed: `python_attr("numpy", "asarray")`; new reference, never null.
Owned import_attr(const char* module, const char* name);

}  // namespace tp::python
