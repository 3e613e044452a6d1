// Conversions of dtype and device as methods: to, float, double, ..., cpu, new_tensor and kin.
#include <cstring>

#include "autograd/engine.h"
#include "kernels/number.h"
#include "ops/generated.h"
#include "ops/wiring.h"
#include "python/creation.h"
#include "transforms/batched.h"

namespace tp::python {

TensorRef cast(const TensorRef& t, Dtype dtype) { return t->dtype() == dtype ? t : engine_ops.cast_graph(t, dtype); }

namespace {

struct Target {
  std::optional<Dtype> dtype;
  bool copy = false;
};

// to(dtype), to(device), to(device, dtype), to(other), with non_blocking, copy, memory_format.
Target read_target(PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static constexpr const char* signature =
      "; signatures: to(dtype), to(device, dtype=None), to(other), each with copy=False";
  Target r;
  int positional = 0;
  const auto take_flag = [&](PyObject* o, const char* name) {
    if (!PyBool_Check(o)) type_error("to: ", name, " must be a bool, not ", Py_TYPE(o)->tp_name, signature);
    return o == Py_True;
  };
  const auto take = [&](PyObject* o, const char* name) {
    Dtype d;
    if (is_tensor(o)) {
      r.dtype = tensor_of(o)->dtype();
    } else if (dtype_from(o, &d)) {
      r.dtype = d;
    } else if (PyUnicode_Check(o) || Py_TYPE(o) == &DeviceType) {
      device_from("to", o);
    } else if (o != Py_None) {
      type_error("to: argument ", name, " must be a dtype, a device or a Tensor, not ", Py_TYPE(o)->tp_name, signature);
    }
  };
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (PyBool_Check(args[i])) {
      if (positional++ == 1) r.copy = args[i] == Py_True;  // non_blocking, then copy
    } else {
      take(args[i], std::to_string(i + 1).c_str());
    }
  }
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k));
    PyObject* v = args[n + k];
    if (!std::strcmp(name, "dtype") || !std::strcmp(name, "device") || !std::strcmp(name, "other"))
      take(v, name);
    else if (!std::strcmp(name, "copy"))
      r.copy = take_flag(v, name);
    else if (!std::strcmp(name, "non_blocking"))
      take_flag(v, name);
    else if (std::strcmp(name, "memory_format") != 0)
      type_error("to: unexpected keyword argument '", name, "'", signature);
  }
  return r;
}

PyObject* to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    const Target target = read_target(args, n, kwnames);
    const TensorRef& t = tensor_of(self);
    const Dtype d = target.dtype.value_or(t->dtype());
    if (d == t->dtype()) {
      if (!target.copy) {
        Py_INCREF(self);
        return self;
      }
      return kept(wrap(engine_ops.clone_graph(t)), self);
    }
    return kept(wrap(cast(t, d)), self);
  });
}

template <Dtype D>
PyObject* convert(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    if (t->dtype() == D) {
      Py_INCREF(self);
      return self;
    }
    return kept(wrap(cast(t, D)), self);
  });
}

PyObject* cpu(PyObject* self, PyObject* const*, Py_ssize_t, PyObject*) {
  Py_INCREF(self);
  return self;
}
PyObject* cuda(PyObject*, PyObject* const*, Py_ssize_t, PyObject*) {
  return guarded([]() -> PyObject* {
    runtime_error("cuda: device 'cuda' is not available; this build of tensorplay has 'cpu' only");
  });
}

PyObject* type(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    if (n == 0 || args[0] == Py_None)
      return PyUnicode_FromFormat("tensorplay.%s", std::string(dtype_name(t->dtype())).c_str());
    Dtype d;
    if (n != 1 || !dtype_from(args[0], &d)) type_error("type: takes one dtype, got ", Py_TYPE(args[0])->tp_name);
    return kept(wrap(cast(t, d)), self);
  });
}
PyObject* type_as(PyObject* self, PyObject* other) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(other)) type_error("type_as: argument 'other' must be Tensor, not ", Py_TYPE(other)->tp_name);
    return kept(wrap(cast(tensor_of(self), tensor_of(other)->dtype())), self);
  });
}

