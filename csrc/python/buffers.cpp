// Memory shared with NumPy and other buffer exporters, both ways. NumPy is loaded when first needed.
#include <cstring>
#include <string>

#include "autograd/engine.h"
#include "ops/wiring.h"
#include "python/creation.h"
#include "python/numpy_array.h"

namespace tp::python {
namespace {

const char* format_of(Dtype d) {
  switch (d) {
    case Dtype::Bool: return "?";
    case Dtype::U8: return "B";
    case Dtype::I8: return "b";
    case Dtype::I16: return "h";
    case Dtype::U16: return "H";
    case Dtype::I32: return "i";
    case Dtype::U32: return "I";
    case Dtype::I64: return "q";
    case Dtype::U64: return "Q";
    case Dtype::F16: return "e";
    case Dtype::F32: return "f";
    case Dtype::F64: return "d";
    case Dtype::C64: return "Zf";
    case Dtype::C128: return "Zd";
    case Dtype::BF16: return nullptr;
  }
  return nullptr;
}

Dtype dtype_of_format(const char* format, Py_ssize_t size, const char* op) {
  const char* f = format ? format : "B";
  if (*f == '>' || *f == '!')
    value_error(op, ": the array is big-endian; convert it first, e.g. with a.astype(a.dtype.newbyteorder('='))");
  if (*f == '<' || *f == '=' || *f == '@') ++f;
  const auto by_size = [&](Dtype a1, Dtype a2, Dtype a4, Dtype a8) {
    return size == 1 ? a1 : size == 2 ? a2 : size == 4 ? a4 : a8;
  };
  if (!std::strcmp(f, "Zf")) return Dtype::C64;
  if (!std::strcmp(f, "Zd")) return Dtype::C128;
  if (std::strlen(f) == 1) switch (*f) {
      case '?': return Dtype::Bool;
      case 'B':
      case 'H':
      case 'I':
      case 'L':
      case 'Q':
      case 'N': return by_size(Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64);
      case 'b':
      case 'h':
      case 'i':
      case 'l':
      case 'q':
      case 'n': return by_size(Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64);
      case 'c': return Dtype::U8;
      case 'e': return Dtype::F16;
      case 'f': return Dtype::F32;
      case 'd': return Dtype::F64;
      default: break;
    }
  type_error(op, ": can't convert elements of buffer format '", format ? format : "",
             "'; supported are bool, integers up to 64 "
             "bits, float16, float32, float64, complex64 and complex128");
}

void release_buffer(Block* b) {
  Py_buffer* view = static_cast<Py_buffer*>(b->owner);
  // The last tensor may go while an error is on its way.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyBuffer_Release(view);
  PyErr_Restore(type, value, trace);
  delete view;
  b->~Block();
  memory::small_free(b, sizeof(Block));
}

bool has_negative_stride(const Storage& s) {
  for (int i = 0; i < s.dim(); ++i)
    if (s.stride(i) < 0) return true;
  return false;
}

}  // namespace

Storage storage_from_buffer(PyObject* o, const char* op) {
  // NumPy's export of a buffer takes longer than all the rest of a small conversion.
  if (is_numpy_array(o))
    if (auto shared = storage_from_numpy(o)) return *std::move(shared);
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(o, view.get(), PyBUF_FULL_RO) < 0) host_error();
  struct Releaser {
    Py_buffer* v;
    ~Releaser() {
      if (v) PyBuffer_Release(v);
    }
  } guard{view.get()};
  const Dtype dtype = dtype_of_format(view->format, view->itemsize, op);
  const auto item = std::int64_t(item_size(dtype));
  if (item != view->itemsize) type_error(op, ": elements of ", view->itemsize, " bytes are not supported");
  if (view->suboffsets)
    for (int i = 0; i < view->ndim; ++i)
      if (view->suboffsets[i] >= 0) type_error(op, ": buffers with indirection are not supported");
  Shape sizes;
  Strides strides;
  std::int64_t lowest = 0, highest = 0;
  bool aligned = true, empty_array = false;
  for (int i = 0; i < view->ndim; ++i) {
    const std::int64_t n = view->shape ? view->shape[i] : view->len / item;
    const std::int64_t step = view->strides ? view->strides[i] : item;
    aligned = aligned && step % item == 0;
    sizes.push_back(n);
    strides.push_back(step / item);
    empty_array = empty_array || n == 0;
    if (n > 1) (step < 0 ? lowest : highest) += (n - 1) * (step / item);
  }
  if (!aligned)
    value_error(op, ": strides of the array are no multiples of its element size; copy it first (a.copy())");
  if (empty_array) lowest = highest = 0;
  char* base = static_cast<char*>(view->buf) + lowest * item;
  guard.v = nullptr;
  BlockRef block =
      adopt_block(base, std::size_t((highest - lowest + 1) * item), view.get(), release_buffer, view->readonly);
  view.release();
  return Storage(std::move(block), dtype, std::move(sizes), std::move(strides), -lowest);
}

