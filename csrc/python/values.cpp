// Single elements of any dtype, and small chores of module building.
#include "python/values.h"

#include <cstring>

#include "core/half.h"

namespace tp::python {
namespace {

template <class T>
T load(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void store(char* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

std::int64_t offset_of(const Storage& s, std::int64_t at) {
  if (s.is_contiguous()) return at;
  std::int64_t offset = 0;
  for (int i = s.dim() - 1; i >= 0; --i) {
    offset += at % s.size(i) * s.stride(i);
    at /= s.size(i);
  }
  return offset;
}

}  // namespace

Scalar read_element(const Storage& s, std::int64_t at) {
  const char* p = s.raw() + offset_of(s, at) * std::int64_t(item_size(s.dtype()));
  switch (s.dtype()) {
    case Dtype::Bool: return Scalar(bool(*p != 0));
    case Dtype::U8: return Scalar(std::int64_t(load<std::uint8_t>(p)));
    case Dtype::I8: return Scalar(std::int64_t(load<std::int8_t>(p)));
    case Dtype::I16: return Scalar(std::int64_t(load<std::int16_t>(p)));
    case Dtype::I32: return Scalar(std::int64_t(load<std::int32_t>(p)));
    case Dtype::I64: return Scalar(load<std::int64_t>(p));
    case Dtype::U16: return Scalar(std::int64_t(load<std::uint16_t>(p)));
    case Dtype::U32: return Scalar(std::int64_t(load<std::uint32_t>(p)));
    case Dtype::U64: return Scalar(std::int64_t(load<std::uint64_t>(p)));
    case Dtype::F16: return Scalar(double(float(half::from_bits(load<std::uint16_t>(p)))));
    case Dtype::BF16: return Scalar(double(float(bfloat16::from_bits(load<std::uint16_t>(p)))));
    case Dtype::F32: return Scalar(double(load<float>(p)));
    case Dtype::F64: return Scalar(load<double>(p));
    case Dtype::C64: return Scalar(double(load<float>(p)), double(load<float>(p + 4)));
    case Dtype::C128: return Scalar(load<double>(p), load<double>(p + 8));
  }
  return Scalar();
}

PyObject* python_element(const char* p, Dtype d) {
  switch (d) {
    case Dtype::Bool: return PyBool_FromLong(*p != 0);
    case Dtype::U8: return PyLong_FromLong(load<std::uint8_t>(p));
    case Dtype::I8: return PyLong_FromLong(load<std::int8_t>(p));
    case Dtype::I16: return PyLong_FromLong(load<std::int16_t>(p));
    case Dtype::I32: return PyLong_FromLong(load<std::int32_t>(p));
    case Dtype::I64: return PyLong_FromLongLong(load<std::int64_t>(p));
    case Dtype::U16: return PyLong_FromLong(load<std::uint16_t>(p));
    case Dtype::U32: return PyLong_FromUnsignedLong(load<std::uint32_t>(p));
    case Dtype::U64: return PyLong_FromUnsignedLongLong(load<std::uint64_t>(p));
    case Dtype::F16: return PyFloat_FromDouble(double(float(half::from_bits(load<std::uint16_t>(p)))));
    case Dtype::BF16: return PyFloat_FromDouble(double(float(bfloat16::from_bits(load<std::uint16_t>(p)))));
    case Dtype::F32: return PyFloat_FromDouble(double(load<float>(p)));
    case Dtype::F64: return PyFloat_FromDouble(load<double>(p));
    case Dtype::C64: return PyComplex_FromDoubles(double(load<float>(p)), double(load<float>(p + 4)));
    case Dtype::C128: return PyComplex_FromDoubles(load<double>(p), load<double>(p + 8));
  }
  return nullptr;
}

void write_element(char* p, Dtype d, const Scalar& v) {
  switch (d) {
    case Dtype::Bool: *p = v.to_bool(); break;
    case Dtype::U8:
    case Dtype::I8: store(p, std::uint8_t(v.to_int())); break;
    case Dtype::I16:
    case Dtype::U16: store(p, std::uint16_t(v.to_int())); break;
    case Dtype::I32:
    case Dtype::U32: store(p, std::uint32_t(v.to_int())); break;
    case Dtype::I64:
    case Dtype::U64: store(p, v.to_int()); break;
    case Dtype::F16: store(p, half(v.to_double()).bits); break;
    case Dtype::BF16: store(p, bfloat16(v.to_double()).bits); break;
    case Dtype::F32: store(p, float(v.to_double())); break;
    case Dtype::F64: store(p, v.to_double()); break;
    case Dtype::C64: store(p, float(v.to_double())), store(p + 4, float(v.imag())); break;
    case Dtype::C128: store(p, v.to_double()), store(p + 8, v.imag()); break;
  }
}

void refuse_batched_values(const char* op) {
  const std::string_view name = op;
  if (name == "bool")
    runtime_error(
        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow (bool()). We don't "
        "support that yet: each sample may take another branch. Compute both and choose with tensorplay.where.");
  if (name == "item" || name == "float" || name == "int" || name == "complex" || name == "index")
    runtime_error(
        "vmap: It looks like you're calling .item() on a Tensor (", op,
        "). We don't support vmap over calling .item() on a Tensor, please try to rewrite what you're doing with other "
        "operations (tensorplay.where, gather); a batched tensor holds one value for each sample.");
  runtime_error(op, ": the values of a batched tensor can't be read inside vmap; return it from the mapped function");
}

void add_object(PyObject* module, const char* name, PyObject* object) {
  if (!object || PyObject_SetAttrString(module, name, object) < 0) host_error();
}

void ready(PyTypeObject& type) {
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(&type), 1);  // static and zeroed until now
  if (PyType_Ready(&type) < 0) host_error();
}

Owned import_attr(const char* module, const char* name) {
  Owned m(PyImport_ImportModule(module));
  if (!m) host_error();
  Owned a(PyObject_GetAttrString(m.get(), name));
  if (!a) host_error();
  return a;
}

}  // namespace tp::python
