// Methods and protocols of Tensor that need no op: geometry, numbers, sequences, printing, copies through Python helpers.
#include "python/tensor_type.h"

#include <cstring>

#include "python/ops_used.h"
#include "transforms/batched.h"

namespace tp::python {
namespace {

int normal_dim(const char* op, std::int64_t dim, int ndim) {
  const int room = ndim ? ndim : 1;
  if (dim < -room || dim >= room)
    index_error(op, ": dimension out of range (expected to be in [", -room, ", ", room - 1, "], got ", dim, ")");
  return int(dim < 0 ? dim + room : dim);
}

/// Of one sample, where the tensor is batched.
Strides logical_strides(const TensorRef& t) {
  const Strides& all = batch::physical(t)->storage().strides();
  Strides strides;
  for (int i = all.size() - t->dim(); i < all.size(); ++i) strides.push_back(all[i]);
  return strides;
}

constexpr Param kDimParams[] = {{"input", Kind::Tensor}, {"dim", Kind::OptInt, true}};

PyObject* size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static const Spec spec{"size", "size(Tensor input, int? dim=None)", kDimParams};
  return guarded([&]() -> PyObject* {
    const Shape& sizes = tensor_of(self)->sizes();
    if (!n && !kw) return wrap_size(sizes);
    Slots<2> a;
    parse(spec, a, self, args, n, kw);
    const auto dim = to_opt_int(spec, a, 1);
    if (!dim) return wrap_size(sizes);
    if (sizes.empty()) index_error("size: a 0-d tensor has no dimension ", *dim);
    return wrap(sizes[normal_dim("size", *dim, sizes.size())]);
  });
}
PyObject* stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static const Spec spec{"stride", "stride(Tensor input, int? dim=None)", kDimParams};
  return guarded([&]() -> PyObject* {
    const Strides strides = logical_strides(tensor_of(self));
    Slots<2> a;
    parse(spec, a, self, args, n, kw);
    const auto dim = to_opt_int(spec, a, 1);
    if (!dim) return wrap(strides);
    if (strides.empty()) index_error("stride: a 0-d tensor has no dimension ", *dim);
    return wrap(strides[normal_dim("stride", *dim, strides.size())]);
  });
}
PyObject* dim(PyObject* self, PyObject*) { return PyLong_FromLong(tensor_of(self)->dim()); }
PyObject* numel(PyObject* self, PyObject*) { return PyLong_FromLongLong(tensor_of(self)->numel()); }
PyObject* element_size(PyObject* self, PyObject*) { return PyLong_FromSize_t(item_size(tensor_of(self)->dtype())); }
PyObject* storage_offset(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(batch::physical(tensor_of(self))->storage().offset());
}
PyObject* is_contiguous(PyObject* self, PyObject*) {
  const TensorRef& t = tensor_of(self);
  if (TP_LIKELY(!t->is_batched())) return PyBool_FromLong(t->storage().is_contiguous());
  const Strides strides = logical_strides(t);
  std::int64_t step = 1;
  for (int i = t->dim() - 1; i >= 0; --i) {
    if (t->sizes()[i] > 1 && strides[i] != step) Py_RETURN_FALSE;
    step *= std::max<std::int64_t>(t->sizes()[i], 1);
  }
  Py_RETURN_TRUE;
}
PyObject* data_ptr(PyObject* self, PyObject*) {
  return PyLong_FromVoidPtr(batch::physical(tensor_of(self))->storage().raw());
}
PyObject* is_floating_point(PyObject* self, PyObject*) { return PyBool_FromLong(is_float(tensor_of(self)->dtype())); }
PyObject* is_complex_method(PyObject* self, PyObject*) { return PyBool_FromLong(is_complex(tensor_of(self)->dtype())); }
PyObject* is_signed_method(PyObject* self, PyObject*) { return PyBool_FromLong(is_signed(tensor_of(self)->dtype())); }
PyObject* is_inference(PyObject* self, PyObject*) {
  return PyBool_FromLong(batch::physical(tensor_of(self))->is_inference());
}
PyObject* is_view(PyObject* self, PyObject*) { return PyBool_FromLong(batch::physical(tensor_of(self))->is_view()); }

PyObject* item(PyObject* self, PyObject*) {
  return guarded([&] { return item_of(tensor_of(self), "item"); });
}

