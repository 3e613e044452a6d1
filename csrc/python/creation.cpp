// tensor, as_tensor, asarray: Python data in, tensors out.
#include "python/creation.h"

#include "autograd/engine.h"
#include "ops/wiring.h"
#include "transforms/batched.h"

namespace tp::python {

namespace {

bool has_attr(PyObject* o, const char* name) {
  Owned v(PyObject_GetAttrString(o, name));
  if (v) return true;
  PyErr_Clear();
  return false;
}

TensorRef storage_cast(Storage s, std::optional<Dtype> dtype) {
  if (!dtype || *dtype == s.dtype()) return TensorImpl::make(std::move(s));
  if (is_complex(s.dtype()) && !is_complex(*dtype))
    type_error("tensor: can't convert complex values to ", dtype_name(*dtype));
  return TensorImpl::make(engine_ops.cast(s, *dtype));
}

// Objects that describe memory without being arrays: pandas columns, PIL images and the like.
TensorRef from_foreign(PyObject* data, const char* op, std::optional<Dtype> dtype, bool copy) {
  if (has_attr(data, "__array_interface__") || has_attr(data, "__array__")) {
    Owned array(PyObject_CallOneArg(import_attr("numpy", "asarray").get(), data));
    if (!array) host_error();
    return storage_cast(
        copy ? copy_storage(storage_from_buffer(array.get(), op)) : tensor_from_array(array.get(), op)->storage(),
        dtype);
  }
  if (!PyUnicode_Check(data) && !PyBytes_Check(data) && PyObject_CheckBuffer(data)) {
    Storage s = storage_from_buffer(data, op);
    return storage_cast(copy ? copy_storage(s) : std::move(s), dtype);
  }
  type_error(op, ": can't make a tensor of a ", Py_TYPE(data)->tp_name,
             "; numbers, nested lists or tuples of numbers, arrays and buffers can");
}

bool is_python_data(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) || PyRange_Check(o) || number_kind(o) != Number::None;
}

/// A copy without history.
TensorRef copy_without_history(const TensorRef& t, std::optional<Dtype> dtype) {
  const Storage& s = t->storage();
  if (dtype && *dtype != s.dtype()) return storage_cast(s, dtype);
  return TensorImpl::make(copy_storage(s));
}

}  // namespace

TensorRef tensor_from_data(PyObject* data, const char* op, std::optional<Dtype> dtype) {
  if (is_python_data(data)) return tensor_from_sequence(data, op, dtype);
  if (is_tensor(data)) {
    const TensorRef& given = tensor_of(data);
    if (TP_UNLIKELY(given->is_batched())) {
      const TensorRef copy = copy_without_history(batch::physical(given), dtype);
      return batch::wrap(copy, batch::levels_of(given));
    }
    return copy_without_history(given, dtype);
  }
  if (is_numpy_array(data)) return storage_cast(copy_storage(storage_from_buffer(data, op)), dtype);
  return from_foreign(data, op, dtype, true);
}

TensorRef tensor_like_array(PyObject* data, const char* op, std::optional<Dtype> dtype) {
  if (is_tensor(data)) return dtype ? cast(tensor_of(data), *dtype) : tensor_of(data);
  if (is_python_data(data)) return tensor_from_sequence(data, op, dtype);
  if (is_numpy_array(data)) return storage_cast(tensor_from_array(data, op)->storage(), dtype);
  return from_foreign(data, op, dtype, false);
}

namespace {

constexpr Param kTensorParams[] = {{"data", Kind::Any},
                                   {"dtype", Kind::OptDtype, true, true},
                                   {"device", Kind::OptDevice, true, true},
                                   {"requires_grad", Kind::Bool, true, true},
                                   {"pin_memory", Kind::Bool, true, true}};
const Spec kTensorSpec{"tensor", "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)",
                       kTensorParams};

PyObject* tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&]() -> PyObject* {
    Slots<5> a;
    parse(kTensorSpec, a, nullptr, args, n, kw);
    to_device(kTensorSpec, a, 2);
    if (is_tensor(a[0]) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                     "sourceTensor.detach().clone().requires_grad_(True), rather than tensorplay.tensor(sourceTensor).",
                     1) < 0)
      return nullptr;
    TensorRef t = tensor_from_data(a[0], "tensor", to_opt_dtype(kTensorSpec, a, 1));
    if (TP_UNLIKELY(modes::any(modes::kInference))) t->set_inference(true);
    return wrap_leaf(std::move(t), a[3]);
  });
}

