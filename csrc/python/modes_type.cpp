// no_grad, enable_grad, set_grad_enabled, inference_mode as small C types: context managers and decorators.
// Decoration itself (functions, generators, coroutines) is in tensorplay/_decorators.py.
#include <memory>

#include "autograd/dual_level.h"
#include "python/module.h"

namespace tp::python {
namespace {

constexpr std::uint32_t kTouched = modes::kNoGrad | modes::kInference | modes::kForward;

enum class What : std::uint8_t { NoGrad, EnableGrad, SetGrad, Inference };

struct ModeObject {
  PyObject_HEAD
  What what;
  bool on;                              // the argument of set_grad_enabled and inference_mode
  std::uint8_t depth;                   // entries in `packed`
  std::uint64_t packed;                 // mode bits before each entry, four bits a piece, innermost lowest
  std::vector<std::uint64_t>* older;    // full words, when one object is entered more than 16 deep
};

PyTypeObject types[4] = {};
ModeObject* as_mode(PyObject* o) { return reinterpret_cast<ModeObject*>(o); }

constexpr std::uint64_t pack(std::uint32_t word) {
  return (word & modes::kNoGrad ? 1 : 0) | (word & modes::kInference ? 2 : 0) | (word & modes::kForward ? 4 : 0);
}
constexpr std::uint32_t unpack(std::uint64_t bits) {
  return (bits & 1 ? modes::kNoGrad : 0u) | (bits & 2 ? modes::kInference : 0u) | (bits & 4 ? modes::kForward : 0u);
}

void push_bits(ModeObject* m) {
  if (TP_UNLIKELY(m->depth == 16)) {
    if (!m->older) m->older = new std::vector<std::uint64_t>;
    m->older->push_back(m->packed);
    m->depth = 0;
    m->packed = 0;
  }
  m->packed = m->packed << 4 | pack(modes::word);
  ++m->depth;
}
std::uint32_t mask_of(What w) { return w == What::Inference ? kTouched : std::uint32_t(modes::kNoGrad); }
bool pop_bits(ModeObject* m) {
  if (TP_UNLIKELY(m->depth == 0)) {
    if (!m->older || m->older->empty()) return false;
    m->packed = m->older->back();
    m->older->pop_back();
    m->depth = 16;
  }
  const std::uint32_t mask = mask_of(m->what);
  modes::word = (modes::word & ~mask) | (unpack(m->packed & 15) & mask);
  m->packed >>= 4;
  --m->depth;
  return true;
}

void apply(const ModeObject* m) {
  switch (m->what) {
    case What::NoGrad: modes::word |= modes::kNoGrad; break;
    case What::EnableGrad: modes::word &= ~std::uint32_t(modes::kNoGrad); break;
    case What::SetGrad:
      modes::word = (modes::word & ~std::uint32_t(modes::kNoGrad)) | (m->on ? 0u : std::uint32_t(modes::kNoGrad));
      break;
    case What::Inference:
      if (m->on)
        modes::word = (modes::word | modes::kInference) & ~std::uint32_t(modes::kForward);
      else
        modes::word = (modes::word & ~std::uint32_t(modes::kInference | modes::kNoGrad)) |
            (dual::current_level() && dual::enabled() ? std::uint32_t(modes::kForward) : 0u);
      break;
  }
}

// One spare object of each kind: `with no_grad():` makes and drops one each time.
ModeObject* spare[4] = {};

PyObject* make(What what, bool on) {
  ModeObject*& s = spare[int(what)];
  ModeObject* m = s;
  if (m) {
    s = nullptr;
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(m), 1);
  } else {
    m = PyObject_New(ModeObject, &types[int(what)]);
    if (!m) return nullptr;
    m->older = nullptr;
  }
  m->what = what;
  m->on = on;
  m->depth = 0;
  m->packed = 0;
  if (what == What::SetGrad) {  // takes effect when made; leaving the block restores what was before
    push_bits(m);
    apply(m);
  }
  return reinterpret_cast<PyObject*>(m);
}
void mode_dealloc(PyObject* o) {
  ModeObject* m = as_mode(o);
  ModeObject*& s = spare[int(m->what)];
  if (!s && !m->older) {
    s = m;
    return;
  }
  delete m->older;
  PyObject_Free(o);
}

PyObject* decorate(PyObject* function, What what, bool on) {
  return guarded([&]() -> PyObject* {
    Owned f = import_attr("tensorplay._decorators", "guard");
    return PyObject_CallFunctionObjArgs(
        f.get(), function, reinterpret_cast<PyObject*>(&types[int(what)]),
        what == What::SetGrad || what == What::Inference ? (on ? Py_True : Py_False) : Py_None, nullptr);
  });
}

// no_grad(), no_grad(f); set_grad_enabled(mode); inference_mode(mode=True), inference_mode(f)
PyObject* construct(What what, PyObject* arg) {
  const bool plain = what == What::NoGrad || what == What::EnableGrad;
  if (!arg) {
    if (what == What::SetGrad) {
      PyErr_SetString(PyExc_TypeError, "set_grad_enabled: missing argument 'mode'");
      return nullptr;
    }
    return make(what, true);
  }
  if (PyBool_Check(arg) && !plain) return make(what, arg == Py_True);
  if (PyCallable_Check(arg) && what != What::SetGrad) return decorate(arg, what, true);
  PyErr_Format(PyExc_TypeError, "%s: expected a %s, not %s", types[int(what)].tp_name + sizeof("tensorplay.") - 1,
               plain ? "function" : "bool", Py_TYPE(arg)->tp_name);
  return nullptr;
}
PyObject* mode_vectorcall(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const What what = What(reinterpret_cast<PyTypeObject*>(type) - types);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf), kw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (TP_LIKELY(n + kw == 0)) return construct(what, nullptr);
  if (n + kw > 1 ||
      (kw && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "mode") != 0 &&
       PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "func") != 0)) {
    PyErr_Format(PyExc_TypeError, "%s: takes at most one argument",
                 types[int(what)].tp_name + sizeof("tensorplay.") - 1);
    return nullptr;
  }
  return construct(what, args[0]);
}
PyObject* mode_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return construct(What(type - types), PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : nullptr);
}