template <class F>
PyObject* list_of(std::int64_t n, const char* p, std::int64_t step, F&& item) {
  Owned list(PyList_New(n));
  if (!list) return nullptr;
  for (std::int64_t i = 0; i < n; ++i, p += step) {
    PyObject* v = item(p);
    if (!v) return nullptr;
    PyList_SET_ITEM(list.get(), i, v);
  }
  return list.release();
}

PyObject* nested_list(const Storage& s, int dim, const char* p) {
  const Dtype d = s.dtype();
  if (dim == s.dim()) return python_element(p, d);
  const std::int64_t n = s.size(dim), step = s.stride(dim) * std::int64_t(item_size(d));
  if (dim + 1 < s.dim()) return list_of(n, p, step, [&](const char* at) { return nested_list(s, dim + 1, at); });
  if (d == Dtype::F32)
    return list_of(n, p, step, [](const char* at) {
      float v;
      std::memcpy(&v, at, sizeof v);
      return PyFloat_FromDouble(double(v));
    });
  return list_of(n, p, step, [d](const char* at) { return python_element(at, d); });
}
PyObject* tolist(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    need_values(tensor_of(self), "tolist");
    const Storage& s = tensor_of(self)->storage();
    return nested_list(s, 0, s.raw());
  });
}

PyObject* complex_value(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Owned v(item_of(tensor_of(self), "complex"));
    if (!v || PyComplex_Check(v.get())) return v.release();
    return PyComplex_FromDoubles(PyFloat_AsDouble(v.get()), 0);
  });
}

PyObject* format(PyObject* self, PyObject* spec) {
  const TensorRef& t = tensor_of(self);
  if (PyUnicode_Check(spec) && PyUnicode_GET_LENGTH(spec) == 0) return PyObject_Str(self);
  return guarded([&]() -> PyObject* {
    if (t->dim() != 0) type_error("format: only a 0-d tensor takes a format; this one has sizes ", t->sizes());
    Owned v(item_of(t, "format"));
    return v ? PyObject_Format(v.get(), spec) : nullptr;
  });
}

PyObject* reversed(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    if (t->dim() == 0) return wrap(t);
    Dims dims;
    for (int i = 0; i < t->dim(); ++i) dims.push_back(i);
    Owned flip(PyObject_GetAttrString(self, "flip"));
    Owned arg(wrap(dims));
    return flip && arg ? PyObject_CallOneArg(flip.get(), arg.get()) : nullptr;
  });
}

// ---- resizing --------------------------------------------------------------------------------------------------------
/// The same memory where it is large enough; elements that a larger one adds are not initialised.
void resize(const char* op, const TensorRef& t, const Shape& sizes) {
  if (t->requires_grad())
    runtime_error(op, ": cannot resize variables that require grad; this one has sizes ", t->sizes(),
                  ", asked for are ", sizes, "; resize t.detach(), or take a view");
  if (t->has_tangent()) runtime_error(op, ": cannot resize a tensor that carries a tangent; unpack its dual first");
  std::int64_t count = 1;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) runtime_error(op, ": sizes must not be negative, got ", sizes);
    if (__builtin_mul_overflow(count, sizes[i], &count)) runtime_error(op, ": sizes ", sizes, " are too large");
  }
  const Storage& s = t->storage();
  if (s.sizes() == sizes) return;
  const std::int64_t held = std::int64_t(s.block()->nbytes / item_size(s.dtype())) - s.offset();
  if (count <= held) {
    t->set_storage(s.with_geometry(sizes, contiguous_strides(sizes), s.offset()));
    t->clear_reshaped();  // no op follows that would
    return;
  }
  if (s.block()->owner)
    runtime_error(op, ": the memory belongs to another library and holds ", held, " elements, asked for are ", count,
                  "; clone the tensor first");
  Storage grown = empty(sizes, s.dtype());
  if (held > 0) std::memcpy(grown.raw(), s.raw(), std::size_t(held) * item_size(s.dtype()));
  t->set_storage(std::move(grown));
}

