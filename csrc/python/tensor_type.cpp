// The Tensor type: life of its objects, identity with the impl, slots. Knows no op by name.
#include "python/creation.h"
#include "python/ops_used.h"

#include <cstring>
#include <utility>

namespace tp::python {

PyTypeObject TensorType = {};

namespace {

TensorObject* as_tensor(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }

// ---- objects from a free list ----------------------------------------------------------------------------------------
constexpr int kFreeLimit = 1024;
TensorObject* free_objects = nullptr;  // linked through `dict`
int free_count = 0;

TensorObject* take_object() {
  if (TP_LIKELY(free_objects != nullptr)) {
    TensorObject* o = free_objects;
    free_objects = reinterpret_cast<TensorObject*>(o->dict);
    --free_count;
    o->dict = nullptr;
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(o), 1);
    return o;
  }
  TensorObject* o = PyObject_GC_New(TensorObject, &TensorType);
  if (!o) host_error();
  new (&o->ref) TensorRef;
  o->dict = nullptr;
  o->weak = nullptr;
  return o;
}

// The impl holds the object from here on, and the object's own pointer to the impl is borrowed.
void give_to_impl(TensorObject* o) {
  TensorImpl* impl = o->ref.get();
  impl->owns_host_object = true;
  TensorImpl::release(impl);  // never the last: the caller saw another owner
}
bool worth_keeping(TensorObject* o) {
  TensorImpl* impl = o->ref.get();
  return impl && impl->use_count() > 1 && !impl->owns_host_object &&
      (o->dict || o->weak || Py_TYPE(reinterpret_cast<PyObject*>(o)) != &TensorType);
}

// Called when an impl that owns its object dies. True: somebody still uses the object, which takes the impl back.
bool drop_object(void* object) {
  TensorObject* o = static_cast<TensorObject*>(object);
  PyObject* self = static_cast<PyObject*>(object);
  if (Py_REFCNT(self) > 1) {
    TensorImpl* impl = o->ref.get();
    TensorImpl::retain(impl);
    impl->host_object = o;
    Py_DECREF(self);
    return true;
  }
  o->ref.detach();
  Py_DECREF(self);
  return false;
}

void tensor_dealloc(PyObject* self) {
  TensorObject* o = as_tensor(self);
  const bool exact = Py_TYPE(self) == &TensorType;
  if (TP_UNLIKELY((o->dict || o->weak) && exact && worth_keeping(o))) {
    Py_SET_REFCNT(self, 1);
    give_to_impl(o);
    return;
  }
  PyObject_GC_UnTrack(self);
  if (TP_UNLIKELY(o->weak != nullptr)) PyObject_ClearWeakRefs(self);
  if (TP_UNLIKELY(o->dict != nullptr)) Py_CLEAR(o->dict);
  if (TensorImpl* impl = o->ref.detach()) {
    if (impl->host_object == self) impl->host_object = nullptr;
    TensorImpl::release(impl);
  }
  if (TP_LIKELY(exact && free_count < kFreeLimit)) {
    o->dict = reinterpret_cast<PyObject*>(free_objects);
    free_objects = o;
    ++free_count;
    return;
  }
  Py_TYPE(self)->tp_free(self);
}

// Subclass instances come here first (their tp_dealloc is CPython's): the one place where they can be kept. The collector
// also calls it, with a reference of its own.
void tensor_finalize(PyObject* self) {
  TensorObject* o = as_tensor(self);
  if (Py_REFCNT(self) != 1 || Py_TYPE(self) == &TensorType || !worth_keeping(o)) return;
  give_to_impl(o);
  Py_INCREF(self);
}

// CPython finalises an object once and notes that in the lowest bit of its collector header; an object that came back
// must be asked again when it goes the next time.
void forget_finalized(PyObject* self) { reinterpret_cast<std::uintptr_t*>(self)[-1] &= ~std::uintptr_t(1); }

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  TensorObject* o = as_tensor(self);
  Py_VISIT(o->dict);
  TensorImpl* impl = o->ref.get();
  if (!impl || impl->owns_host_object || impl->use_count() != 1) return 0;
  return visit_tensor(impl, visit, arg);
}