PyObject* mode_enter(PyObject* self, PyObject*) {
  ModeObject* m = as_mode(self);
  if (m->what != What::SetGrad) {
    push_bits(m);
    apply(m);
  }
  Py_RETURN_NONE;
}
PyObject* mode_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  if (!pop_bits(as_mode(self))) {
    PyErr_SetString(PyExc_RuntimeError, "grad mode: left more often than entered");
    return nullptr;
  }
  Py_RETURN_NONE;
}
// As a decorator. set_grad_enabled took effect when it was made: decorating takes that back.
PyObject* mode_call(PyObject* self, PyObject* args, PyObject*) {
  ModeObject* m = as_mode(self);
  if (PyTuple_GET_SIZE(args) != 1 || !PyCallable_Check(PyTuple_GET_ITEM(args, 0))) {
    PyErr_SetString(PyExc_TypeError, "grad mode: as a decorator it takes one function");
    return nullptr;
  }
  if (m->what == What::SetGrad) pop_bits(m);
  return decorate(PyTuple_GET_ITEM(args, 0), m->what, m->on);
}
PyObject* mode_clone(PyObject* self, PyObject*) {
  ModeObject* m = as_mode(self);
  return make(m->what, m->on);
}
PyObject* mode_value(PyObject* self, void*) { return PyBool_FromLong(as_mode(self)->on); }

PyMethodDef methods[] = {
    {"__enter__", mode_enter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(mode_exit)), METH_FASTCALL, nullptr},
    {"clone", mode_clone, METH_NOARGS, "clone($self, /)\n--\n\nAnother guard of the same kind."},
    {}};
PyGetSetDef attributes[] = {{"mode", mode_value, nullptr, "The mode asked for.", nullptr}, {}};

// ---- module functions ------------------------------------------------------------------------------------------------
PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(modes::grad_enabled()); }
PyObject* is_inference_enabled(PyObject*, PyObject*) { return PyBool_FromLong(modes::any(modes::kInference)); }

// The word itself, for Python code that must run a step of a generator under its own modes.
PyObject* get_word(PyObject*, PyObject*) { return PyLong_FromUnsignedLong(modes::word); }
PyObject* set_word(PyObject*, PyObject* v) {
  const unsigned long w = PyLong_AsUnsignedLong(v);
  if (w == static_cast<unsigned long>(-1) && PyErr_Occurred()) return nullptr;
  modes::word = std::uint32_t(w);
  Py_RETURN_NONE;
}

