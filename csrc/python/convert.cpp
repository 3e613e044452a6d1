// Python values to C++ values and back: numbers, lists, dtypes, devices, results. Knows no op.
#include <algorithm>
#include <cstring>

#include "ops/formula.h"
#include "python/args.h"
#include "python/op_names.h"
#include "python/values.h"

namespace tp::python {

Number number_kind(PyObject* o) {
  if (PyFloat_CheckExact(o)) return Number::Float;
  if (PyLong_CheckExact(o)) return Number::Int;
  if (PyBool_Check(o)) return Number::Bool;
  if (PyLong_Check(o)) return Number::Int;
  if (PyFloat_Check(o)) return Number::Float;
  if (PyComplex_Check(o)) return Number::Complex;
  // NumPy's scalars are told by the names of their types, so that NumPy need not be loaded.
  const char* name = Py_TYPE(o)->tp_name;
  if (std::strncmp(name, "numpy.", 6) != 0) return Number::None;
  name += 6;
  const auto starts = [name](const char* prefix) { return !std::strncmp(name, prefix, std::strlen(prefix)); };
  if (starts("bool")) return Number::Bool;
  if (starts("int") || starts("uint") || starts("long") || starts("ulong") || starts("short") || starts("ushort") ||
      starts("byte") || starts("ubyte"))
    return starts("longdouble") ? Number::Float : Number::Int;
  if (starts("float") || starts("half") || starts("single") || starts("double")) return Number::Float;
  if (starts("complex") || starts("clongdouble") || starts("csingle") || starts("cdouble")) return Number::Complex;
  return Number::None;
}

namespace {
std::int64_t int64_of(PyObject* o) {
#if PY_VERSION_HEX >= 0x030C0000
  if (TP_LIKELY(PyUnstable_Long_IsCompact(reinterpret_cast<PyLongObject*>(o))))
    return PyUnstable_Long_CompactValue(reinterpret_cast<PyLongObject*>(o));
#else
  const Py_ssize_t digits = Py_SIZE(o);  // signed as the number
  if (TP_LIKELY(digits >= -1 && digits <= 1))
    return digits * std::int64_t(reinterpret_cast<PyLongObject*>(o)->ob_digit[0]);
#endif
  const long long v = PyLong_AsLongLong(o);
  if (TP_UNLIKELY(v == -1 && PyErr_Occurred())) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) host_error();
    PyErr_Clear();
    Owned text(PyObject_Str(o));
    if (!text) PyErr_Clear();  // thousands of digits
    const char* digits = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    runtime_error("the integer ", digits && std::strlen(digits) < 60 ? digits : "given", " does not fit into 64 bits");
  }
  return v;
}
}  // namespace

Scalar scalar_from(PyObject* o) {
  switch (number_kind(o)) {
    case Number::Bool: {
      const int v = PyObject_IsTrue(o);
      if (v < 0) host_error();
      return Scalar(bool(v));
    }
    case Number::Int: {
      Owned index;
      if (!PyLong_Check(o)) {
        index = Owned(PyNumber_Index(o));
        if (!index) host_error();
        o = index.get();
      }
      return Scalar(int64_of(o));
    }
    case Number::Float: {
      const double v = PyFloat_AsDouble(o);
      if (v == -1 && PyErr_Occurred()) host_error();
      return Scalar(v);
    }
    default: {
      const Py_complex v = PyComplex_AsCComplex(o);
      if (v.real == -1 && PyErr_Occurred()) host_error();
      return Scalar(v.real, v.imag);
    }
  }
}

TensorRef wrapped_number(PyObject* o) {
  // The operand of `x * 2.0` seldom outlives its op: the last one of each kind is written over while nobody else has it.
  // Never marked as an inference tensor, since it may be used again outside.
  static TensorRef last[2];
  const Scalar v = scalar_from(o);
  if (TP_UNLIKELY(v.category() != Category::Integer && v.category() != Category::Float))
    return TensorImpl::make(ops::number_storage(v));
  const Dtype d = v.category() == Category::Integer ? Dtype::I64 : Dtype::F64;
  TensorRef& t = last[d == Dtype::I64];
  if (t && t->use_count() == 1 && t->dtype() == d && t->storage().unique() && !t->host_object && !t->is_special()) {
    write_element(t->storage().raw(), d, v);
    return t;
  }
  t = TensorImpl::make(ops::number_storage(v));
  return t;
}