// Breaks the cycle where only this object could have closed it; the values stay readable.
int tensor_clear(PyObject* self) {
  TensorObject* o = as_tensor(self);
  Py_CLEAR(o->dict);
  TensorImpl* impl = o->ref.get();
  if (impl && !impl->owns_host_object && impl->use_count() == 1) {
    if (AutogradMeta* meta = impl->meta()) {
      TensorRef grad = std::move(meta->grad);
      if (meta->accumulator) {
        NodeBaseRef accumulator = std::move(meta->accumulator);
        accumulator->leaf_died();
      }
    }
    if (impl->grad_fn_raw()) {
      impl->set_grad_fn(NodeBaseRef(), 0);
    }
  }
  return 0;
}

int tensor_setattr(PyObject* self, PyObject* name, PyObject* value) {
  const int r = PyObject_GenericSetAttr(self, name, value);
  if (as_tensor(self)->dict) ensure_tracked(self);
  return r;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (kwargs && PyDict_GET_SIZE(kwargs) && type == &TensorType)
      type_error("Tensor: takes no keyword arguments; tensorplay.tensor(data, dtype=...) does");
    TensorRef t;
    PyObject* first = n ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (!first) {
      t = TensorImpl::make(empty(Shape{0}, default_float()));
    } else if (is_tensor(first)) {
      need_values(tensor_of(first), "Tensor");
      t = TensorImpl::make(tensor_of(first)->storage());
    } else if (PyLong_Check(first)) {
      Shape sizes;
      for (Py_ssize_t i = 0; i < n; ++i) {
        const long long v = PyLong_AsLongLong(PyTuple_GET_ITEM(args, i));
        if (v == -1 && PyErr_Occurred()) host_error();
        sizes.push_back(v);
      }
      t = TensorImpl::make(empty(sizes, default_float()));
    } else {
      t = tensor_from_data(first, "Tensor", default_float());
    }
    return new_tensor_object(type, std::move(t));
  });
}

// ---- subclasses ------------------------------------------------------------------------------------------------------
// A class whose operations give plain tensors says `_keeps_class = False`, as parameters of a module do.
bool keeps_class(PyTypeObject* type) {
  static PyObject* name = PyUnicode_InternFromString("_keeps_class");
  PyObject* word = _PyType_Lookup(type, name);
  return type != &TensorType && word != Py_False;
}

// The class of a result: the most derived one among the operands.
PyTypeObject* class_among(PyTypeObject* found, PyObject* o) {
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      found = class_among(found, PySequence_Fast_GET_ITEM(o, i));
    return found;
  }
  PyTypeObject* type = Py_TYPE(o);
  if (type == &TensorType || !is_tensor(o) || !keeps_class(type)) return found;
  if (!found || PyType_IsSubtype(type, found)) return type;
  if (PyType_IsSubtype(found, type)) return found;
  type_error("operands are of the unrelated classes ", found->tp_name, " and ", type->tp_name,
             "; convert one with as_subclass()");
}

// Takes a reference to a tensor, returns one to it as an instance of `type`: itself where nobody else has seen it.
Owned in_class(PyTypeObject* type, Owned given) {
  PyObject* o = given.get();
  if (!is_tensor(o) || PyType_IsSubtype(Py_TYPE(o), type)) return given;
  TensorObject* t = as_tensor(o);
  if (Py_TYPE(o) == &TensorType && Py_REFCNT(o) == 1 && !t->dict && !t->weak) {
    TensorRef impl = std::move(t->ref);
    impl->host_object = nullptr;
    return Owned(new_tensor_object(type, std::move(impl)));
  }
  return Owned(new_tensor_object(type, alias_of(t->ref)));
}

Py_hash_t tensor_hash(PyObject* self) { return _Py_HashPointer(self); }

// ---- slots filled from the registry ----------------------------------------------------------------------------------
binaryfunc compare[6];
binaryfunc power, power_inplace;

PyObject* tensor_compare(PyObject* a, PyObject* b, int op) {
  static constexpr int place[] = {0, 1, 2, 3, 4, 5};  // Py_LT, LE, EQ, NE, GT, GE: the order of Slot::Lt..Ge
  binaryfunc f = compare[place[op]];
  if (!f) Py_RETURN_NOTIMPLEMENTED;
  return f(a, b);
}
PyObject* tensor_power(PyObject* a, PyObject* b, PyObject* mod) {
  if (mod != Py_None || !power) Py_RETURN_NOTIMPLEMENTED;
  return power(a, b);
}
PyObject* tensor_inplace_power(PyObject* a, PyObject* b, PyObject*) {
  if (!power_inplace) Py_RETURN_NOTIMPLEMENTED;
  return power_inplace(a, b);
}

