// The slow half of argument parsing: keywords, variadic lists, overload checks and every TypeError's text.
#include "python/args.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "kernels/linalg.h"
#include "ops/recursion.h"
#include "python/op_names.h"
#include "python/values.h"

namespace tp::python {

void host_error() { throw HostError(); }

namespace {

PyObject* const* names_of(const Spec& spec) {
  if (!spec.interned) {
    auto** names = new PyObject*[spec.count + 1];
    for (std::size_t i = 0; i < spec.count; ++i) names[i] = PyUnicode_InternFromString(spec.params[i].name);
    spec.interned = names;
  }
  return spec.interned;
}

// NumPy's spellings of two names are understood everywhere.
const char* canonical(const char* keyword) {
  if (!std::strcmp(keyword, "axis")) return "dim";
  if (!std::strcmp(keyword, "keepdims")) return "keepdim";
  return keyword;
}

int find_param(const Spec& spec, PyObject* keyword) {
  PyObject* const* names = names_of(spec);
  for (int i = 0; i < spec.count; ++i)
    if (names[i] == keyword) return i;
  const char* text = PyUnicode_AsUTF8(keyword);
  if (!text) host_error();
  for (int i = 0; i < spec.count; ++i)
    if (!std::strcmp(spec.params[i].name, text)) return i;
  const char* other = canonical(text);
  if (other != text)
    for (int i = 0; i < spec.count; ++i)
      if (!std::strcmp(spec.params[i].name, other)) return i;
  return -1;
}

bool is_int_like(PyObject* o) {
  if (PyLong_Check(o)) return true;
  if (PyFloat_Check(o) || is_dtype(o) || PyTuple_Check(o) || PyList_Check(o)) return false;
  if (is_tensor(o))
    return is_integral(tensor_of(o)->dtype()) && tensor_of(o)->numel() == 1 && !tensor_of(o)->is_batched();
  const Number k = number_kind(o);
  return k == Number::Int || (k == Number::None && PyIndex_Check(o) && !is_numpy_array(o));
}

// x.view(2, 3): the trailing positional arguments of a single int list, not counting self. meshgrid(x, y): tensors that
// come one by one, from none to any number.
bool variadic(const Spec& spec, PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  const std::size_t at = self ? 1 : 0;
  if (spec.max_positional != at + 1) return false;
  const Kind k = spec.params[at].kind;
  if (k == Kind::TensorArgs) return nargs != 1 || !(PyTuple_Check(args[0]) || PyList_Check(args[0]));
  if (nargs < 1 || (k != Kind::IntList && k != Kind::OptIntList)) return false;
  for (Py_ssize_t i = 0; i < nargs; ++i)
    if (PyBool_Check(args[i]) || !is_int_like(args[i])) return false;
  return true;
}

// The same for plain ints and nothing else: what nearly every such call is.
bool spread_ints(const Spec& spec, PyObject** v, Spread& spread, PyObject* self, PyObject* const* args,
                 Py_ssize_t nargs, PyObject* kwnames) {
  const std::size_t at = self ? 1 : 0;
  if (kwnames || nargs < 2 || spec.max_positional != at + 1 || spec.min_positional > at + 1) return false;
  const Kind k = spec.params[at].kind;
  if (k != Kind::IntList && k != Kind::OptIntList) return false;
  for (Py_ssize_t i = 0; i < nargs; ++i)
    if (!PyLong_CheckExact(args[i])) return false;
  if (self) v[0] = self;
  v[at] = args[0];
  for (std::size_t i = at + 1; i < spec.count; ++i) v[i] = nullptr;
  spread.ints = args;
  spread.count = nargs;
  spread.slot = at;
  return true;
}

struct Problem {
  std::string text;  // empty: arguments were bound
};

// Binds arguments to slots; fills `problem` (where asked for) instead of throwing.
bool bind(const Spec& spec, PyObject** v, Spread& spread, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
          PyObject* kwnames, Problem* problem) {
  const auto refuse = [&](auto&&... parts) {
    if (problem) {
      std::ostringstream text;
      (text << ... << parts);
      problem->text = text.str();
    }
    return false;
  };
  for (std::size_t i = 0; i < spec.count; ++i) v[i] = nullptr;
  std::size_t at = 0;
  if (self) v[at++] = self;
  const bool listed = at < spec.count && spec.params[at].kind == Kind::TensorArgs;
  const bool keyword = kwnames && !nargs;  // meshgrid(tensors=[x, y])
  if (at + std::size_t(nargs) > spec.max_positional || (listed && !keyword && variadic(spec, self, args, nargs))) {
    if (!variadic(spec, self, args, nargs))
      return refuse("takes ", spec.max_positional == at ? "no" : "at most ",
                    spec.max_positional == at ? std::string() : std::to_string(spec.max_positional - at),
                    " positional argument", spec.max_positional - at == 1 ? "" : "s", ", got ", nargs);
    if (!spread.packed) {
      spread.packed = PyTuple_New(nargs);
      if (!spread.packed) host_error();
      for (Py_ssize_t i = 0; i < nargs; ++i) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(spread.packed, i, args[i]);
      }
    }
    v[at] = spread.packed;
  } else {
    for (Py_ssize_t i = 0; i < nargs; ++i) v[at + i] = args[i];
  }
  const Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < nkw; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(kwnames, k);
    const int i = find_param(spec, keyword);
    if (i < 0) return refuse("unexpected keyword argument '", PyUnicode_AsUTF8(keyword), "'");
    if (v[i]) return refuse("argument '", spec.params[i].name, "' was given twice");
    v[i] = args[nargs + k];
  }
  for (std::size_t i = 0; i < spec.count; ++i)
    if (!v[i] && !spec.params[i].has_default) return refuse("missing argument '", spec.params[i].name, "'");
  return true;
}