bool is_numpy_array(PyObject* o) {
  for (PyTypeObject* t = Py_TYPE(o); t; t = t->tp_base)
    if (!std::strcmp(t->tp_name, "numpy.ndarray")) return true;
  return false;
}

TensorArg operand(const Spec& spec, std::size_t i, PyObject* o) {
  if (o && spec.tensors >= 2 && !spec.params[i].keyword_only) {
    if (number_kind(o) != Number::None) return TensorArg(wrapped_number(o));
    if (is_numpy_array(o)) return TensorArg(tensor_from_array(o, spec.op));
  }
  bad_argument(spec, i, o, nullptr);
}

OperandArg operator_operand_slow(PyObject* o) {
  if (number_kind(o) != Number::None) return {TensorArg(wrapped_number(o)), true};
  if (is_numpy_array(o)) return {TensorArg(tensor_from_array(o, "operator")), true};
  return {TensorArg(), false};
}

Scalar to_scalar(const Spec& spec, std::size_t i, PyObject* o) {
  if (TP_LIKELY(o != nullptr)) {
    if (number_kind(o) != Number::None) return scalar_from(o);
    if (is_tensor(o) && tensor_of(o)->dim() == 0 && !lost_with(o)) {
      need_values(tensor_of(o), "item");
      return read_element(tensor_of(o)->storage(), 0);
    }
  }
  bad_argument(spec, i, o, nullptr);
}

std::int64_t to_int(const Spec& spec, std::size_t i, PyObject* o) {
  if (TP_LIKELY(o != nullptr)) {
    if (TP_LIKELY(PyLong_Check(o))) return int64_of(o);
    if (PyIndex_Check(o) && !is_numpy_array(o)) {
      Owned index(PyNumber_Index(o));
      if (index) return to_int(spec, i, index.get());
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) host_error();
      PyErr_Clear();
    }
  }
  bad_argument(spec, i, o, nullptr);
}

double to_double(const Spec& spec, std::size_t i, PyObject* o) {
  if (TP_LIKELY(o != nullptr)) {
    if (TP_LIKELY(PyFloat_Check(o))) return PyFloat_AS_DOUBLE(o);
    const Number k = number_kind(o);
    if (k != Number::None && k != Number::Complex) return scalar_from(o).to_double();
    if (is_tensor(o) && tensor_of(o)->dim() == 0 && !is_complex(tensor_of(o)->dtype()) && !lost_with(o)) {
      need_values(tensor_of(o), "float");
      return read_element(tensor_of(o)->storage(), 0).to_double();
    }
    if (k == Number::None && PyIndex_Check(o) && !is_numpy_array(o)) return double(to_int(spec, i, o));
  }
  bad_argument(spec, i, o, nullptr);
}

bool to_bool(const Spec& spec, std::size_t i, PyObject* o) {
  if (o == Py_True) return true;
  if (o == Py_False) return false;
  if (o && number_kind(o) == Number::Bool) return scalar_from(o).to_bool();
  bad_argument(spec, i, o, nullptr);
}

std::string_view to_str(const Spec& spec, std::size_t i, PyObject* o) {
  if (!o || !PyUnicode_Check(o)) bad_argument(spec, i, o, nullptr);
  Py_ssize_t n = 0;
  const char* s = PyUnicode_AsUTF8AndSize(o, &n);
  if (!s) host_error();
  return {s, std::size_t(n)};
}

Dtype to_dtype(const Spec& spec, std::size_t i, PyObject* o) {
  Dtype d;
  if (o && dtype_from(o, &d)) return d;
  bad_argument(spec, i, o, nullptr);
}

Device to_device(const Spec& spec, std::size_t i, PyObject* o) {
  if (!o || o == Py_None || Py_TYPE(o) == &DeviceType) return Device::CPU;
  if (!PyUnicode_Check(o)) bad_argument(spec, i, o, "a device such as 'cpu'");
  return device_from(spec.op, o);
}

Dims to_dims(const Spec& spec, std::size_t i, PyObject* o) {
  if (o == Py_None && spec.params[i].has_default) return {};  // dim=None: all, as the empty default says
  if (TP_LIKELY(o && (PyTuple_Check(o) || PyList_Check(o)))) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    Dims d;
    for (Py_ssize_t k = 0; k < n && k < PySequence_Fast_GET_SIZE(o); ++k) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, k);
      d.push_back(item == Py_None && spec.params[i].kind == Kind::SizeList ? ops::kOwnSize : to_int(spec, i, item));
    }
    return d;
  }
  return Dims{to_int(spec, i, o)};
}