PyNumberMethods number = {};
PyMappingMethods mapping = {};
PySequenceMethods sequence = {};
PyBufferProcs buffer = {};

void fill_operators(const Registry& r) {
  number.nb_add = r.binary(Slot::Add);
  number.nb_subtract = r.binary(Slot::Sub);
  number.nb_multiply = r.binary(Slot::Mul);
  number.nb_true_divide = r.binary(Slot::TrueDiv);
  number.nb_floor_divide = r.binary(Slot::FloorDiv);
  number.nb_remainder = r.binary(Slot::Mod);
  number.nb_matrix_multiply = r.binary(Slot::MatMul);
  number.nb_lshift = r.binary(Slot::LShift);
  number.nb_rshift = r.binary(Slot::RShift);
  number.nb_and = r.binary(Slot::And);
  number.nb_or = r.binary(Slot::Or);
  number.nb_xor = r.binary(Slot::Xor);
  number.nb_inplace_add = r.binary(Slot::IAdd);
  number.nb_inplace_subtract = r.binary(Slot::ISub);
  number.nb_inplace_multiply = r.binary(Slot::IMul);
  number.nb_inplace_true_divide = r.binary(Slot::ITrueDiv);
  number.nb_inplace_floor_divide = r.binary(Slot::IFloorDiv);
  number.nb_inplace_remainder = r.binary(Slot::IMod);
  number.nb_inplace_matrix_multiply = r.binary(Slot::IMatMul);
  number.nb_inplace_lshift = r.binary(Slot::ILShift);
  number.nb_inplace_rshift = r.binary(Slot::IRShift);
  number.nb_inplace_and = r.binary(Slot::IAnd);
  number.nb_inplace_or = r.binary(Slot::IOr);
  number.nb_inplace_xor = r.binary(Slot::IXor);
  number.nb_negative = r.unary(Slot::Neg);
  number.nb_positive = r.unary(Slot::Pos) ? r.unary(Slot::Pos) : [](PyObject* o) -> PyObject* {
    Py_INCREF(o);
    return o;
  };
  number.nb_absolute = r.unary(Slot::Abs);
  number.nb_invert = r.unary(Slot::Invert);
  number.nb_float = tensor_float;
  number.nb_int = tensor_int;
  number.nb_index = tensor_index;
  number.nb_bool = tensor_bool;
  power = r.binary(Slot::Pow);
  power_inplace = r.binary(Slot::IPow);
  if (power) number.nb_power = tensor_power;
  if (power_inplace) number.nb_inplace_power = tensor_inplace_power;
  for (int i = 0; i < 6; ++i) compare[i] = r.binary(Slot(int(Slot::Lt) + i));
}

void add_methods(PyTypeObject* type, PyMethodDef* table, bool replace) {
  for (PyMethodDef* m = table; m->ml_name; ++m) {
    if (!replace && PyDict_GetItemString(type->tp_dict, m->ml_name)) continue;
    Owned d(m->ml_flags & METH_STATIC      ? PyStaticMethod_New(Owned(PyCFunction_New(m, nullptr)).get())
                : m->ml_flags & METH_CLASS ? PyDescr_NewClassMethod(type, m)
                                           : PyDescr_NewMethod(type, m));
    if (!d || PyDict_SetItemString(type->tp_dict, m->ml_name, d.get()) < 0) host_error();
  }
}

}  // namespace

PyObject* wrap_new(TensorRef t) {
  if (!t) Py_RETURN_NONE;
  if (TP_UNLIKELY(t->host_object != nullptr)) {
    // The impl owned the object: from here on the object owns the impl again, and the caller gets the impl's reference.
    TensorObject* o = static_cast<TensorObject*>(t->host_object);
    t->owns_host_object = false;
    o->ref.detach();
    o->ref = std::move(t);
    forget_finalized(reinterpret_cast<PyObject*>(o));
    return reinterpret_cast<PyObject*>(o);
  }
  TensorObject* o = take_object();
  t->host_object = o;
  const bool tracked = t->grad_fn_raw() || t->is_special();
  o->ref = std::move(t);
  if (tracked) PyObject_GC_Track(reinterpret_cast<PyObject*>(o));
  return reinterpret_cast<PyObject*>(o);
}