PyObject* as_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {
      {"data", Kind::Any}, {"dtype", Kind::OptDtype, true}, {"device", Kind::OptDevice, true}};
  static const Spec spec{"as_tensor", "as_tensor(data, dtype=None, device=None)", params};
  return guarded([&]() -> PyObject* {
    Slots<3> a;
    parse(spec, a, nullptr, args, n, kw);
    to_device(spec, a, 2);
    return wrap(tensor_like_array(a[0], "as_tensor", to_opt_dtype(spec, a, 1)));
  });
}

PyObject* asarray(PyObject* module, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"obj", Kind::Any},
                                     {"dtype", Kind::OptDtype, true, true},
                                     {"device", Kind::OptDevice, true, true},
                                     {"copy", Kind::OptBool, true, true},
                                     {"requires_grad", Kind::OptBool, true, true}};
  static const Spec spec{"asarray", "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None)", params};
  return guarded([&]() -> PyObject* {
    Slots<5> a;
    parse(spec, a, nullptr, args, n, kw);
    to_device(spec, a, 2);
    const auto dtype = to_opt_dtype(spec, a, 1);
    const auto copy = to_opt_bool(spec, a, 3);
    const auto flag = to_opt_bool(spec, a, 4);
    Owned imported;
    PyObject* obj = a[0];
    if (!is_tensor(obj) && !is_numpy_array(obj) && !is_python_data(obj) && has_attr(obj, "__dlpack__")) {
      imported = Owned(PyObject_CallMethod(module, "from_dlpack", "O", obj));
      if (!imported) return nullptr;
      obj = imported.get();
    }
    TensorRef t;
    if (copy.value_or(false)) {
      t = is_tensor(obj) ? engine_ops.clone_graph(cast(tensor_of(obj), dtype.value_or(tensor_of(obj)->dtype())))
                         : tensor_from_data(obj, "asarray", dtype);
    } else {
      t = tensor_like_array(obj, "asarray", dtype);
      if (copy && !is_tensor(obj) && is_python_data(obj))
        value_error("asarray: can't alias a sequence or number; pass copy=None or True");
      if (copy && is_tensor(obj) && t != tensor_of(obj))
        value_error("asarray: another dtype needs a copy, and copy=False was given");
    }
    // Left out, requires_grad keeps the history of a tensor; given, it is the caller's word about the result alone.
    const bool itself = is_tensor(obj) && t == tensor_of(obj);
    if (flag && t->requires_grad() != *flag && (itself || !*flag))
      t = batch::wrap(wiring::wrap(batch::physical(t)->storage()), batch::levels_of(t));
    if (flag.value_or(false)) set_requires_grad_flag(t, true);
    return wrap(std::move(t));
  });
}

PyObject* scalar_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"s", Kind::Scalar},
                                     {"dtype", Kind::OptDtype, true, true},
                                     {"device", Kind::OptDevice, true, true},
                                     {"requires_grad", Kind::Bool, true, true}};
  static const Spec spec{"scalar_tensor", "scalar_tensor(Scalar s, *, dtype=None, device=None, requires_grad=False)",
                         params};
  return guarded([&]() -> PyObject* {
    Slots<4> a;
    parse(spec, a, nullptr, args, n, kw);
    to_device(spec, a, 2);
    const Scalar v = to_scalar(spec, a, 0);
    const Dtype d = a.given(1) ? to_dtype(spec, a, 1) : v.is_complex() ? v.dtype() : default_float();
    Storage s = empty(Shape{}, d);
    write_element(s.raw(), d, v);
    return wrap_leaf(wiring::wrap(std::move(s)), a[3]);
  });
}

PyObject* is_tensor_object(PyObject*, PyObject* o) { return PyBool_FromLong(is_tensor(o)); }

PyMethodDef functions[] = {
    {"tensor", fast(tensor), METH_FASTCALL | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\n"
     "A tensor with a copy of data: numbers, nested sequences of numbers, arrays."},
    {"as_tensor", fast(as_tensor), METH_FASTCALL | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n--\n\nA tensor of data, over the same memory where possible."},
    {"asarray", fast(asarray), METH_FASTCALL | METH_KEYWORDS,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None)\n--\n\n"
     "A tensor of obj: a tensor, an array, a buffer, a DLPack capsule or nested numbers."},
    {"scalar_tensor", fast(scalar_tensor), METH_FASTCALL | METH_KEYWORDS,
     "scalar_tensor(s, *, dtype=None, device=None, requires_grad=False)\n--\n\nA 0-d tensor."},
    {"is_tensor", is_tensor_object, METH_O, "is_tensor(obj)\n--\n\nWhether obj is a Tensor."},
    {}};

}  // namespace

void init_creation(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