bool is_number_kind(Kind k) {
  return (k >= Kind::Scalar && k <= Kind::OptBool) && k != Kind::IntList && k != Kind::OptIntList &&
      k != Kind::SizeList;
}

std::string describe(PyObject* o) {
  if (o == Py_None) return "None";
  if (is_tensor(o)) {
    std::ostringstream s;
    s << "Tensor " << dtype_name(tensor_of(o)->dtype()) << tensor_of(o)->sizes();
    if (const char* lost = lost_with(o); lost && tensor_of(o)->dim() == 0) s << " with a " << lost;
    return s.str();
  }
  if (PyTuple_Check(o) || PyList_Check(o)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    std::string s = PyTuple_Check(o) ? "tuple of " : "list of ";
    s += std::to_string(n);
    if (n) s += std::string(" (first: ") + Py_TYPE(PySequence_Fast_GET_ITEM(o, 0))->tp_name + ")";
    return s;
  }
  return Py_TYPE(o)->tp_name;
}

const char* expected_of(Kind k) {
  switch (k) {
    case Kind::Tensor: return "Tensor";
    case Kind::OptTensor: return "Tensor or None";
    case Kind::TensorList: return "a sequence of Tensors";
    case Kind::TensorArgs: return "Tensors, or a sequence of them";
    case Kind::OptTensorList: return "a sequence of Tensors or None";
    case Kind::Scalar: return "a number";
    case Kind::OptScalar: return "a number or None";
    case Kind::Int: return "int";
    case Kind::OptInt: return "int or None";
    case Kind::IntList: return "int or a tuple of int";
    case Kind::OptIntList: return "int, a tuple of int, or None";
    case Kind::SizeList: return "int or a tuple of int or None";
    case Kind::Float: return "float";
    case Kind::OptFloat: return "float or None";
    case Kind::FloatList: return "float or a tuple of float";
    case Kind::OptFloatList: return "float, a tuple of float, or None";
    case Kind::Bool: return "bool";
    case Kind::OptBool: return "bool or None";
    case Kind::Str: return "str";
    case Kind::OptStr: return "str or None";
    case Kind::Dtype: return "a tensorplay dtype";
    case Kind::OptDtype: return "a tensorplay dtype or None";
    case Kind::Device:
    case Kind::OptDevice: return "a device";
    case Kind::Generator:
    case Kind::OptGenerator: return "a Generator or None";
    case Kind::Any: return "any value";
  }
  return "";
}

bool is_bool(PyObject* o) { return PyBool_Check(o) || number_kind(o) == Number::Bool; }
bool is_scalar(PyObject* o) {
  if (is_tensor(o)) return tensor_of(o)->dim() == 0 && !lost_with(o);
  return number_kind(o) != Number::None;
}
bool is_real(PyObject* o) {
  if (is_tensor(o)) return is_scalar(o) && !is_complex(tensor_of(o)->dtype());
  const Number k = number_kind(o);
  return k != Number::None && k != Number::Complex;
}
bool is_dtype_like(PyObject* o) {
  return is_dtype(o) || o == (PyObject*)&PyFloat_Type || o == (PyObject*)&PyLong_Type || o == (PyObject*)&PyBool_Type ||
      o == (PyObject*)&PyComplex_Type;
}
template <class F>
bool sequence_of(PyObject* o, F&& item) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (!item(PySequence_Fast_GET_ITEM(o, i))) return false;
  return true;
}

