// The Python module of an op library built outside: `TP_OP_LIBRARY(_ops)` in one of its files, beside its generated
// registration. Knows how such a library is loaded, and none of its ops.
#pragma once
#include "core/abi.h"
#include "python/args.h"

namespace tp::python {

/// Makes the module; raises ImportError where `abi`, the library's own number, is not that of the runtime.
__attribute__((visibility("default"))) PyObject* make_op_library(PyModuleDef* definition, int abi,
                                                                 void (*fill)(Registry&)) noexcept;

}  // namespace tp::python

#define TP_OP_LIBRARY(module)                                                                      \
  extern "C" __attribute__((visibility("default"))) PyObject* PyInit_##module() {                  \
    static PyModuleDef definition = {                                                              \
        PyModuleDef_HEAD_INIT, #module, nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr}; \
    return ::tp::python::make_op_library(&definition, TP_ABI, &::tp::python::register_all);        \
  }