// ---- new tensors with the dtype of this one --------------------------------------------------------------------------
constexpr Param kNewParams[] = {{"input", Kind::Tensor},
                                {"size", Kind::IntList},
                                {"dtype", Kind::OptDtype, true, true},
                                {"device", Kind::OptDevice, true, true},
                                {"requires_grad", Kind::Bool, true, true}};

/// Of a batched tensor: memory for every sample, since in-place ops may write other values for each.
PyObject* new_for_samples(PyObject* self, Storage one, PyObject* requires_grad) {
  const batch::Levels levels = batch::levels_of(tensor_of(self));
  TensorRef all = engine_ops.clone_graph(batch::physical_at(wiring::wrap(std::move(one)), levels));
  return wrap_leaf(batch::wrap(std::move(all), levels), requires_grad);
}

template <Storage (*Make)(const Shape&, Dtype)>
PyObject* new_filled(const Spec& spec, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&]() -> PyObject* {
    Slots<5> a;
    parse(spec, a, self, args, n, kw);
    if (TP_UNLIKELY(tensor_of(self)->is_batched()))
      return new_for_samples(
          self, Make(to_dims(spec, a, 1), a.given(2) ? to_dtype(spec, a, 2) : tensor_of(self)->dtype()), a[4]);
    to_device(spec, a, 3);
    const Dtype d = a.given(2) ? to_dtype(spec, a, 2) : tensor_of(self)->dtype();
    return kept(wrap_leaf(wiring::wrap(Make(to_dims(spec, a, 1), d)), a[4]), self);
  });
}
PyObject* new_zeros(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static const Spec spec{
      "new_zeros", "new_zeros(Tensor input, int[] size, *, dtype=None, device=None, requires_grad=False)", kNewParams};
  return new_filled<zeros_storage>(spec, self, args, n, kw);
}
PyObject* new_ones(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static const Spec spec{
      "new_ones", "new_ones(Tensor input, int[] size, *, dtype=None, device=None, requires_grad=False)", kNewParams};
  return new_filled<ones_storage>(spec, self, args, n, kw);
}
PyObject* new_empty(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static const Spec spec{
      "new_empty", "new_empty(Tensor input, int[] size, *, dtype=None, device=None, requires_grad=False)", kNewParams};
  return new_filled<empty>(spec, self, args, n, kw);
}
PyObject* new_full(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"input", Kind::Tensor},
                                     {"size", Kind::IntList},
                                     {"fill_value", Kind::Scalar},
                                     {"dtype", Kind::OptDtype, true, true},
                                     {"device", Kind::OptDevice, true, true},
                                     {"requires_grad", Kind::Bool, true, true}};
  static const Spec spec{
      "new_full",
      "new_full(Tensor input, int[] size, Scalar fill_value, *, dtype=None, device=None, requires_grad=False)", params};
  return guarded([&]() -> PyObject* {
    Slots<6> a;
    parse(spec, a, self, args, n, kw);
    if (TP_UNLIKELY(tensor_of(self)->is_batched())) {
      const Dtype own = tensor_of(self)->dtype();
      const Dtype d = a.given(3) ? to_dtype(spec, a, 3) : own;
      return new_for_samples(self, ops::full_storage(to_dims(spec, a, 1), to_scalar(spec, a, 2), d), a[5]);
    }
    to_device(spec, a, 4);
    const Dtype d = a.given(3) ? to_dtype(spec, a, 3) : tensor_of(self)->dtype();
    Storage s = empty(to_dims(spec, a, 1), d);
    const Scalar v = to_scalar(spec, a, 2);
    kernels::check_held("new_full", v, d);
    const std::size_t item = item_size(d);
    for (std::int64_t i = 0; i < s.numel(); ++i) write_element(s.raw() + std::size_t(i) * item, d, v);
    return kept(wrap_leaf(wiring::wrap(std::move(s)), a[5]), self);
  });
}
PyObject* new_tensor(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"input", Kind::Tensor},
                                     {"data", Kind::Any},
                                     {"dtype", Kind::OptDtype, true, true},
                                     {"device", Kind::OptDevice, true, true},
                                     {"requires_grad", Kind::Bool, true, true}};
  static const Spec spec{"new_tensor",
                         "new_tensor(Tensor input, data, *, dtype=None, device=None, requires_grad=False)", params};
  return guarded([&]() -> PyObject* {
    Slots<5> a;
    parse(spec, a, self, args, n, kw);
    to_device(spec, a, 3);
    const Dtype d = a.given(2) ? to_dtype(spec, a, 2) : tensor_of(self)->dtype();
    return wrap_leaf(tensor_from_data(a[1], "new_tensor", d), a[4]);
  });
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

}  // namespace