bool accepts(const Spec& spec, std::size_t i, PyObject* o) {
  const auto optional = [o] { return o == Py_None; };
  switch (spec.params[i].kind) {
    case Kind::OptTensor:
      if (optional()) return true;
      [[fallthrough]];
    case Kind::Tensor:
      return is_tensor(o) ||
          (spec.tensors >= 2 && !spec.params[i].keyword_only && (number_kind(o) != Number::None || is_numpy_array(o)));
    case Kind::TensorList:
    case Kind::TensorArgs: return sequence_of(o, is_tensor);
    case Kind::OptTensorList: return sequence_of(o, [](PyObject* t) { return t == Py_None || is_tensor(t); });
    case Kind::OptScalar:
      if (optional()) return true;
      [[fallthrough]];
    case Kind::Scalar: return is_scalar(o);
    case Kind::OptInt:
      if (optional()) return true;
      [[fallthrough]];
    case Kind::Int: return is_int_like(o);
    case Kind::OptIntList:
      if (optional()) return true;
      [[fallthrough]];
    case Kind::IntList: return is_int_like(o) || sequence_of(o, is_int_like);
    case Kind::SizeList:
      return is_int_like(o) || sequence_of(o, [](PyObject* n) { return n == Py_None || is_int_like(n); });
    case Kind::OptFloat:
      if (optional()) return true;
      [[fallthrough]];
    case Kind::Float: return is_real(o);
    case Kind::OptFloatList:
      if (optional()) return true;
      [[fallthrough]];
    case Kind::FloatList: return is_real(o) || sequence_of(o, is_real);
    case Kind::OptBool:
      if (optional()) return true;
      [[fallthrough]];
    case Kind::Bool: return is_bool(o);
    case Kind::OptStr:
      if (optional()) return true;
      [[fallthrough]];
    case Kind::Str: return PyUnicode_Check(o);
    case Kind::OptDtype:
      if (optional()) return true;
      [[fallthrough]];
    case Kind::Dtype: return is_dtype_like(o);
    case Kind::Device:
    case Kind::OptDevice: return o == Py_None || PyUnicode_Check(o) || Py_TYPE(o) == &DeviceType;
    case Kind::Generator:
    case Kind::OptGenerator: return true;
    case Kind::Any: return true;
  }
  return false;
}

}  // namespace

const char* lost_with(PyObject* o) {
  if (!is_tensor(o)) return nullptr;
  return tensor_of(o)->requires_grad() ? "gradient" : tensor_of(o)->has_tangent() ? "tangent" : nullptr;
}

void bad_argument(const Spec& spec, std::size_t i, PyObject* got, const char* expected) {
  if (got && is_number_kind(spec.params[i].kind)) {
    const char* lost = lost_with(got);
    if (PyTuple_Check(got) || PyList_Check(got))
      for (Py_ssize_t k = 0; !lost && k < PySequence_Fast_GET_SIZE(got); ++k)
        lost = lost_with(PySequence_Fast_GET_ITEM(got, k));
    const char* name = spec.params[i].name;
    if (lost)
      type_error(
          spec.op, ": ", name, " is a number; the tensor given ", *lost == 'g' ? "requires grad" : "carries a tangent",
          ", and its ", lost, " would be lost; pass ", name, ".item()",
          defined_outside(spec.op) ? std::string(", or declare ") + name + " as Tensor in the op" : std::string());
  }
  const bool lone_number = spec.params[i].kind == Kind::Tensor && got && number_kind(got) != Number::None;
  type_error(spec.op, ": argument '", spec.params[i].name, "' must be ",
             expected ? expected : expected_of(spec.params[i].kind), ", not ",
             got ? describe(got) : std::string("missing"), lone_number ? " (tensorplay.tensor(value) makes one)" : "",
             "; signature: ", public_signature(spec));
}

bool types_match(const Spec& spec, PyObject* const* slots) {
  for (std::size_t i = 0; i < spec.count; ++i)
    if (slots[i] && !accepts(spec, i, slots[i])) return false;
  return true;
}

void parse_slow(const Spec& spec, PyObject** slots, Spread& spread, PyObject* self, PyObject* const* args,
                Py_ssize_t nargs, PyObject* kwnames) {
  if (std::size_t(nargs) + (self != nullptr) > spec.max_positional &&
      spread_ints(spec, slots, spread, self, args, nargs, kwnames))
    return;
  Problem problem;
  if (!bind(spec, slots, spread, self, args, nargs, kwnames, &problem))
    type_error(spec.op, ": ", problem.text, "; signature: ", public_signature(spec));
}

bool try_parse_slow(const Spec& spec, PyObject** slots, Spread& spread, PyObject* self, PyObject* const* args,
                    Py_ssize_t nargs, PyObject* kwnames) {
  if (std::size_t(nargs) + (self != nullptr) > spec.max_positional) {
    if (spread_ints(spec, slots, spread, self, args, nargs, kwnames)) return true;  // nothing else was given
    if (!variadic(spec, self, args, nargs)) return false;
  }
  const bool ok = bind(spec, slots, spread, self, args, nargs, kwnames, nullptr) && types_match(spec, slots);
  if (!ok) spread.clear();
  return ok;
}

