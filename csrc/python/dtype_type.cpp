// The Python types dtype, device and Size, and the module functions about dtypes. Knows no tensor but its size.
#include <cctype>
#include <cstring>
#include <string>

#include "python/module.h"

namespace tp::python {

PyTypeObject DtypeType = {};
PyTypeObject DeviceType = {};
PyTypeObject SizeType = {};

namespace {

DtypeObject dtypes[kNumDtypes];
DeviceObject cpu;

Dtype self_dtype(PyObject* o) { return reinterpret_cast<DtypeObject*>(o)->value; }

PyObject* dtype_repr(PyObject* o) {
  return PyUnicode_FromFormat("tensorplay.%s", std::string(dtype_name(self_dtype(o))).c_str());
}
PyObject* dtype_reduce(PyObject* o, PyObject*) {
  return PyUnicode_FromString(std::string(dtype_name(self_dtype(o))).c_str());
}
PyObject* dtype_is_floating_point(PyObject* o, void*) { return PyBool_FromLong(is_float(self_dtype(o))); }
PyObject* dtype_is_complex(PyObject* o, void*) { return PyBool_FromLong(is_complex(self_dtype(o))); }
PyObject* dtype_is_signed(PyObject* o, void*) { return PyBool_FromLong(is_signed(self_dtype(o))); }
PyObject* dtype_itemsize(PyObject* o, void*) { return PyLong_FromSize_t(item_size(self_dtype(o))); }
PyObject* dtype_get_name(PyObject* o, void*) {
  return PyUnicode_FromString(std::string(dtype_name(self_dtype(o))).c_str());
}
PyObject* dtype_to_real(PyObject* o, PyObject*) { return wrap(real_dtype(self_dtype(o))); }
PyObject* dtype_to_complex(PyObject* o, PyObject*) { return wrap(complex_dtype(self_dtype(o))); }

PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS, "to_real($self, /)\n--\n\nThe real dtype of the same precision."},
    {"to_complex", dtype_to_complex, METH_NOARGS,
     "to_complex($self, /)\n--\n\nThe complex dtype of the same precision."},
    {}};
PyGetSetDef dtype_attributes[] = {
    {"is_floating_point", dtype_is_floating_point, nullptr, "Whether values are real floating-point numbers.", nullptr},
    {"is_complex", dtype_is_complex, nullptr, "Whether values are complex numbers.", nullptr},
    {"is_signed", dtype_is_signed, nullptr, "Whether values can be negative.", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes per element.", nullptr},
    {"name", dtype_get_name, nullptr, "The name without the package.", nullptr},
    {}};

PyObject* device_repr(PyObject*) { return PyUnicode_FromString("device(type='cpu')"); }
PyObject* device_str(PyObject*) { return PyUnicode_FromString("cpu"); }
PyObject* device_type_name(PyObject*, void*) { return PyUnicode_FromString("cpu"); }
PyObject* device_index(PyObject*, void*) { Py_RETURN_NONE; }
PyObject* device_reduce(PyObject* o, PyObject*) { return Py_BuildValue("(O(s))", Py_TYPE(o), "cpu"); }
PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", "index", nullptr};
  PyObject *type = nullptr, *index = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type, &index))
    return nullptr;
  return guarded([&]() -> PyObject* {
    if (Py_TYPE(type) != &DeviceType) device_from("device", type);
    Py_INCREF(device_object());
    return device_object();
  });
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || Py_TYPE(a) != Py_TYPE(b)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong(op == Py_EQ);
}
Py_hash_t device_hash(PyObject*) { return 0x637075; }

PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr}, {}};
PyGetSetDef device_attributes[] = {{"type", device_type_name, nullptr, "Kind of device: 'cpu'.", nullptr},
                                   {"index", device_index, nullptr, "Number of the device; None for the cpu.", nullptr},
                                   {}};

PyObject* size_numel(PyObject* self, PyObject*) {
  long long n = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) n *= PyLong_AsLongLong(PyTuple_GET_ITEM(self, i));
  return PyErr_Occurred() ? nullptr : PyLong_FromLongLong(n);
}
PyObject* size_repr(PyObject* self) {
  Owned list(PySequence_List(self));
  return list ? PyUnicode_FromFormat("tensorplay.Size(%R)", list.get()) : nullptr;
}
PyObject* size_from_tuple(PyObject* tuple) {
  if (!tuple || !PyTuple_Check(tuple)) return tuple;
  Owned own(tuple);
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&SizeType), tuple);
}
// Slices and sums of sizes are sizes.
PyObject* size_subscript(PyObject* self, PyObject* key) {
  PyObject* r = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
  return PySlice_Check(key) ? size_from_tuple(r) : r;
}
PyObject* size_concat(PyObject* a, PyObject* b) {
  return size_from_tuple(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* size_repeat(PyObject* a, Py_ssize_t n) {
  return size_from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
}
PyObject* size_reduce(PyObject* self, PyObject*) {
  Owned t(PySequence_Tuple(self));
  Owned plain(t ? PyTuple_GetSlice(t.get(), 0, PyTuple_GET_SIZE(t.get())) : nullptr);
  return plain ? Py_BuildValue("(O(N))", &SizeType, PySequence_List(plain.get())) : nullptr;
}
PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "numel($self, /)\n--\n\nNumber of elements of a tensor of this size."},
    {"__reduce__", size_reduce, METH_NOARGS, nullptr},
    {}};