PyObject* new_tensor_object(PyTypeObject* type, TensorRef t) {
  if (type == &TensorType) return wrap(std::move(t));
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) host_error();
  TensorObject* o = as_tensor(self);
  new (&o->ref) TensorRef(std::move(t));
  o->ref->host_object = o;
  subclasses_exist = subclasses_exist || keeps_class(type);
  return self;
}

bool subclasses_exist = false;

TensorRef alias_of(const TensorRef& t) {
  TensorRef alias = ops::expand(t, t->sizes());  // a view of itself keeps the history
  if (alias == t || alias->host_object) alias = TensorImpl::make(t->storage());
  return alias;
}

PyObject* keep_subclass(PyObject* result, PyObject* const* given, std::size_t n) {
  Owned out(result);
  if (!result) return nullptr;
  PyTypeObject* type = nullptr;
  for (std::size_t i = 0; i < n; ++i)
    if (given[i]) type = class_among(type, given[i]);
  if (!type) return out.release();
  if (!PyTuple_Check(result)) return in_class(type, std::move(out)).release();
  // A tuple of results, named or not, that nobody has seen yet.
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) {
    PyObject** item = &PyTuple_GET_ITEM(result, i);
    Owned taken(std::exchange(*item, nullptr));
    *item = Owned::share(Py_None).release();
    Owned made = in_class(type, std::move(taken));
    Owned none(std::exchange(*item, made.release()));
  }
  return out.release();
}

void set_tensor_attribute(const char* name, PyObject* value) {
  if (PyDict_SetItemString(TensorType.tp_dict, name, value) < 0) host_error();
  PyType_Modified(&TensorType);
}

void init_tensor(PyObject* module, const Registry& registry) {
  fill_operators(registry);
  mapping.mp_length = tensor_length;
  mapping.mp_subscript = tensor_subscript;
  mapping.mp_ass_subscript = tensor_assign_subscript;
  sequence.sq_contains = tensor_contains;
  buffer.bf_getbuffer = tensor_get_buffer;
  buffer.bf_releasebuffer = tensor_release_buffer;

  PyTypeObject& t = TensorType;
  t.tp_name = "tensorplay.Tensor";
  t.tp_basicsize = sizeof(TensorObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_doc = "An array of numbers of one dtype that can record how it was computed.";
  t.tp_dictoffset = offsetof(TensorObject, dict);
  t.tp_weaklistoffset = offsetof(TensorObject, weak);
  t.tp_new = tensor_new;
  t.tp_dealloc = tensor_dealloc;
  t.tp_finalize = tensor_finalize;
  t.tp_traverse = tensor_traverse;
  t.tp_clear = tensor_clear;
  t.tp_free = PyObject_GC_Del;
  t.tp_hash = tensor_hash;
  t.tp_richcompare = tensor_compare;
  t.tp_iter = tensor_iter;
  t.tp_setattro = tensor_setattr;
  t.tp_repr = tensor_repr;
  t.tp_str = tensor_str;
  t.tp_getset = tensor_attributes;
  t.tp_as_number = &number;
  t.tp_as_mapping = &mapping;
  t.tp_as_sequence = &sequence;
  t.tp_as_buffer = &buffer;
  ready(t);

  add_methods(&t, tensor_methods, true);
  add_methods(&t, tensor_autograd_methods, true);
  add_methods(&t, tensor_array_methods, true);
  add_methods(&t, tensor_dlpack_methods, true);
  // An op of the catalogue replaces a hand-written method of the same name: it knows about transforms.
  for (PyMethodDef* table : registry.methods()) add_methods(&t, table, true);
  // These take more forms than one signature can say.
  add_methods(&t, tensor_conversion_methods, true);
  Owned priority(PyLong_FromLong(1000));
  set_tensor_attribute("__array_priority__", priority.get());
  set_tensor_attribute("__array_ufunc__", Py_None);  // ndarray * tensor is ours
  PyType_Modified(&t);

  drop_host_object = drop_object;
  add_object(module, "Tensor", reinterpret_cast<PyObject*>(&t));
}

}  // namespace tp::python