Storage copy_storage(const Storage& s) {
  if (s.numel() < 64 || has_negative_stride(s)) {
    Storage out = empty(s.sizes(), s.dtype());
    const std::size_t item = item_size(s.dtype());
    if (s.is_contiguous()) {
      std::memcpy(out.raw(), s.raw(), s.nbytes());
      return out;
    }
    char* p = out.raw();
    Dims place(s.dim(), 0);
    const char* from = s.raw();
    for (std::int64_t i = 0; i < s.numel(); ++i, p += item) {
      std::memcpy(p, from, item);
      for (int d = s.dim() - 1; d >= 0; --d) {
        from += s.stride(d) * std::int64_t(item);
        if (++place[d] < s.size(d)) break;
        from -= s.stride(d) * s.size(d) * std::int64_t(item);
        place[d] = 0;
      }
    }
    return out;
  }
  return engine_ops.clone(s);
}

TensorRef tensor_from_array(PyObject* o, const char* op) {
  Storage s = storage_from_buffer(o, op);
  return TensorImpl::make(has_negative_stride(s) ? copy_storage(s) : std::move(s));
}

// ---- from NumPy and buffers ------------------------------------------------------------------------------------------
namespace {

PyObject* from_numpy(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_numpy_array(o)) type_error("from_numpy: expected np.ndarray (got ", Py_TYPE(o)->tp_name, ")");
    Storage s = storage_from_buffer(o, "from_numpy");
    if (has_negative_stride(s))
      value_error(
          "from_numpy: at least one stride in the given numpy array is negative, and tensors with negative strides are "
          "not supported here; make a copy with array.copy()");
    return wrap(TensorImpl::make(std::move(s)));
  });
}

PyObject* frombuffer(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"buffer", Kind::Any},
                                     {"dtype", Kind::Dtype, false, true},
                                     {"count", Kind::Int, true, true},
                                     {"offset", Kind::Int, true, true},
                                     {"requires_grad", Kind::Bool, true, true}};
  static const Spec spec{"frombuffer", "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)", params};
  return guarded([&]() -> PyObject* {
    Slots<5> a;
    parse(spec, a, nullptr, args, n, kw);
    const Dtype dtype = to_dtype(spec, a, 1);
    std::int64_t count = to_int(spec, a, 2, -1);
    const std::int64_t offset = to_int(spec, a, 3, 0), item = std::int64_t(item_size(dtype));
    auto view = std::make_unique<Py_buffer>();
    if (PyObject_GetBuffer(a[0], view.get(), PyBUF_SIMPLE) < 0) host_error();
    const std::int64_t bytes = view->len;
    const bool read_only = view->readonly;
    char* data = static_cast<char*>(view->buf);
    // The block releases the buffer from here on, also when a check below fails.
    BlockRef block = adopt_block(data + (offset > 0 && offset < bytes ? offset : 0), std::size_t(bytes), view.get(),
                                 release_buffer, read_only);
    view.release();
    if (bytes == 0 || count == 0)
      value_error("frombuffer: both the buffer length (", bytes, ") and count (", count, ") must not be 0");
    if (offset < 0 || offset >= bytes)
      value_error("frombuffer: offset (", offset, " bytes) must be non-negative and smaller than the buffer (", bytes,
                  " bytes)");
    if (count < 0) {
      if ((bytes - offset) % item)
        value_error("frombuffer: ", bytes - offset, " bytes are no multiple of the element size (", item, ")");
      count = (bytes - offset) / item;
    }
    if (offset + count * item > bytes)
      value_error("frombuffer: ", count, " elements of ", item, " bytes at offset ", offset, " need more than the ",
                  bytes, " bytes of the buffer");
    return wrap_leaf(TensorImpl::make(Storage(std::move(block), dtype, Shape{count})), a[4]);
  });
}

