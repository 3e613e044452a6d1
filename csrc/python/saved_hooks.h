// Saved-tensor hooks: what Python made of a saved value. The stack of active hooks is in saved_hooks.cpp.
#pragma once
#include "autograd/saved.h"
#include "python/values.h"

namespace tp::python {

/// Calls pack_hook(t) and keeps its result with unpack_hook.
std::unique_ptr<PackedValue> pack_with(PyObject* pack_hook, PyObject* unpack_hook, const TensorRef& t);
void init_saved_hooks(PyObject* module);

}  // namespace tp::python