PyObject* resize_method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"input", Kind::Tensor}, {"size", Kind::IntList}};
  static const Spec spec{"resize_", "resize_(Tensor input, int[] size)", params};
  return guarded([&]() -> PyObject* {
    Slots<2> a;
    parse(spec, a, self, args, n, kw);
    resize("resize_", tensor_of(self), to_dims(spec, a, 1));
    Py_INCREF(self);
    return self;
  });
}
PyObject* resize_as(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"input", Kind::Tensor}, {"other", Kind::Tensor}};
  static const Spec spec{"resize_as_", "resize_as_(Tensor input, Tensor other)", params};
  return guarded([&]() -> PyObject* {
    Slots<2> a;
    parse(spec, a, self, args, n, kw);
    resize("resize_as_", tensor_of(self), to_tensor(spec, a, 1).ref()->sizes());
    Py_INCREF(self);
    return self;
  });
}

// PyTorch's older name of the reflected quotient.
PyObject* reflected_quotient(PyObject* self, PyObject* other) { return PyNumber_TrueDivide(other, self); }

// Copies and pickles are arranged in Python; only the names are known here.
PyObject* call_serialization(const char* function, PyObject* self, PyObject* arg) {
  return guarded([&]() -> PyObject* {
    Owned f = import_attr("tensorplay._serialization", function);
    return arg ? PyObject_CallFunctionObjArgs(f.get(), self, arg, nullptr) : PyObject_CallOneArg(f.get(), self);
  });
}
PyObject* reduce_ex(PyObject* self, PyObject* protocol) { return call_serialization("reduce", self, protocol); }
PyObject* deepcopy(PyObject* self, PyObject* memo) { return call_serialization("deepcopy", self, memo); }
PyObject* shallow_copy(PyObject* self, PyObject*) { return call_serialization("copy", self, nullptr); }

// ---- the array API standard ------------------------------------------------------------------------------------------
PyObject* array_namespace(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"self", Kind::Tensor}, {"api_version", Kind::OptStr, true, true}};
  static const Spec spec{"__array_namespace__", "__array_namespace__(Tensor self, *, str? api_version=None)", params};
  return guarded([&]() -> PyObject* {
    Slots<2> a;
    parse(spec, a, self, args, n, kw);
    Owned f = import_attr("tensorplay.array_api", "_namespace");
    return PyObject_CallFunctionObjArgs(f.get(), self, a.has(1) ? a[1] : Py_None, nullptr);
  });
}
PyObject* to_device_method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {
      {"self", Kind::Tensor}, {"device", Kind::Device}, {"stream", Kind::Any, true, true}};
  static const Spec spec{"to_device", "to_device(Tensor self, device, *, stream=None)", params};
  return guarded([&]() -> PyObject* {
    Slots<3> a;
    parse(spec, a, self, args, n, kw);
    to_device(spec, 1, a[1]);
    if (a.given(2)) value_error("to_device: a cpu tensor has no stream; pass stream=None");
    Py_INCREF(self);
    return self;
  });
}

PyObject* make_subclass(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"cls", Kind::Any}, {"data", Kind::Tensor}, {"requires_grad", Kind::Bool, true}};
  static const Spec spec{"_make_subclass", "_make_subclass(type cls, Tensor data, bool requires_grad=False)", params};
  return guarded([&]() -> PyObject* {
    Slots<3> a;
    parse(spec, a, nullptr, args, n, kw);
    if (!PyType_Check(a[0]) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(a[0]), &TensorType))
      type_error("_make_subclass: cls must be a subclass of Tensor");
    const TensorArg data = to_tensor(spec, a, 1);
    need_values(data.ref(), "_make_subclass");
    TensorRef t = TensorImpl::make(data.ref()->storage());
    t->set_inference(data.ref()->is_inference() && modes::any(modes::kInference));
    if (to_bool(spec, a, 2, false)) set_requires_grad_flag(t, true);
    return new_tensor_object(reinterpret_cast<PyTypeObject*>(a[0]), std::move(t));
  });
}
PyObject* as_subclass(PyObject* self, PyObject* cls) {
  return guarded([&]() -> PyObject* {
    if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &TensorType))
      type_error("as_subclass: the argument must be a subclass of Tensor");
    need_values(tensor_of(self), "as_subclass");
    return new_tensor_object(reinterpret_cast<PyTypeObject*>(cls), alias_of(tensor_of(self)));
  });
}