PyMappingMethods size_mapping = {};
PySequenceMethods size_sequence = {};

}  // namespace

PyObject* dtype_object(Dtype d) { return reinterpret_cast<PyObject*>(&dtypes[int(d)]); }
PyObject* device_object() { return reinterpret_cast<PyObject*>(&cpu); }

namespace {
PyObject* new_size(const Dims& d) {
  // A tuple subclass without members of its own has the layout of tuple.
  PyObject* t = SizeType.tp_alloc(&SizeType, d.size());
  if (!t) return nullptr;
  for (int i = 0; i < d.size(); ++i) PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(d[i]));
  return t;
}
}  // namespace

// Programs ask for few different sizes, again and again: the last of each kind is handed out once more.
PyObject* wrap_size(const Dims& d) {
  struct Made {
    Dims sizes;
    PyObject* object;
  };
  static Made made[64] = {};
  std::uint64_t key = std::uint64_t(d.size());
  for (std::int64_t n : d) key = (key ^ std::uint64_t(n)) * 0x9E3779B97F4A7C15u;
  Made& m = made[key >> 58];
  if (TP_UNLIKELY(!m.object || !(m.sizes == d))) {
    PyObject* t = new_size(d);
    if (!t) return nullptr;
    Py_XDECREF(m.object);
    m.object = t;
    m.sizes = d;
  }
  Py_INCREF(m.object);
  return m.object;
}

bool dtype_from(PyObject* o, Dtype* d) {
  if (TP_LIKELY(is_dtype(o))) return *d = self_dtype(o), true;
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return *d = default_float(), true;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return *d = Dtype::I64, true;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return *d = Dtype::Bool, true;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return *d = complex_dtype(default_float()), true;
  // numpy.dtype('float32') and the class numpy.float32
  const char* kind = Py_TYPE(o)->tp_name;
  std::string name;
  if (PyType_Check(o) && !std::strncmp(reinterpret_cast<PyTypeObject*>(o)->tp_name, "numpy.", 6)) {
    name = reinterpret_cast<PyTypeObject*>(o)->tp_name + 6;
    if (name == "bool_") name = "bool";
  } else if (!std::strncmp(kind, "numpy.dtype", 11)) {
    Owned text(PyObject_GetAttrString(o, "name"));
    if (text && PyUnicode_Check(text.get())) name = PyUnicode_AsUTF8(text.get());
    PyErr_Clear();
  } else {
    return false;
  }
  for (int i = 0; i < kNumDtypes; ++i)
    if (dtype_name(Dtype(i)) == name) return *d = Dtype(i), true;
  return false;
}

Device device_from(const char* op, PyObject* o) {
  if (Py_TYPE(o) == &DeviceType) return Device::CPU;
  if (!PyUnicode_Check(o)) type_error(op, ": device must be 'cpu' or a device object, not ", Py_TYPE(o)->tp_name);
  const char* name = PyUnicode_AsUTF8(o);
  if (!name) host_error();
  if (!std::strcmp(name, "cpu") || !std::strcmp(name, "cpu:0")) return Device::CPU;
  runtime_error(op, ": device '", name, "' is not available; this build of tensorplay has 'cpu' only");
}

// ---- module functions ------------------------------------------------------------------------------------------------
namespace {
Dtype need_dtype(const char* op, PyObject* o) {
  Dtype d;
  if (!dtype_from(o, &d)) type_error(op, ": expected a tensorplay dtype, not ", Py_TYPE(o)->tp_name);
  return d;
}
PyObject* set_default_dtype(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    set_default_float(need_dtype("set_default_dtype", o));
    Py_RETURN_NONE;
  });
}
PyObject* get_default_dtype(PyObject*, PyObject*) { return wrap(default_float()); }

