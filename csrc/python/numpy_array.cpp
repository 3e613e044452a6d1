// Reads and makes NumPy arrays by the part of NumPy's C interface that its ABI fixes for versions 1 and 2: three
// entries of the function table, the head of the array object and of its descriptor. NumPy's headers are not needed.
#include "python/numpy_array.h"

#include "python/args.h"

namespace tp::python {
namespace {

struct Descriptor {
  PyObject_HEAD
  PyTypeObject* scalar_type;
  char kind, letter, byte_order, flags;
  int number;
};
struct Array {
  PyObject_HEAD
  char* data;
  int dims;
  Py_ssize_t* sizes;
  Py_ssize_t* strides;
  PyObject* base;
  Descriptor* descriptor;
  int flags;
};
constexpr int kWriteable = 0x0400;

struct Table {
  PyTypeObject* array_type;
  PyObject* (*descriptor_of_number)(int);
  PyObject* (*new_from_descriptor)(PyTypeObject*, PyObject*, int, const Py_ssize_t*, const Py_ssize_t*, void*, int,
                                   PyObject*);
  int (*set_base)(PyObject*, PyObject*);
};

const Table* load_table() {
  for (const char* name : {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"}) {
    Owned module(PyImport_ImportModule(name));
    Owned capsule(module ? PyObject_GetAttrString(module.get(), "_ARRAY_API") : nullptr);
    void** entries = capsule ? static_cast<void**>(PyCapsule_GetPointer(capsule.get(), nullptr)) : nullptr;
    if (!entries) {
      PyErr_Clear();
      continue;
    }
    static Table table;
    table.array_type = static_cast<PyTypeObject*>(entries[2]);
    table.descriptor_of_number = reinterpret_cast<decltype(table.descriptor_of_number)>(entries[45]);
    table.new_from_descriptor = reinterpret_cast<decltype(table.new_from_descriptor)>(entries[94]);
    table.set_base = reinterpret_cast<decltype(table.set_base)>(entries[282]);
    return &table;
  }
  return nullptr;
}
const Table* table() {
  static const Table* loaded = load_table();
  return loaded;
}

std::optional<Dtype> dtype_of_number(int number) {
  const auto integer = [](bool is_signed, std::size_t bytes) {
    return bytes == 8 ? (is_signed ? Dtype::I64 : Dtype::U64) : (is_signed ? Dtype::I32 : Dtype::U32);
  };
  switch (number) {
    case 0: return Dtype::Bool;
    case 1: return Dtype::I8;
    case 2: return Dtype::U8;
    case 3: return Dtype::I16;
    case 4: return Dtype::U16;
    case 5: return Dtype::I32;
    case 6: return Dtype::U32;
    case 7: return integer(true, sizeof(long));
    case 8: return integer(false, sizeof(long));
    case 9: return Dtype::I64;
    case 10: return Dtype::U64;
    case 11: return Dtype::F32;
    case 12: return Dtype::F64;
    case 14: return Dtype::C64;
    case 15: return Dtype::C128;
    case 23: return Dtype::F16;
    default: return std::nullopt;
  }
}

int number_of_dtype(Dtype d) {
  switch (d) {
    case Dtype::Bool: return 0;
    case Dtype::I8: return 1;
    case Dtype::U8: return 2;
    case Dtype::I16: return 3;
    case Dtype::U16: return 4;
    case Dtype::I32: return 5;
    case Dtype::U32: return 6;
    case Dtype::I64: return sizeof(long) == 8 ? 7 : 9;
    case Dtype::U64: return sizeof(long) == 8 ? 8 : 10;
    case Dtype::F32: return 11;
    case Dtype::F64: return 12;
    case Dtype::C64: return 14;
    case Dtype::C128: return 15;
    case Dtype::F16: return 23;
    case Dtype::BF16: break;
  }
  return -1;
}

void release_array(Block* b) {
  PyObject* array = static_cast<PyObject*>(b->owner);
  // The last tensor may go while an error is on its way.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py_DECREF(array);
  PyErr_Restore(type, value, trace);
  b->~Block();
  memory::small_free(b, sizeof(Block));
}

}  // namespace

std::optional<Storage> storage_from_numpy(PyObject* o) {
  const Table* t = table();
  if (!t || Py_TYPE(o) != t->array_type) return std::nullopt;
  const Array* a = reinterpret_cast<Array*>(o);
  const char order = a->descriptor->byte_order;
  const auto dtype = dtype_of_number(a->descriptor->number);
  if (!dtype || (order != '=' && order != '|')) return std::nullopt;
  const auto item = std::int64_t(item_size(*dtype));
  Shape sizes;
  Strides strides;
  std::int64_t highest = 0;
  bool empty_array = false;
  for (int i = 0; i < a->dims; ++i) {
    const std::int64_t n = a->sizes[i], step = a->strides[i];
    // Element sizes are powers of two; a negative step has the highest bit set and is left to the general way.
    if ((step & (item - 1)) || step < 0) return std::nullopt;
    sizes.push_back(n);
    strides.push_back(step / item);
    empty_array = empty_array || n == 0;
    if (n > 1) highest += (n - 1) * (step / item);
  }
  if (empty_array) highest = 0;
  Py_INCREF(o);
  BlockRef block = adopt_block(a->data, std::size_t((highest + 1) * item), o, release_array, !(a->flags & kWriteable));
  return Storage(std::move(block), *dtype, std::move(sizes), std::move(strides), 0);
}

PyObject* numpy_over(const Storage& s, PyObject* keeper) {
  const Table* t = table();
  const int number = number_of_dtype(s.dtype());
  if (!t || number < 0) return nullptr;
  const auto item = Py_ssize_t(item_size(s.dtype()));
  const Shape& sizes = s.sizes();
  Dims strides = s.strides();
  for (int i = 0; i < strides.size(); ++i) strides[i] *= item;
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
  PyObject* descriptor = t->descriptor_of_number(number);
  if (!descriptor) host_error();
  // The call takes over the descriptor, SetBaseObject the keeper.
  Owned array(t->new_from_descriptor(
      t->array_type, descriptor, s.dim(), reinterpret_cast<const Py_ssize_t*>(sizes.data()),
      reinterpret_cast<const Py_ssize_t*>(strides.data()), s.raw(), s.block()->read_only ? 0 : kWriteable, nullptr));
  if (!array) host_error();
  Py_INCREF(keeper);
  if (t->set_base(array.get(), keeper) < 0) host_error();
  return array.release();
}

}  // namespace tp::python