PyMethodDef functions[] = {
    {"from_numpy", from_numpy, METH_O, "from_numpy(ndarray)\n--\n\nA tensor over the memory of a NumPy array."},
    {"frombuffer", fast(frombuffer), METH_FASTCALL | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\nA 1-d tensor over the bytes of a "
     "buffer."},
    {}};

// ---- to NumPy --------------------------------------------------------------------------------------------------------
/// Hands a Storage to NumPy through __array_interface__; the array keeps this object, this object keeps the memory.
struct ArrayView {
  PyObject_HEAD
  Storage storage;
};
PyTypeObject ArrayViewType = {};

PyObject* array_interface(PyObject* self, void*) {
  const Storage& s = reinterpret_cast<ArrayView*>(self)->storage;
  const Dtype d = s.dtype();
  const auto item = std::int64_t(item_size(d));
  const char kind = d == Dtype::Bool ? 'b' : is_complex(d) ? 'c' : is_float(d) ? 'f' : is_signed(d) ? 'i' : 'u';
  char type[8];
  PyOS_snprintf(type, sizeof type, "%c%c%d", item == 1 ? '|' : '<', kind, int(item));
  Owned shape(wrap(s.sizes()));
  Dims bytes = s.strides();
  for (int i = 0; i < bytes.size(); ++i) bytes[i] *= item;
  Owned strides(wrap(bytes));
  if (!shape || !strides) return nullptr;
  return Py_BuildValue("{s:O,s:s,s:O,s:(NO),s:i}", "shape", shape.get(), "typestr", type, "strides", strides.get(),
                       "data", PyLong_FromVoidPtr(s.raw()), s.block()->read_only ? Py_True : Py_False, "version", 3);
}
PyGetSetDef view_attributes[] = {{"__array_interface__", array_interface, nullptr, nullptr, nullptr}, {}};
void view_dealloc(PyObject* self) {
  reinterpret_cast<ArrayView*>(self)->storage.~Storage();
  PyObject_Free(self);
}

PyObject* to_numpy(const TensorRef& t, const char* op) {
  need_values(t, op);
  if (t->dtype() == Dtype::BF16) type_error(op, ": NumPy has no bfloat16; convert first, e.g. with .float()");
  ArrayView* v = PyObject_New(ArrayView, &ArrayViewType);
  if (!v) host_error();
  new (&v->storage) Storage(t->storage());
  Owned view(reinterpret_cast<PyObject*>(v));
  if (PyObject* made = numpy_over(v->storage, view.get())) return made;
  static PyObject* asarray = import_attr("numpy", "asarray").release();
  return PyObject_CallOneArg(asarray, view.get());
}

void refuse_graph(const TensorRef& t, const char* op) {
  if (t->requires_grad())
    runtime_error(op, ": Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
}

PyObject* numpy(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"input", Kind::Tensor}, {"force", Kind::Bool, true, true}};
  static const Spec spec{"numpy", "numpy(Tensor input, *, bool force=False)", params};
  return guarded([&]() -> PyObject* {
    Slots<2> a;
    parse(spec, a, self, args, n, kw);
    if (!to_bool(spec, a, 1, false)) refuse_graph(tensor_of(self), "numpy");
    return to_numpy(tensor_of(self), "numpy");
  });
}

