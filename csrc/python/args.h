// What generated bindings use: parsing of arguments, conversion to C++ values, wrapping of results, registration.
// The fast path (positional arguments only) is inline; everything that names or explains is in args.cpp.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/errors.h"
#include "core/scalar.h"
#include "python/objects.h"

namespace tp { class Generator; }

// Exported from _C: the bindings of op libraries built outside call it too.
#pragma GCC visibility push(default)

namespace tp::python {

// ---- parameters ------------------------------------------------------------------------------------------------------
enum class Kind : std::uint8_t {
  Tensor,
  OptTensor,
  TensorList,
  OptTensorList,  // a list whose items may be None
  TensorArgs,     // a list whose items may also come one by one
  Scalar,
  OptScalar,
  Int,
  OptInt,
  IntList,
  OptIntList,
  SizeList,  // a list of int whose items may be None: the tensor's own size
  Float,
  OptFloat,
  FloatList,
  OptFloatList,
  Bool,
  OptBool,
  Str,
  OptStr,
  Dtype,
  OptDtype,
  Device,
  OptDevice,
  Generator,
  OptGenerator,
  Any
};

struct Param {
  const char* name;
  Kind kind;
  bool has_default = false;
  bool keyword_only = false;
};

/// One signature of one op. `op` prefixes every message.
struct Spec {
  template <std::size_t N>
  constexpr Spec(const char* op, const char* signature, const Param (&p)[N]) : Spec(op, signature, p, N) {}
  /// An op without parameters.
  constexpr Spec(const char* op, const char* signature) : Spec(op, signature, nullptr, 0) {}
  constexpr Spec(const char* op, const char* signature, const Param* p, std::size_t n)
      : op(op), signature(signature), params(p), count(std::uint16_t(n)) {
    for (std::size_t i = 0; i < n; ++i) {
      if (!p[i].keyword_only) max_positional = std::uint16_t(i + 1);
      if (!p[i].has_default && min_positional != 0xFFFF)
        min_positional = std::uint16_t(i + 1);  // a required keyword-only one forces the slow path
      if (p[i].kind == Kind::TensorArgs) min_positional = 0xFFFF;  // the slow path packs what came one by one
      if ((p[i].kind == Kind::Tensor || p[i].kind == Kind::OptTensor) && !p[i].keyword_only) ++tensors;  // not out=
    }
  }
  const char* op;
  const char* signature;
  const Param* params;
  std::uint16_t count;
  std::uint16_t min_positional = 0;
  std::uint16_t max_positional = 0;
  std::uint16_t tensors = 0;  // with two or more, numbers and NumPy arrays are operands too
  mutable PyObject** interned = nullptr;  // parameter names, made when the first keyword is seen
};

/// The list a parameter got as arguments of its own, as the sizes in x.view(2, 3). Plain ints stay where they are, and the
/// slot shows the first; anything else is packed into a tuple, which the slot shows.
struct Spread {
  PyObject* const* ints = nullptr;  // borrowed
  PyObject* packed = nullptr;  // owned
  Py_ssize_t count;  // with ints: how many
  std::size_t slot;  // with ints: whose

  Spread() {}  // every binding makes one
  Spread(const Spread&) = delete;
  ~Spread() {
    if (TP_UNLIKELY(packed != nullptr)) Py_DECREF(packed);
  }
  void clear() {
    ints = nullptr;
    Py_CLEAR(packed);
  }
};

/// Borrowed argument objects, one per parameter; null where absent.
template <std::size_t N>
struct Slots {
  PyObject* v[N ? N : 1];
  Spread spread;

