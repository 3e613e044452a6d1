// Layouts of the host objects that argument parsing looks into: Tensor, dtype, device. Knows no op.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/tensor_impl.h"

// Exported from _C: the bindings of op libraries built outside look into them too.
#pragma GCC visibility push(default)

namespace tp::python {

/// A Python Tensor. It owns its impl, except while the impl owns it (impl->owns_host_object): then `ref` is a borrowed
/// pointer that tensor_type.cpp never releases.
struct TensorObject {
  PyObject_HEAD
  TensorRef ref;
  PyObject* dict;
  PyObject* weak;
};
extern PyTypeObject TensorType;

struct DtypeObject {
  PyObject_HEAD
  Dtype value;
};
extern PyTypeObject DtypeType;

struct DeviceObject {
  PyObject_HEAD
  Device value;
};
extern PyTypeObject DeviceType;

inline bool is_tensor(PyObject* o) {
  return TP_LIKELY(Py_TYPE(o) == &TensorType) || PyType_IsSubtype(Py_TYPE(o), &TensorType);
}
inline const TensorRef& tensor_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->ref; }
inline bool is_dtype(PyObject* o) { return Py_TYPE(o) == &DtypeType; }
inline Dtype dtype_of(PyObject* o) { return reinterpret_cast<DtypeObject*>(o)->value; }

/// Borrowed: the singleton `tensorplay.float32` and its kin.
PyObject* dtype_object(Dtype d);
/// Borrowed: the one device there is.
PyObject* device_object();

/// Owning pointer to a Python object.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* taken) : p_(taken) {}
  static Owned share(PyObject* p) {
    Py_XINCREF(p);
    return Owned(p);
  }
  Owned(Owned&& o) noexcept : p_(o.release()) {}
  Owned& operator=(Owned&& o) noexcept {
    PyObject* old = p_;
    p_ = o.release();
    Py_XDECREF(old);
    return *this;
  }
  Owned(const Owned&) = delete;
  ~Owned() { Py_XDECREF(p_); }
  PyObject* get() const { return p_; }
  PyObject* release() {
    PyObject* p = p_;
    p_ = nullptr;
    return p;
  }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

}  // namespace tp::python

#pragma GCC visibility pop