PyObject* promote(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) type_error("promote_types: takes two dtypes, got ", n, " arguments");
    return wrap(promote_types(need_dtype("promote_types", args[0]), need_dtype("promote_types", args[1])));
  });
}
PyObject* castable(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static constexpr Param params[] = {{"from_", Kind::Dtype}, {"to", Kind::Dtype}};
  static const Spec spec{"can_cast", "can_cast(dtype from_, dtype to) -> bool", params};
  return guarded([&]() -> PyObject* {
    Slots<2> a;
    parse(spec, a, nullptr, args, n, kwnames);
    return wrap(can_cast(to_dtype(spec, a, 0), to_dtype(spec, a, 1)));
  });
}
PyObject* result_type(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n == 0) type_error("result_type: needs at least one tensor, number or dtype");
    Promotion p;
    for (Py_ssize_t i = 0; i < n; ++i) {
      Dtype d;
      if (is_tensor(args[i]))
        p.add(tensor_of(args[i])->dtype(), tensor_of(args[i])->dim() == 0,
              tensor_of(args[i])->storage().wrapped_number());
      else if (number_kind(args[i]) != Number::None)
        p.add(scalar_from(args[i]).dtype(), true, true);
      else if (dtype_from(args[i], &d))
        p.add(d, false, false);
      else
        type_error("result_type: argument ", i, " must be a tensor, a number or a dtype, not ",
                   Py_TYPE(args[i])->tp_name);
    }
    return wrap(p.result());
  });
}

PyMethodDef functions[] = {
    {"set_default_dtype", set_default_dtype, METH_O,
     "set_default_dtype(d)\n--\n\nThe floating dtype Python floats and factories get."},
    {"get_default_dtype", get_default_dtype, METH_NOARGS, "get_default_dtype()\n--\n\nThe default floating dtype."},
    {"promote_types", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(promote)), METH_FASTCALL,
     "promote_types(type1, type2)\n--\n\nThe smallest dtype both convert to."},
    {"can_cast", fast(castable), METH_FASTCALL | METH_KEYWORDS,
     "can_cast(from_, to)\n--\n\nWhether a conversion keeps the category of values."},
    {"result_type", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(result_type)), METH_FASTCALL,
     "result_type(*operands)\n--\n\nThe dtype an operation on these would compute in."},
    {}};
}  // namespace

void init_dtypes(PyObject* module) {
  DtypeType.tp_name = "tensorplay.dtype";
  DtypeType.tp_basicsize = sizeof(DtypeObject);
  DtypeType.tp_flags = Py_TPFLAGS_DEFAULT;
  DtypeType.tp_repr = dtype_repr;
  DtypeType.tp_methods = dtype_methods;
  DtypeType.tp_getset = dtype_attributes;
  DtypeType.tp_doc = "Type of the elements of a tensor.";
  ready(DtypeType);
  // Pickle finds a dtype by its name in the package.
  Owned package(PyUnicode_FromString("tensorplay"));
  PyDict_SetItemString(DtypeType.tp_dict, "__module__", package.get());

  DeviceType.tp_name = "tensorplay.device";
  DeviceType.tp_basicsize = sizeof(DeviceObject);
  DeviceType.tp_flags = Py_TPFLAGS_DEFAULT;
  DeviceType.tp_repr = device_repr;
  DeviceType.tp_str = device_str;
  DeviceType.tp_new = device_new;
  DeviceType.tp_hash = device_hash;
  DeviceType.tp_richcompare = device_compare;
  DeviceType.tp_methods = device_methods;
  DeviceType.tp_getset = device_attributes;
  DeviceType.tp_doc = "Where a tensor lives: device('cpu').";
  ready(DeviceType);

  size_mapping.mp_length = PyTuple_Type.tp_as_mapping->mp_length;
  size_mapping.mp_subscript = size_subscript;
  size_sequence.sq_concat = size_concat;
  size_sequence.sq_repeat = size_repeat;
  SizeType.tp_name = "tensorplay.Size";
  SizeType.tp_base = &PyTuple_Type;
  SizeType.tp_flags = Py_TPFLAGS_DEFAULT;
  SizeType.tp_repr = size_repr;
  SizeType.tp_methods = size_methods;
  SizeType.tp_as_mapping = &size_mapping;
  SizeType.tp_as_sequence = &size_sequence;
  SizeType.tp_doc = "Sizes of a tensor: a tuple with numel().";
  ready(SizeType);

  for (int i = 0; i < kNumDtypes; ++i) {
    PyObject_Init(reinterpret_cast<PyObject*>(&dtypes[i]), &DtypeType);
    dtypes[i].value = Dtype(i);
    add_object(module, std::string(dtype_name(Dtype(i))).c_str(), dtype_object(Dtype(i)));
  }
  PyObject_Init(device_object(), &DeviceType);
  add_object(module, "dtype", reinterpret_cast<PyObject*>(&DtypeType));
  add_object(module, "device", reinterpret_cast<PyObject*>(&DeviceType));
  add_object(module, "Size", reinterpret_cast<PyObject*>(&SizeType));
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
