// Generator objects and the functions about seeds. The stream itself is in kernels/random.
#include "kernels/random.h"

#include <cstring>

#include "python/creation.h"

namespace tp::python {
namespace {

struct GeneratorObject {
  PyObject_HEAD
  Generator* generator;
  bool owned;
};
PyTypeObject GeneratorType = {};
GeneratorObject* as_generator(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o); }

std::uint64_t seed_from(PyObject* o) {
  if (!PyLong_Check(o)) type_error("manual_seed: the seed must be an int, not ", Py_TYPE(o)->tp_name);
  const unsigned long long v = PyLong_AsUnsignedLongLongMask(o);  // negative seeds wrap
  if (v == static_cast<unsigned long long>(-1) && PyErr_Occurred()) host_error();
  return v;
}

// A state travels as 16 bytes: seed, then position.
PyObject* state_tensor(const Generator& g) {
  const Generator::State s = g.state();
  Storage bytes = empty(Shape{16}, Dtype::U8);
  std::memcpy(bytes.raw(), &s.seed, 8);
  std::memcpy(bytes.raw() + 8, &s.offset, 8);
  return wrap(TensorImpl::make(std::move(bytes)));
}
void restore(Generator& g, PyObject* o) {
  if (!is_tensor(o) || tensor_of(o)->dtype() != Dtype::U8 || tensor_of(o)->numel() != 16 ||
      !tensor_of(o)->storage().is_contiguous())
    type_error("set_state: expected the uint8 tensor of 16 elements that get_state() gives");
  Generator::State s;
  std::memcpy(&s.seed, tensor_of(o)->storage().raw(), 8);
  std::memcpy(&s.offset, tensor_of(o)->storage().raw() + 8, 8);
  g.set_state(s);
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device", nullptr};
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &device)) return nullptr;
  return guarded([&]() -> PyObject* {
    if (device && device != Py_None) device_from("Generator", device);
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    as_generator(self)->generator = new Generator(67280421310721ull);
    as_generator(self)->owned = true;
    return self;
  });
}
void generator_dealloc(PyObject* self) {
  if (as_generator(self)->owned) delete as_generator(self)->generator;
  Py_TYPE(self)->tp_free(self);
}
PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&] {
    as_generator(self)->generator->manual_seed(seed_from(seed));
    Py_INCREF(self);
    return self;
  });
}
PyObject* reseed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(as_generator(self)->generator->reseed());
}
PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(as_generator(self)->generator->initial_seed());
}
PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&] { return state_tensor(*as_generator(self)->generator); });
}
PyObject* set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    restore(*as_generator(self)->generator, state);
    Py_INCREF(self);
    return self;
  });
}
PyObject* clone_state(PyObject* self, PyObject*) {
  PyObject* copy = GeneratorType.tp_alloc(&GeneratorType, 0);
  if (!copy) return nullptr;
  as_generator(copy)->generator = new Generator(*as_generator(self)->generator);
  as_generator(copy)->owned = true;
  return copy;
}
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    return PyObject_CallOneArg(import_attr("tensorplay._serialization", "reduce_generator").get(), self);
  });
}
PyObject* device(PyObject*, void*) { return Owned::share(device_object()).release(); }

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O, "manual_seed($self, seed, /)\n--\n\nStarts the stream of a seed."},
    {"seed", reseed, METH_NOARGS, "seed($self, /)\n--\n\nSeeds from the system; returns the seed."},
    {"initial_seed", initial_seed, METH_NOARGS, "initial_seed($self, /)\n--\n\nThe seed of the stream."},
    {"get_state", get_state, METH_NOARGS, "get_state($self, /)\n--\n\nSeed and position as a uint8 tensor."},
    {"set_state", set_state, METH_O, "set_state($self, state, /)\n--\n\nGoes to where get_state() was called."},
    {"clone_state", clone_state, METH_NOARGS, "clone_state($self, /)\n--\n\nAnother generator at the same place."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {}};
PyGetSetDef attributes[] = {{"device", device, nullptr, "Where numbers are drawn.", nullptr}, {}};

PyObject* default_object = nullptr;

PyObject* default_seed(PyObject*, PyObject* seed) { return manual_seed(default_object, seed); }
PyObject* default_reseed(PyObject*, PyObject*) { return reseed(default_object, nullptr); }
PyObject* default_initial(PyObject*, PyObject*) { return initial_seed(default_object, nullptr); }
PyObject* default_get_state(PyObject*, PyObject*) { return get_state(default_object, nullptr); }
PyObject* default_set_state(PyObject*, PyObject* state) {
  Owned ignored(set_state(default_object, state));
  if (!ignored) return nullptr;
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {
    {"manual_seed", default_seed, METH_O, "manual_seed(seed)\n--\n\nSeeds the default generator and returns it."},
    {"seed", default_reseed, METH_NOARGS,
     "seed()\n--\n\nSeeds the default generator from the system; returns the seed."},
    {"initial_seed", default_initial, METH_NOARGS, "initial_seed()\n--\n\nThe seed of the default generator."},
    {"get_rng_state", default_get_state, METH_NOARGS, "get_rng_state()\n--\n\nThe state of the default generator."},
    {"set_rng_state", default_set_state, METH_O,
     "set_rng_state(state)\n--\n\nRestores the state of the default generator."},
    {}};

}  // namespace

Generator* to_generator(const Spec& spec, std::size_t i, PyObject* o) {
  if (!o || o == Py_None) return nullptr;
  if (!PyObject_TypeCheck(o, &GeneratorType)) bad_argument(spec, i, o, nullptr);
  return as_generator(o)->generator;
}

void init_generator(PyObject* module) {
  GeneratorType.tp_name = "tensorplay.Generator";
  GeneratorType.tp_basicsize = sizeof(GeneratorObject);
  GeneratorType.tp_flags = Py_TPFLAGS_DEFAULT;
  GeneratorType.tp_doc = "Generator(device='cpu')\n--\n\nA stream of random numbers of its own.";
  GeneratorType.tp_new = generator_new;
  GeneratorType.tp_dealloc = generator_dealloc;
  GeneratorType.tp_methods = methods;
  GeneratorType.tp_getset = attributes;
  ready(GeneratorType);
  default_object = GeneratorType.tp_alloc(&GeneratorType, 0);
  as_generator(default_object)->generator = &default_generator();
  add_object(module, "Generator", reinterpret_cast<PyObject*>(&GeneratorType));
  add_object(module, "default_generator", default_object);
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