Dims to_dims(const Spec& spec, std::size_t i, PyObject* o, const Spread& spread) {
  if (!spread.ints || spread.slot != i) return to_dims(spec, i, o);
  Dims d;
  d.resize(int(spread.count));
  std::int64_t* to = d.data();
  for (Py_ssize_t k = 0; k < spread.count; ++k) to[k] = int64_of(spread.ints[k]);
  return d;
}

std::vector<double> to_doubles(const Spec& spec, std::size_t i, PyObject* o) {
  if (o && !PyTuple_Check(o) && !PyList_Check(o)) return {to_double(spec, i, o)};
  if (!o) bad_argument(spec, i, o, nullptr);
  std::vector<double> v;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
    v.push_back(to_double(spec, i, PySequence_Fast_GET_ITEM(o, k)));
  return v;
}

PooledVec<TensorRef> to_tensor_list(const Spec& spec, std::size_t i, PyObject* o, bool allow_none) {
  if (!o || (!PyTuple_Check(o) && !PyList_Check(o))) {
    if (o && PyIter_Check(o))
      bad_argument(spec, i, o, "a list or tuple of Tensors (list(...) makes one of an iterator)");
    bad_argument(spec, i, o, nullptr);
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  PooledVec<TensorRef> tensors;
  tensors.reserve(std::size_t(n));
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, k);
    if (is_tensor(item))
      tensors.push_back(tensor_of(item));
    else if (spec.params[i].kind == Kind::TensorArgs)
      type_error(spec.op, ": argument ", k, " must be a Tensor, not ", Py_TYPE(item)->tp_name);
    else if (allow_none && item == Py_None)
      tensors.emplace_back();
    else
      type_error(spec.op, ": item ", k, " of argument '", spec.params[i].name, "' must be Tensor",
                 allow_none ? " or None" : "", ", not ", Py_TYPE(item)->tp_name,
                 "; signature: ", public_signature(spec));
  }
  return tensors;
}

PyObject* wrap_list(std::span<const TensorRef> tensors) {
  Owned tuple(PyTuple_New(Py_ssize_t(tensors.size())));
  if (!tuple) return nullptr;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    PyObject* t = wrap(tensors[i]);
    if (!t) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), t);
  }
  return tuple.release();
}

PyObject* wrap(const Scalar& s) {
  switch (s.category()) {
    case Category::Bool: return PyBool_FromLong(s.to_bool());
    case Category::Integer: return PyLong_FromLongLong(s.to_int());
    case Category::Float: return PyFloat_FromDouble(s.to_double());
    default: return PyComplex_FromDoubles(s.to_double(), s.imag());
  }
}

PyObject* wrap(const Dims& d) {
  PyObject* tuple = PyTuple_New(d.size());
  if (!tuple) return nullptr;
  for (int i = 0; i < d.size(); ++i) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(d[i]));
  return tuple;
}

PyObject* wrap_chosen(std::span<const TensorRef> tensors, std::initializer_list<bool> asked) {
  std::vector<TensorRef> chosen;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (asked.begin()[i]) chosen.push_back(tensors[i]);
  return chosen.size() == 1 ? wrap(std::move(chosen[0])) : wrap_list(chosen);
}

namespace {
// linalg.svd's results are of the type linalg_svd.
std::string type_name(const char* op) {
  std::string name = public_name(op);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}
}  // namespace

PyObject* wrap_named(const ResultType& type, std::span<const TensorRef> tensors) {
  if (TP_UNLIKELY(!type.type)) {
    std::vector<PyStructSequence_Field> fields;
    for (const char* f : type.fields) fields.push_back({f, nullptr});
    fields.push_back({nullptr, nullptr});
    // Kept for the life of the process: the type points to the name.
    const std::string* name = new std::string(std::string("tensorplay.return_types.") + type_name(type.op));
    PyStructSequence_Desc desc{name->c_str(), nullptr, fields.data(), int(type.fields.size())};
    type.type = PyStructSequence_NewType(&desc);
    if (!type.type) return nullptr;
  }
  Owned result(PyStructSequence_New(type.type));
  if (!result) return nullptr;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    PyObject* t = wrap(tensors[i]);
    if (!t) return nullptr;
    PyStructSequence_SET_ITEM(result.get(), Py_ssize_t(i), t);
  }
  return result.release();
}

}  // namespace tp::python