PyMethodDef tensor_conversion_methods[] = {
    {"to", fast(to), kFast,
     "to($self, /, dtype_or_device_or_tensor, ..., copy=False)\n--\n\nThe same values in another dtype."},
    {"float", convert<Dtype::F32>, METH_NOARGS, "float($self, /)\n--\n\nAs float32."},
    {"double", convert<Dtype::F64>, METH_NOARGS, "double($self, /)\n--\n\nAs float64."},
    {"half", convert<Dtype::F16>, METH_NOARGS, "half($self, /)\n--\n\nAs float16."},
    {"bfloat16", convert<Dtype::BF16>, METH_NOARGS, "bfloat16($self, /)\n--\n\nAs bfloat16."},
    {"cfloat", convert<Dtype::C64>, METH_NOARGS, "cfloat($self, /)\n--\n\nAs complex64."},
    {"cdouble", convert<Dtype::C128>, METH_NOARGS, "cdouble($self, /)\n--\n\nAs complex128."},
    {"int", convert<Dtype::I32>, METH_NOARGS, "int($self, /)\n--\n\nAs int32."},
    {"long", convert<Dtype::I64>, METH_NOARGS, "long($self, /)\n--\n\nAs int64."},
    {"short", convert<Dtype::I16>, METH_NOARGS, "short($self, /)\n--\n\nAs int16."},
    {"char", convert<Dtype::I8>, METH_NOARGS, "char($self, /)\n--\n\nAs int8."},
    {"byte", convert<Dtype::U8>, METH_NOARGS, "byte($self, /)\n--\n\nAs uint8."},
    {"bool", convert<Dtype::Bool>, METH_NOARGS, "bool($self, /)\n--\n\nAs bool."},
    {"type", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(type)), METH_FASTCALL,
     "type($self, dtype=None, /)\n--\n\nThe name of the dtype, or the values in another."},
    {"type_as", type_as, METH_O, "type_as($self, other, /)\n--\n\nIn the dtype of another tensor."},
    {"cpu", fast(cpu), kFast, "cpu($self, /)\n--\n\nThe tensor itself: it is on the cpu."},
    {"cuda", fast(cuda), kFast, "cuda($self, /)\n--\n\nRaises: there is no such device."},
    {"new_tensor", fast(new_tensor), kFast,
     "new_tensor($self, /, data, *, dtype=None, device=None, requires_grad=False)\n--\n\nA tensor of "
     "data in the dtype of this one."},
    {"new_zeros", fast(new_zeros), kFast,
     "new_zeros($self, /, size, *, dtype=None, ...)\n--\n\nZeros in the dtype of this tensor."},
    {"new_ones", fast(new_ones), kFast,
     "new_ones($self, /, size, *, dtype=None, ...)\n--\n\nOnes in the dtype of this tensor."},
    {"new_empty", fast(new_empty), kFast,
     "new_empty($self, /, size, *, dtype=None, ...)\n--\n\nUninitialised, in the dtype of this tensor."},
    {"new_full", fast(new_full), kFast,
     "new_full($self, /, size, fill_value, *, dtype=None, ...)\n--\n\nOne value, in the dtype of this "
     "tensor."},
    {}};

}  // namespace tp::python