// ---- iteration -------------------------------------------------------------------------------------------------------
struct Iterator {
  PyObject_HEAD
  PyObject* tensor;
  Py_ssize_t at, n;
};
void iterator_dealloc(PyObject* o) {
  Py_XDECREF(reinterpret_cast<Iterator*>(o)->tensor);
  PyObject_Free(o);
}
PyObject* iterator_next(PyObject* o) {
  Iterator* it = reinterpret_cast<Iterator*>(o);
  if (it->at >= it->n) return nullptr;
  return guarded([&] { return kept(wrap(ops::select(tensor_of(it->tensor), 0, it->at++)), it->tensor); });
}
PyTypeObject* iterator_type() {
  static PyTypeObject type = {};
  if (!type.tp_name) {
    type.tp_name = "tensorplay._TensorIterator";
    type.tp_basicsize = sizeof(Iterator);
    type.tp_flags = Py_TPFLAGS_DEFAULT;
    type.tp_dealloc = iterator_dealloc;
    type.tp_iter = PyObject_SelfIter;
    type.tp_iternext = iterator_next;
    ready(type);
  }
  return &type;
}

}  // namespace

PyObject* item_of(const TensorRef& t, const char* op) {
  need_values(t, op);
  const Storage& s = t->storage();
  if (s.numel() != 1)
    runtime_error(op, ": a tensor with ", s.numel(),
                  " elements cannot be converted to a number; index one element, or use tolist()");
  return python_element(s.raw(), s.dtype());
}

PyObject* tensor_iter(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    if (t->dim() == 0) type_error("iteration over a 0-d tensor: it holds one value; item() gives it");
    Iterator* it = PyObject_New(Iterator, iterator_type());
    if (!it) return nullptr;
    Py_INCREF(self);
    it->tensor = self;
    it->at = 0;
    it->n = t->storage().size(0);
    return reinterpret_cast<PyObject*>(it);
  });
}

Py_ssize_t tensor_length(PyObject* self) {
  const TensorRef& t = tensor_of(self);
  if (t->dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return t->storage().size(0);
}

int tensor_contains(PyObject* self, PyObject* value) {
  return guarded_int([&]() -> int {
    if (!is_tensor(value) && number_kind(value) == Number::None)
      type_error("in: a tensor contains numbers or tensors, not ", Py_TYPE(value)->tp_name);
    Owned equal(PyObject_RichCompare(self, value, Py_EQ));
    if (!equal) host_error();
    if (!is_tensor(equal.get())) return PyObject_IsTrue(equal.get());
    need_values(tensor_of(equal.get()), "bool");
    const Storage& s = tensor_of(equal.get())->storage();
    for (std::int64_t i = 0; i < s.numel(); ++i)
      if (read_element(s, i).to_bool()) return 1;
    return 0;
  });
}

PyObject* tensor_float(PyObject* self) {
  return guarded([&]() -> PyObject* {
    Owned v(item_of(tensor_of(self), "float"));
    return v ? PyNumber_Float(v.get()) : nullptr;
  });
}
PyObject* tensor_int(PyObject* self) {
  return guarded([&]() -> PyObject* {
    Owned v(item_of(tensor_of(self), "int"));
    return v ? PyNumber_Long(v.get()) : nullptr;
  });
}
PyObject* tensor_index(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    if (!is_integral(t->dtype()) || t->numel() != 1)
      type_error("index: only an integer tensor of one element converts to an index; this one is ",
                 dtype_name(t->dtype()), t->sizes());
    Owned v(item_of(t, "index"));
    return v ? PyNumber_Long(v.get()) : nullptr;
  });
}
int tensor_bool(PyObject* self) {
  return guarded_int([&]() -> int {
    const TensorRef& t = tensor_of(self);
    need_values(t, "bool");
    if (t->numel() == 0) runtime_error("bool: the truth of an empty tensor is ambiguous; compare numel() with 0");
    if (t->numel() > 1)
      runtime_error("bool: the truth of a tensor with more than one value is ambiguous; use any() or all()");
    return read_element(t->storage(), 0).to_bool();
  });
}

namespace {
PyObject* call_printing(const char* function, PyObject* self) {
  return guarded([&]() -> PyObject* {
    Owned f = import_attr("tensorplay._printing", function);
    return PyObject_CallOneArg(f.get(), self);
  });
}
}  // namespace
PyObject* tensor_repr(PyObject* self) { return call_printing("tensor_repr", self); }
// str() of a 0-d tensor prints as its repr does.
PyObject* tensor_str(PyObject* self) { return PyObject_Repr(self); }