PyObject* array(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"input", Kind::Tensor}, {"dtype", Kind::Any, true}, {"copy", Kind::Any, true}};
  static const Spec spec{"__array__", "__array__(Tensor input, dtype=None, copy=None)", params};
  return guarded([&]() -> PyObject* {
    Slots<3> a;
    parse(spec, a, self, args, n, kw);
    refuse_graph(tensor_of(self), "__array__");
    Owned plain(to_numpy(tensor_of(self), "__array__"));
    if (!plain) return nullptr;
    if (a.given(1)) {
      Owned same(PyObject_GetAttrString(plain.get(), "dtype"));
      const int equal = same ? PyObject_RichCompareBool(same.get(), a[1], Py_EQ) : -1;
      if (equal < 0) return nullptr;
      if (!equal) {
        if (a[2] == Py_False)
          value_error("__array__: a conversion to another dtype needs a copy, and copy=False was given");
        return PyObject_CallMethod(plain.get(), "astype", "O", a[1]);
      }
    }
    if (a[2] == Py_True) return PyObject_CallMethod(plain.get(), "copy", nullptr);
    return plain.release();
  });
}

}  // namespace

PyMethodDef tensor_array_methods[] = {{"numpy", fast(numpy), METH_FASTCALL | METH_KEYWORDS,
                                       "numpy($self, /, *, force=False)\n--\n\nA NumPy array over the same memory."},
                                      {"__array__", fast(array), METH_FASTCALL | METH_KEYWORDS, nullptr},
                                      {}};

// ---- the buffer protocol ---------------------------------------------------------------------------------------------
int tensor_get_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded_int([&]() -> int {
    view->obj = nullptr;
    const TensorRef& t = tensor_of(self);
    need_values(t, "buffer");
    const Storage& s = t->storage();
    const char* format = format_of(s.dtype());
    const auto refuse = [](auto&&... parts) { fail(ErrorKind::Buffer, parts...); };
    if (t->requires_grad()) refuse("buffer: a tensor that requires grad has no buffer; use tensor.detach()");
    if (!format) refuse("buffer: ", dtype_name(s.dtype()), " has no buffer format");
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && s.block()->read_only)
      refuse("buffer: the memory of this tensor is read-only");
    const bool needs_order =
        (flags & PyBUF_STRIDES) != PyBUF_STRIDES || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
    if (needs_order && !s.is_contiguous()) refuse("buffer: the tensor is not contiguous; use contiguous()");
    auto* room = static_cast<Py_ssize_t*>(PyMem_Malloc(sizeof(Py_ssize_t) * std::size_t(2 * s.dim() + 1)));
    if (!room) throw std::bad_alloc();
    const auto item = Py_ssize_t(item_size(s.dtype()));
    for (int i = 0; i < s.dim(); ++i) {
      room[i] = s.size(i);
      room[s.dim() + i] = s.stride(i) * item;
    }
    view->buf = s.raw();
    view->len = Py_ssize_t(s.nbytes());
    view->itemsize = item;
    view->readonly = s.block()->read_only;
    view->ndim = s.dim();
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
    view->shape = flags & PyBUF_ND ? room : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? room + s.dim() : nullptr;
    view->suboffsets = nullptr;
    view->internal = room;
    Py_INCREF(self);
    view->obj = self;
    return 0;
  });
}
void tensor_release_buffer(PyObject*, Py_buffer* view) { PyMem_Free(view->internal); }

PyMethodDef* buffer_functions() { return functions; }

void init_arrays(PyObject* module) {
  ArrayViewType.tp_name = "tensorplay._C._ArrayView";
  ArrayViewType.tp_basicsize = sizeof(ArrayView);
  ArrayViewType.tp_flags = Py_TPFLAGS_DEFAULT;
  ArrayViewType.tp_dealloc = view_dealloc;
  ArrayViewType.tp_getset = view_attributes;
  ready(ArrayViewType);
  if (PyModule_AddFunctions(module, buffer_functions()) < 0 || PyModule_AddFunctions(module, dlpack_functions()) < 0)
    host_error();
}

}  // namespace tp::python
