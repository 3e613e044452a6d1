// NumPy arrays seen through NumPy's own C table: fast ways between an array and a Storage. Knows no op and no Tensor.
#pragma once
#include <optional>

#include "python/objects.h"

namespace tp::python {

/// Shares the array's memory. Empty when the object needs the general way through the buffer protocol: a subclass,
/// another byte order, negative or uneven strides, an element type without a dtype here, or a NumPy without the table.
std::optional<Storage> storage_from_numpy(PyObject* array);
/// An array over the Storage's memory that keeps `keeper` alive. Null without an error set when NumPy lacks the table.
PyObject* numpy_over(const Storage& s, PyObject* keeper);

}  // namespace tp::python