PyMethodDef tensor_methods[] = {
    {"size", fast(size), METH_FASTCALL | METH_KEYWORDS,
     "size($self, /, dim=None)\n--\n\nSizes, or the size of one dimension."},
    {"stride", fast(stride), METH_FASTCALL | METH_KEYWORDS, "stride($self, /, dim=None)\n--\n\nStrides in elements."},
    {"dim", dim, METH_NOARGS, "dim($self, /)\n--\n\nNumber of dimensions."},
    {"ndimension", dim, METH_NOARGS, "ndimension($self, /)\n--\n\nNumber of dimensions."},
    {"numel", numel, METH_NOARGS, "numel($self, /)\n--\n\nNumber of elements."},
    {"nelement", numel, METH_NOARGS, "nelement($self, /)\n--\n\nNumber of elements."},
    {"element_size", element_size, METH_NOARGS, "element_size($self, /)\n--\n\nBytes per element."},
    {"storage_offset", storage_offset, METH_NOARGS,
     "storage_offset($self, /)\n--\n\nPlace of the first element in its memory."},
    {"is_contiguous", is_contiguous, METH_NOARGS,
     "is_contiguous($self, /)\n--\n\nWhether elements lie in order without gaps."},
    {"data_ptr", data_ptr, METH_NOARGS, "data_ptr($self, /)\n--\n\nAddress of the first element."},
    {"is_floating_point", is_floating_point, METH_NOARGS,
     "is_floating_point($self, /)\n--\n\nWhether the dtype is real floating."},
    {"is_complex", is_complex_method, METH_NOARGS, "is_complex($self, /)\n--\n\nWhether the dtype is complex."},
    {"is_signed", is_signed_method, METH_NOARGS, "is_signed($self, /)\n--\n\nWhether values can be negative."},
    {"is_inference", is_inference, METH_NOARGS,
     "is_inference($self, /)\n--\n\nWhether it was made under inference_mode."},
    {"_is_view", is_view, METH_NOARGS, "_is_view($self, /)\n--\n\nWhether the tensor is a view of another."},
    {"item", item, METH_NOARGS, "item($self, /)\n--\n\nThe value of a one-element tensor as a Python number."},
    {"tolist", tolist, METH_NOARGS, "tolist($self, /)\n--\n\nThe values as nested lists of Python numbers."},
    {"__complex__", complex_value, METH_NOARGS, nullptr},
    {"__format__", format, METH_O, nullptr},
    {"__rdiv__", reflected_quotient, METH_O, "__rdiv__($self, other, /)\n--\n\nother / self."},
    {"__reversed__", reversed, METH_NOARGS, nullptr},
    {"__reduce_ex__", reduce_ex, METH_O, nullptr},
    {"__deepcopy__", deepcopy, METH_O, nullptr},
    {"__copy__", shallow_copy, METH_NOARGS, nullptr},
    {"__array_namespace__", fast(array_namespace), METH_FASTCALL | METH_KEYWORDS,
     "__array_namespace__($self, /, *, api_version=None)\n--\n\nThe module tensorplay.array_api."},
    {"to_device", fast(to_device_method), METH_FASTCALL | METH_KEYWORDS,
     "to_device($self, device, /, *, stream=None)\n--\n\nThe tensor itself: there is one device."},
    {"_make_subclass", fast(make_subclass), METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, requires_grad=False)\n--\n\nA tensor of a subclass over the memory of `data`."},
    {"resize_", fast(resize_method), METH_FASTCALL | METH_KEYWORDS,
     "resize_($self, /, *size)\n--\n\nChanges the sizes in place, keeping the memory where it is large enough; refused "
     "for a tensor that requires grad. What a larger one adds is not initialised."},
    {"resize_as_", fast(resize_as), METH_FASTCALL | METH_KEYWORDS,
     "resize_as_($self, /, other)\n--\n\nChanges the sizes in place to those of `other`."},
    {"as_subclass", as_subclass, METH_O,
     "as_subclass($self, cls, /)\n--\n\nThe same values as an instance of a subclass."},
    {}};

}  // namespace tp::python