PyObject* set_autocast(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) type_error("_set_autocast: takes (enabled, dtype)");
    Dtype d;
    if (!dtype_from(args[1], &d))
      type_error("autocast: dtype must be a tensorplay dtype, not ", Py_TYPE(args[1])->tp_name);
    if (!is_float(d)) value_error("autocast: dtype must be a floating dtype, got ", dtype_name(d));
    PyObject* before =
        Py_BuildValue("(NN)", PyBool_FromLong(modes::any(modes::kAutocast)), wrap(Dtype(modes::autocast_dtype)));
    const int on = PyObject_IsTrue(args[0]);
    modes::word = (modes::word & ~std::uint32_t(modes::kAutocast)) | (on ? std::uint32_t(modes::kAutocast) : 0u);
    modes::autocast_dtype = std::uint8_t(d);
    return before;
  });
}
/// There is one device; its name may be given, as for libraries that have several.
bool names_cpu(const char* op, PyObject* const* args, Py_ssize_t n) {
  if (n == 0 || (n == 1 && PyUnicode_Check(args[0]) && PyUnicode_CompareWithASCIIString(args[0], "cpu") == 0))
    return true;
  PyErr_Format(PyExc_RuntimeError, "%s: only device_type 'cpu' exists here", op);
  return false;
}
PyObject* is_autocast_enabled(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return names_cpu("is_autocast_enabled", args, n) ? PyBool_FromLong(modes::any(modes::kAutocast)) : nullptr;
}
PyObject* get_autocast_dtype(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return names_cpu("get_autocast_dtype", args, n) ? wrap(Dtype(modes::autocast_dtype)) : nullptr;
}

PyObject* set_deterministic(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  static constexpr Param params[] = {{"mode", Kind::Bool}, {"warn_only", Kind::Bool, true, true}};
  static const Spec spec{"use_deterministic_algorithms",
                         "use_deterministic_algorithms(bool mode, *, bool warn_only=False)", params};
  return guarded([&]() -> PyObject* {
    Slots<2> a;
    parse(spec, a, nullptr, args, n, kw);
    modes::set_deterministic(to_bool(spec, a, 0), to_bool(spec, a, 1, false));
    Py_RETURN_NONE;
  });
}
PyObject* are_deterministic(PyObject*, PyObject*) { return PyBool_FromLong(modes::deterministic()); }

PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "is_grad_enabled()\n--\n\nWhether operations are recorded on this thread."},
    {"is_inference_mode_enabled", is_inference_enabled, METH_NOARGS,
     "is_inference_mode_enabled()\n--\n\nWhether inference_mode is on."},
    {"_get_mode_word", get_word, METH_NOARGS, nullptr},
    {"_set_mode_word", set_word, METH_O, nullptr},
    {"_set_autocast", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_autocast)), METH_FASTCALL,
     "_set_autocast(enabled, dtype)\n--\n\nSwitches autocast; returns (enabled, dtype) as they were."},
    {"is_autocast_enabled", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(is_autocast_enabled)),
     METH_FASTCALL, "is_autocast_enabled(device_type='cpu', /)\n--\n\nWhether autocast is on."},
    {"get_autocast_dtype", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(get_autocast_dtype)),
     METH_FASTCALL, "get_autocast_dtype(device_type='cpu', /)\n--\n\nThe dtype autocast casts to."},
    {"use_deterministic_algorithms", fast(set_deterministic), METH_FASTCALL | METH_KEYWORDS,
     "use_deterministic_algorithms(mode, *, warn_only=False)\n--\n\nRefuses ops whose result may differ from run to "
     "run."},
    {"are_deterministic_algorithms_enabled", are_deterministic, METH_NOARGS,
     "are_deterministic_algorithms_enabled()\n--\n\nWhether only deterministic algorithms may run."},
    {}};

}  // namespace

void init_modes(PyObject* module) {
  static constexpr const char* names[4] = {"tensorplay.no_grad", "tensorplay.enable_grad",
                                           "tensorplay.set_grad_enabled", "tensorplay.inference_mode"};
  static constexpr const char* docs[4] = {
      "no_grad(func=None)\n--\n\nInside the block, or in the decorated function, nothing is recorded.",
      "enable_grad(func=None)\n--\n\nInside the block, or in the decorated function, operations are recorded.",
      "set_grad_enabled(mode)\n--\n\nSwitches recording on or off: now, for a block, or for a decorated function.",
      "inference_mode(mode=True)\n--\n\nLike no_grad, and results can never take part in a graph."};
  for (int i = 0; i < 4; ++i) {
    PyTypeObject& t = types[i];
    t.tp_name = names[i];
    t.tp_basicsize = sizeof(ModeObject);
    t.tp_flags = Py_TPFLAGS_DEFAULT;
    t.tp_doc = docs[i];
    t.tp_new = mode_new;
    t.tp_vectorcall = mode_vectorcall;
    t.tp_dealloc = mode_dealloc;
    t.tp_call = mode_call;
    t.tp_methods = methods;
    t.tp_getset = attributes;
    ready(t);
    add_object(module, names[i] + sizeof("tensorplay.") - 1, reinterpret_cast<PyObject*>(&t));
  }
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