  PyObject* operator[](std::size_t i) const { return v[i]; }
  bool has(std::size_t i) const { return v[i] != nullptr; }
  /// Given and not None.
  bool given(std::size_t i) const { return v[i] != nullptr && v[i] != Py_None; }
};

/// Raises TypeError (as tp::Error) where arguments do not fit the signature.
void parse_slow(const Spec& spec, PyObject** slots, Spread& spread, PyObject* self, PyObject* const* args,
                Py_ssize_t nargs, PyObject* kwnames);
bool try_parse_slow(const Spec& spec, PyObject** slots, Spread& spread, PyObject* self, PyObject* const* args,
                    Py_ssize_t nargs, PyObject* kwnames);
/// Whether each given argument has a type its parameter takes.
bool types_match(const Spec& spec, PyObject* const* slots);

namespace detail {
inline bool positional(const Spec& spec, PyObject** v, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                       PyObject* kwnames) {
  const std::size_t n = std::size_t(nargs) + (self != nullptr);
  if (TP_UNLIKELY(kwnames != nullptr || n < spec.min_positional || n > spec.max_positional)) return false;
  std::size_t i = 0;
  if (self) v[i++] = self;
  for (Py_ssize_t k = 0; k < nargs; ++k) v[i++] = args[k];
  for (; i < spec.count; ++i) v[i] = nullptr;
  return true;
}
}  // namespace detail

/// `self` (a method's tensor) takes parameter 0; null for functions.
template <std::size_t N>
inline void parse(const Spec& spec, Slots<N>& a, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                  PyObject* kwnames) {
  if (TP_LIKELY(detail::positional(spec, a.v, self, args, nargs, kwnames))) return;
  parse_slow(spec, a.v, a.spread, self, args, nargs, kwnames);
}

/// For overloads: false where names, count or types do not fit.
template <std::size_t N>
inline bool try_parse(const Spec& spec, Slots<N>& a, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                      PyObject* kwnames) {
  if (TP_LIKELY(detail::positional(spec, a.v, self, args, nargs, kwnames))) return types_match(spec, a.v);
  return try_parse_slow(spec, a.v, a.spread, self, args, nargs, kwnames);
}

/// After the last overload failed: TypeError with what was given and every signature.
[[noreturn]] void no_match(std::span<const Spec* const> specs, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                           PyObject* kwnames);
[[noreturn]] inline void no_match(std::initializer_list<const Spec*> specs, PyObject* self, PyObject* const* args,
                                  Py_ssize_t nargs, PyObject* kwnames) {
  no_match(std::span<const Spec* const>(specs.begin(), specs.size()), self, args, nargs, kwnames);
}

// ---- conversion ------------------------------------------------------------------------------------------------------
/// A tensor argument: borrowed from its Python object, or made from a number and owned. Converts to const TensorRef&.
class TensorArg {
 public:
  TensorArg() = default;
  explicit TensorArg(const TensorRef* borrowed) : borrowed_(borrowed) {}
  explicit TensorArg(TensorRef owned) : owned_(std::move(owned)) {}
  operator const TensorRef&() const { return borrowed_ ? *borrowed_ : owned_; }
  const TensorRef& ref() const { return borrowed_ ? *borrowed_ : owned_; }

