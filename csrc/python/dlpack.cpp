// DLPack, both ways: the structures of version 1, capsules of either kind. Knows no NumPy.
#include <cstring>

#include "python/creation.h"

namespace tp::python {
namespace {

struct DLDevice {
  std::int32_t type;
  std::int32_t id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLManaged {
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManaged*);
};
struct DLManagedVersioned {
  std::uint32_t major, minor;
  void* manager;
  void (*deleter)(DLManagedVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};
enum { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };
constexpr std::int32_t kCpu = 1;
constexpr std::uint64_t kReadOnly = 1;

DLDataType type_of(Dtype d) {
  const std::uint8_t bits = std::uint8_t(item_size(d) * 8);
  if (d == Dtype::Bool) return {kBool, 8, 1};
  if (d == Dtype::BF16) return {kBfloat, 16, 1};
  if (is_complex(d)) return {kComplex, bits, 1};
  if (is_float(d)) return {kFloat, bits, 1};
  return {std::uint8_t(is_signed(d) ? kInt : kUInt), bits, 1};
}
Dtype dtype_of_type(DLDataType t) {
  for (int i = 0; i < kNumDtypes && t.lanes == 1; ++i) {
    const DLDataType mine = type_of(Dtype(i));
    if (mine.code == t.code && mine.bits == t.bits) return Dtype(i);
  }
  type_error("from_dlpack: element type with code ", int(t.code), ", ", int(t.bits), " bits, ", t.lanes,
             " lanes is not supported");
}

// ---- export ----------------------------------------------------------------------------------------------------------
template <class M>
struct Exported {
  M managed;
  Storage storage;
  Dims sizes, strides;
};
template <class M>
void delete_exported(M* m) {
  PyGILState_STATE s = PyGILState_Ensure();  // the consumer may let go on any thread
  delete static_cast<Exported<M>*>(m->manager);
  PyGILState_Release(s);
}
template <class M>
void drop_unused(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (name && (!std::strcmp(name, "dltensor") || !std::strcmp(name, "dltensor_versioned"))) {
    M* m = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
    if (m && m->deleter) m->deleter(m);
  }
}
template <class M>
PyObject* export_as(const Storage& s, const char* name) {
  auto* e = new Exported<M>{{}, s, s.sizes(), s.strides()};
  e->managed.manager = e;
  e->managed.deleter = delete_exported<M>;
  e->managed.tensor = {s.raw(), {kCpu, 0}, s.dim(), type_of(s.dtype()), e->sizes.data(), e->strides.data(), 0};
  if constexpr (std::is_same_v<M, DLManagedVersioned>) {
    e->managed.major = 1;
    e->managed.minor = 0;
    e->managed.flags = s.block()->read_only ? kReadOnly : 0;
  }
  PyObject* capsule = PyCapsule_New(&e->managed, name, drop_unused<M>);
  if (!capsule) delete e;
  return capsule;
}

PyObject* to_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"input", Kind::Tensor},
                                     {"stream", Kind::Any, true, true},
                                     {"max_version", Kind::Any, true, true},
                                     {"dl_device", Kind::Any, true, true},
                                     {"copy", Kind::Any, true, true}};
  static const Spec spec{
      "__dlpack__", "__dlpack__(Tensor input, *, stream=None, max_version=None, dl_device=None, copy=None)", params};
  return guarded([&]() -> PyObject* {
    Slots<5> a;
    parse(spec, a, self, args, n, kw);
    const TensorRef& t = tensor_of(self);
    need_values(t, "__dlpack__");
    if (t->requires_grad())
      fail(ErrorKind::Buffer, "__dlpack__: Can't export tensors that require gradient, use tensor.detach()");
    if (a.given(1)) fail(ErrorKind::Buffer, "__dlpack__: a cpu tensor has no stream; pass stream=None");
    if (a.given(3)) {
      int type = 0, id = 0;
      if (!PyTuple_Check(a[3]) || !PyArg_ParseTuple(a[3], "ii", &type, &id)) {
        PyErr_Clear();
        type_error("__dlpack__: dl_device must be a pair of ints");
      }
      if (type != kCpu)
        fail(ErrorKind::Buffer, "__dlpack__: only the cpu device (1, 0) is supported, got (", type, ", ", id, ")");
    }
    Storage s = a[4] == Py_True ? copy_storage(t->storage()) : t->storage();
    long major = 0;
    if (a.given(2)) {
      if (!PyTuple_Check(a[2]) || PyTuple_GET_SIZE(a[2]) != 2)
        type_error("__dlpack__: max_version must be a pair of ints");
      major = PyLong_AsLong(PyTuple_GET_ITEM(a[2], 0));
      if (major == -1 && PyErr_Occurred()) host_error();
    }
    return major >= 1 ? export_as<DLManagedVersioned>(s, "dltensor_versioned") : export_as<DLManaged>(s, "dltensor");
  });
}
PyObject* dlpack_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", kCpu, 0); }