void no_match(std::span<const Spec* const> specs, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
              PyObject* kwnames) {
  // Where names and counts leave one signature, say which of its arguments is wrong.
  const Spec* only = nullptr;
  int fitting = 0;
  Slots<64> a;
  for (const Spec* s : specs) {
    if (s->count <= 64 && bind(*s, a.v, a.spread, self, args, nargs, kwnames, nullptr)) {
      ++fitting;
      only = s;
    }
    a.spread.clear();
  }
  if (fitting == 1) {
    bind(*only, a.v, a.spread, self, args, nargs, kwnames, nullptr);
    for (std::size_t i = 0; i < only->count; ++i)
      if (a.v[i] && !accepts(*only, i, a.v[i])) bad_argument(*only, i, a.v[i], nullptr);
  }
  if (specs.size() == 1) parse_slow(*specs[0], a.v, a.spread, self, args, nargs, kwnames);
  std::ostringstream text;
  text << specs[0]->op << ": no signature takes (";
  if (self) text << describe(self);
  for (Py_ssize_t i = 0; i < nargs; ++i) text << (i || self ? ", " : "") << describe(args[i]);
  const Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < nkw; ++k)
    text << (k || nargs || self ? ", " : "") << PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k)) << "="
         << describe(args[nargs + k]);
  text << "); signatures:";
  for (const Spec* s : specs) text << "\n  " << public_signature(*s);
  fail_with(ErrorKind::Type, text.str());
}

namespace {

PyObject* exception_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Value: return PyExc_ValueError;
    case ErrorKind::Type: return PyExc_TypeError;
    case ErrorKind::Index: return PyExc_IndexError;
    case ErrorKind::Runtime: return PyExc_RuntimeError;
    case ErrorKind::NotImplemented: return PyExc_NotImplementedError;
    case ErrorKind::Memory: return PyExc_MemoryError;
    case ErrorKind::Buffer: return PyExc_BufferError;
  }
  return PyExc_RuntimeError;
}

}  // namespace

PyObject* linalg_error_type() noexcept {
  static PyObject* type = PyErr_NewExceptionWithDoc("tensorplay.linalg.LinAlgError",
                                                    "A matrix that has no factorisation, inverse or solution.",
                                                    PyExc_RuntimeError, nullptr);
  return type;
}

void set_python_error(const char* op) noexcept {
  const auto say = [op](PyObject* type, const char* text) {
    if (op)
      PyErr_SetString(type, public_text(op, text).c_str());
    else
      PyErr_SetString(type, text);
  };
  try {
    throw;
  } catch (const HostError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "an operation failed without saying why");
  } catch (const kernels::LinalgError& e) {
    PyObject* type = linalg_error_type();
    say(type ? type : PyExc_RuntimeError, e.what());
  } catch (const ops::RecursionError& e) {
    say(PyExc_RecursionError, e.what());
  } catch (const Error& e) {
    say(exception_of(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    say(PyExc_MemoryError, "not enough memory");
  } catch (const std::length_error&) {  // a list longer than any memory
    say(PyExc_MemoryError, "not enough memory");
  } catch (const std::exception& e) {
    say(PyExc_RuntimeError, e.what());
  } catch (...) {
    say(PyExc_RuntimeError, "unknown C++ exception");
  }
}
void set_python_error() noexcept { set_python_error(nullptr); }

void name_pending_error(const char* op) noexcept {
  PyObject* const kinds[] = {PyExc_ValueError,  PyExc_TypeError,           PyExc_IndexError,   PyExc_RuntimeError,
                             PyExc_MemoryError, PyExc_NotImplementedError, linalg_error_type()};
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  // An exception of another class may keep more than its text: it stays as it is.
  if (std::find(std::begin(kinds), std::end(kinds), type) != std::end(kinds)) {
    PyErr_NormalizeException(&type, &value, &trace);
    const Owned args(value ? PyObject_GetAttrString(value, "args") : nullptr);
    PyObject* said = args && PyTuple_Check(args.get()) && PyTuple_GET_SIZE(args.get()) == 1
        ? PyTuple_GET_ITEM(args.get(), 0)
        : nullptr;
    const char* text = said && PyUnicode_Check(said) ? PyUnicode_AsUTF8(said) : nullptr;
    if (text) {
      const Owned named(Py_BuildValue("(s)", public_text(op, text).c_str()));
      if (named) PyObject_SetAttrString(value, "args", named.get());
    }
    PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
}

}  // namespace tp::python