 private:
  const TensorRef* borrowed_ = nullptr;
  TensorRef owned_;
};

/// What a Python or NumPy number stands for; None: not a number.
enum class Number : std::uint8_t { None, Bool, Int, Float, Complex };
Number number_kind(PyObject* o);
/// Requires number_kind(o) != None.
Scalar scalar_from(PyObject* o);
/// A number as a 0-d operand that yields in promotion.
TensorRef wrapped_number(PyObject* o);
bool is_numpy_array(PyObject* o);
/// Shares the array's memory where it can, copies where it must (negative strides).
TensorRef tensor_from_array(PyObject* o, const char* op);

[[noreturn]] void bad_argument(const Spec& spec, std::size_t i, PyObject* got, const char* expected);
[[noreturn]] void host_error();  // a Python exception is pending

// By slot number; each raises TypeError naming op, argument and type. The PyObject* forms are what they call.
TensorArg operand(const Spec& spec, std::size_t i, PyObject* o);  // the slow part of to_tensor
Scalar to_scalar(const Spec& spec, std::size_t i, PyObject* o);
std::int64_t to_int(const Spec& spec, std::size_t i, PyObject* o);
double to_double(const Spec& spec, std::size_t i, PyObject* o);
bool to_bool(const Spec& spec, std::size_t i, PyObject* o);
std::string_view to_str(const Spec& spec, std::size_t i, PyObject* o);
Dtype to_dtype(const Spec& spec, std::size_t i, PyObject* o);
Device to_device(const Spec& spec, std::size_t i, PyObject* o);
Dims to_dims(const Spec& spec, std::size_t i, PyObject* o);
Dims to_dims(const Spec& spec, std::size_t i, PyObject* o, const Spread& spread);
std::vector<double> to_doubles(const Spec& spec, std::size_t i, PyObject* o);
PooledVec<TensorRef> to_tensor_list(const Spec& spec, std::size_t i, PyObject* o, bool allow_none = false);

template <std::size_t N>
inline TensorArg to_tensor(const Spec& spec, const Slots<N>& a, std::size_t i) {
  PyObject* o = a.v[i];
  if (TP_LIKELY(is_tensor(o))) return TensorArg(&tensor_of(o));
  return operand(spec, i, o);
}
/// Null where absent or None.
template <std::size_t N>
inline TensorArg to_opt_tensor(const Spec& spec, const Slots<N>& a, std::size_t i) {
  return a.given(i) ? to_tensor(spec, a, i) : TensorArg();
}
template <std::size_t N>
PooledVec<TensorRef> to_tensor_list(const Spec& spec, const Slots<N>& a, std::size_t i) {
  return to_tensor_list(spec, i, a.v[i], spec.params[i].kind == Kind::OptTensorList);
}

/// Null where absent or None: the default generator.
Generator* to_generator(const Spec& spec, std::size_t i, PyObject* o);
template <std::size_t N>
Generator* to_opt_generator(const Spec& spec, const Slots<N>& a, std::size_t i) {
  return to_generator(spec, i, a.v[i]);
}
template <std::size_t N>
Generator* to_generator(const Spec& spec, const Slots<N>& a, std::size_t i) {
  return to_generator(spec, i, a.v[i]);
}

// NAME(spec, a, i), NAME(spec, a, i, default for an absent one), and opt_NAME for optional parameters.
#define TP_SLOT_CONVERTER(name, opt_name, type)                                             \
  template <std::size_t N>                                                                  \
  inline type name(const Spec& spec, const Slots<N>& a, std::size_t i) {                    \
    return name(spec, i, a.v[i]);                                                           \
  }                                                                                         \
  template <std::size_t N, class D>                                                         \
  inline type name(const Spec& spec, const Slots<N>& a, std::size_t i, D&& absent) {        \
    return a.has(i) ? name(spec, i, a.v[i]) : type(std::forward<D>(absent));                \
  }                                                                                         \
  template <std::size_t N>                                                                  \
  inline std::optional<type> opt_name(const Spec& spec, const Slots<N>& a, std::size_t i) { \
    return a.given(i) ? std::optional<type>(name(spec, i, a.v[i])) : std::nullopt;          \
  }
TP_SLOT_CONVERTER(to_scalar, to_opt_scalar, Scalar)
TP_SLOT_CONVERTER(to_int, to_opt_int, std::int64_t)
TP_SLOT_CONVERTER(to_double, to_opt_double, double)
TP_SLOT_CONVERTER(to_bool, to_opt_bool, bool)
TP_SLOT_CONVERTER(to_str, to_opt_str, std::string_view)
TP_SLOT_CONVERTER(to_dtype, to_opt_dtype, Dtype)
TP_SLOT_CONVERTER(to_device, to_opt_device, Device)
TP_SLOT_CONVERTER(to_doubles, to_opt_doubles, std::vector<double>)
#undef TP_SLOT_CONVERTER
template <std::size_t N>
inline Dims to_dims(const Spec& spec, const Slots<N>& a, std::size_t i) {
  return to_dims(spec, i, a.v[i], a.spread);
}
template <std::size_t N>
inline Dims to_dims(const Spec& spec, const Slots<N>& a, std::size_t i, Dims&& absent) {
  return a.has(i) ? to_dims(spec, a, i) : std::move(absent);
}
template <std::size_t N>
inline std::optional<Dims> to_opt_dims(const Spec& spec, const Slots<N>& a, std::size_t i) {
  return a.given(i) ? std::optional<Dims>(to_dims(spec, a, i)) : std::nullopt;
}

// ---- operators -------------------------------------------------------------------------------------------------------
/// An operand of a binary operator: a tensor, a number or a NumPy array. `ok` false: the caller returns NotImplemented.
struct OperandArg {
  TensorArg value;
  bool ok = true;
};
OperandArg operator_operand_slow(PyObject* o);
inline OperandArg operator_operand(PyObject* o) {
  if (TP_LIKELY(is_tensor(o))) return {TensorArg(&tensor_of(o)), true};
  return operator_operand_slow(o);
}

// ---- results ---------------------------------------------------------------------------------------------------------
PyObject* wrap_new(TensorRef t);
/// The Python object of `t`: the one it has, or a new one. A null tensor is None.
inline PyObject* wrap(TensorRef t) {
  if (TP_LIKELY(t && !t->owns_host_object && t->host_object)) {
    PyObject* o = static_cast<PyObject*>(t->host_object);
    Py_INCREF(o);
    return o;
  }
  return wrap_new(std::move(t));
}
PyObject* wrap_list(std::span<const TensorRef> tensors);  // a tuple
inline PyObject* wrap(const std::vector<TensorRef>& tensors) { return wrap_list(tensors); }
template <std::size_t N>
PyObject* wrap(const std::array<TensorRef, N>& tensors) {
  return wrap_list(tensors);
}
inline PyObject* wrap(bool v) { return PyBool_FromLong(v); }
inline PyObject* wrap(std::int64_t v) { return PyLong_FromLongLong(v); }
inline PyObject* wrap(double v) { return PyFloat_FromDouble(v); }
PyObject* wrap(const Scalar& s);
PyObject* wrap(const Dims& d);  // a tuple of int
inline PyObject* wrap(Dtype d) {
  PyObject* o = dtype_object(d);
  Py_INCREF(o);
  return o;
}

/// A named tuple type, made when first used: `tensorplay.return_types.max` with fields values, indices.
struct ResultType {
  const char* op;
  std::span<const char* const> fields;
  mutable PyTypeObject* type = nullptr;
};
PyObject* wrap_named(const ResultType& type, std::span<const TensorRef> tensors);

/// The results that are asked for as a plain tuple; the only one as it is.
PyObject* wrap_chosen(std::span<const TensorRef> tensors, std::initializer_list<bool> asked);

/// Whether an object of a Python subclass of Tensor was ever made whose operations keep the class.
extern bool subclasses_exist;
PyObject* keep_subclass(PyObject* result, PyObject* const* given, std::size_t n);
/// The result of an op on `given` (nulls allowed; lists are looked into): tensors in it get the class of the operands.
inline PyObject* kept(PyObject* result, PyObject* const* given, std::size_t n) {
  if (TP_LIKELY(!subclasses_exist)) return result;
  return keep_subclass(result, given, n);
}
template <std::size_t N>
inline PyObject* kept(PyObject* result, const Spec& spec, const Slots<N>& a) {
  return kept(result, a.v, spec.count);
}
inline PyObject* kept(PyObject* result, PyObject* self) { return kept(result, &self, 1); }
inline PyObject* kept(PyObject* result, PyObject* left, PyObject* right) {
  PyObject* given[] = {left, right};
  return kept(result, given, 2);
}

/// For factories: makes the result a leaf that requires grad where `flag` (None or absent: no) says so.
PyObject* wrap_leaf(TensorRef t, PyObject* flag);

// ---- errors ----------------------------------------------------------------------------------------------------------
/// Sets the Python exception for the C++ exception being handled.
void set_python_error() noexcept;

/// Runs a binding; any C++ exception becomes the Python one.
template <class F>
inline PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}
/// An op's binding: an error that does not begin with the op's name (that of an op inside a composed one) gets it in front.
void set_python_error(const char* op) noexcept;
/// The same for the pending exception of a Python function: its message gets the op's name in front.
void name_pending_error(const char* op) noexcept;
template <class F>
inline PyObject* guarded(const char* op, F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error(op);
    return nullptr;
  }
}
/// The same for slots that return int.
template <class F>
inline int guarded_int(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return -1;
  }
}

