// Making tensors of what Python has: numbers, sequences, arrays, buffers.
#pragma once
#include "python/tensor_type.h"

namespace tp::python {

/// From nested lists, tuples, ranges and numbers (sequences.cpp).
TensorRef tensor_from_sequence(PyObject* data, const char* op, std::optional<Dtype> dtype);

/// Over the memory of a buffer exporter, such as a NumPy array (buffers.cpp). Negative strides stay negative.
Storage storage_from_buffer(PyObject* o, const char* op);
/// A contiguous copy.
Storage copy_storage(const Storage& s);
/// `t` in another dtype, recorded; itself where nothing is to be done.
TensorRef cast(const TensorRef& t, Dtype dtype);

PyMethodDef* creation_functions();
PyMethodDef* buffer_functions();
PyMethodDef* dlpack_functions();
extern PyMethodDef tensor_conversion_methods[];  // to, float, double, ... (conversions.cpp)

}  // namespace tp::python