// ---- import ----------------------------------------------------------------------------------------------------------
template <class M>
void release_imported(Block* b) {
  M* m = static_cast<M*>(b->owner);
  if (m->deleter) m->deleter(m);
  b->~Block();
  memory::small_free(b, sizeof(Block));
}

template <class M>
TensorRef import_from(PyObject* capsule, const char* name, const char* used) {
  M* m = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (!m) host_error();
  const DLTensor& d = m->tensor;
  if (d.device.type != kCpu && d.device.type != 3)  // 3: page-locked host memory
    fail(ErrorKind::Buffer, "from_dlpack: device (", d.device.type, ", ", d.device.id,
         ") is not available; copy to the cpu first");
  const Dtype dtype = dtype_of_type(d.dtype);
  Shape sizes;
  for (int i = 0; i < d.ndim; ++i) sizes.push_back(d.shape[i]);
  Strides strides = contiguous_strides(sizes);
  std::int64_t last = 0;
  for (int i = 0; i < d.ndim; ++i) {
    if (d.strides) strides[i] = d.strides[i];
    if (strides[i] < 0)
      fail(ErrorKind::Buffer, "from_dlpack: dimension ", i, " has a negative stride; copy the array first");
    if (sizes[i] > 1) last += (sizes[i] - 1) * strides[i];
  }
  char* data = static_cast<char*>(d.data) + d.byte_offset;
  const auto item = std::int64_t(item_size(dtype));
  if (reinterpret_cast<std::uintptr_t>(data) % std::uintptr_t(std::min<std::int64_t>(item, 8)))
    fail(ErrorKind::Buffer, "from_dlpack: the memory is not aligned to its element size; copy the array first");
  bool read_only = false;
  if constexpr (std::is_same_v<M, DLManagedVersioned>) {
    if (m->major > 1) fail(ErrorKind::Buffer, "from_dlpack: version ", m->major, " of DLPack is not supported");
    read_only = m->flags & kReadOnly;
  }
  if (PyCapsule_SetName(capsule, used) < 0) host_error();
  BlockRef block = adopt_block(data, std::size_t((last + 1) * item), m, release_imported<M>, read_only);
  return TensorImpl::make(Storage(std::move(block), dtype, std::move(sizes), std::move(strides), 0));
}

PyObject* from_dlpack(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {
      {"ext_tensor", Kind::Any}, {"device", Kind::OptDevice, true, true}, {"copy", Kind::Any, true, true}};
  static const Spec spec{"from_dlpack", "from_dlpack(ext_tensor, *, device=None, copy=None)", params};
  return guarded([&]() -> PyObject* {
    Slots<3> a;
    parse(spec, a, nullptr, args, n, kw);
    to_device(spec, a, 1);
    Owned capsule;
    if (PyCapsule_CheckExact(a[0])) {
      capsule = Owned::share(a[0]);
    } else {
      Owned method(PyObject_GetAttrString(a[0], "__dlpack__"));
      if (!method) {
        PyErr_Clear();
        type_error("from_dlpack: expected an object with __dlpack__ or a capsule, not ", Py_TYPE(a[0])->tp_name);
      }
      Owned none(PyTuple_New(0));
      Owned version(Py_BuildValue("{s:(ii)}", "max_version", 1, 0));
      capsule = Owned(PyObject_Call(method.get(), none.get(), version.get()));
      if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // producers of before version 1
        PyErr_Clear();
        capsule = Owned(PyObject_CallNoArgs(method.get()));
      }
      if (!capsule) host_error();
    }
    TensorRef t;
    if (PyCapsule_IsValid(capsule.get(), "dltensor_versioned"))
      t = import_from<DLManagedVersioned>(capsule.get(), "dltensor_versioned", "used_dltensor_versioned");
    else if (PyCapsule_IsValid(capsule.get(), "dltensor"))
      t = import_from<DLManaged>(capsule.get(), "dltensor", "used_dltensor");
    else
      value_error("from_dlpack: the capsule holds no unused tensor; a DLPack capsule can be consumed once");
    if (a[2] == Py_True) t = TensorImpl::make(copy_storage(t->storage()));
    return wrap(std::move(t));
  });
}

PyMethodDef functions[] = {
    {"from_dlpack", fast(from_dlpack), METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack(ext_tensor, *, device=None, copy=None)\n--\n\nA tensor over memory of another library."},
    {}};

}  // namespace

PyMethodDef* dlpack_functions() { return functions; }

PyMethodDef tensor_dlpack_methods[] = {{"__dlpack__", fast(to_dlpack), METH_FASTCALL | METH_KEYWORDS, nullptr},
                                       {"__dlpack_device__", dlpack_device, METH_NOARGS, nullptr},
                                       {}};

}  // namespace tp::python