// ---- registration ----------------------------------------------------------------------------------------------------
using FastFunction = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
inline PyCFunction fast(FastFunction f) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)); }

/// Operators of Tensor. Binary ones get (left, right) as written, either of which is the Tensor; in-place ones return self.
enum class Slot : std::uint8_t {
  Add,
  Sub,
  Mul,
  TrueDiv,
  FloorDiv,
  Mod,
  Pow,
  MatMul,
  LShift,
  RShift,
  And,
  Or,
  Xor,
  IAdd,
  ISub,
  IMul,
  ITrueDiv,
  IFloorDiv,
  IMod,
  IPow,
  IMatMul,
  ILShift,
  IRShift,
  IAnd,
  IOr,
  IXor,
  Lt,
  Le,
  Eq,
  Ne,
  Gt,
  Ge,
  Neg,
  Pos,
  Abs,
  Invert,
  Count
};

class Registry {
 public:
  /// Functions of a home: "" (top level), "nn.functional", "linalg", "special", "fft". The table ends with an empty entry.
  void add(const char* home, PyMethodDef* table) { functions_.push_back({home, table}); }
  /// Methods of Tensor.
  void add_methods(PyMethodDef* table) { methods_.push_back(table); }
  void add_operator(Slot slot, binaryfunc f) { binary_[int(slot)] = f; }
  void add_operator(Slot slot, unaryfunc f) { unary_[int(slot)] = f; }

  struct Table {
    const char* home;
    PyMethodDef* functions;
  };
  const std::vector<Table>& functions() const { return functions_; }
  const std::vector<PyMethodDef*>& methods() const { return methods_; }
  binaryfunc binary(Slot s) const { return binary_[int(s)]; }
  unaryfunc unary(Slot s) const { return unary_[int(s)]; }

 private:
  std::vector<Table> functions_;
  std::vector<PyMethodDef*> methods_;
  binaryfunc binary_[int(Slot::Count)] = {};
  unaryfunc unary_[int(Slot::Count)] = {};
};

/// Generated (generated/cpp/bind/registry.cpp), one for each library: never exported.
__attribute__((visibility("hidden"))) void register_all(Registry& r);

}  // namespace tp::python

#pragma GCC visibility pop
