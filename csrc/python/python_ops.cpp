// Calls of ops written in Python: binding of arguments, in-place forms, out=.
#include "python/python_ops.h"

#include <cstring>

#include "ops/wiring.h"
#include "python/ops_used.h"
#include "python/values.h"

namespace tp::python {
namespace {

constexpr std::size_t kMost = 24;  // parameters of one signature

PyObject* function_of(const PythonOp& op) {
  if (!op.callable) op.callable = import_attr(op.module, op.function).release();
  return op.callable;
}

/// Arguments for the Python function: positional ones up to the first that is absent, keywords after it.
struct Call {
  PyObject* values[kMost + 1] = {};
  std::vector<Owned> made;  // tensors of operands that were numbers
  Py_ssize_t positional = 0, count = 0;
  Owned names, out;

  PyObject* run(PyObject* f) const { return PyObject_Vectorcall(f, values, std::size_t(positional), names.get()); }
};

// The function's argument: a number or an array that stands for a tensor is one, as it is for ops written in C++.
PyObject* value_of(const Spec& spec, std::size_t i, PyObject* o, std::vector<Owned>& made) {
  const Kind kind = spec.params[i].kind;
  if ((kind != Kind::Tensor && kind != Kind::OptTensor) || o == Py_None || is_tensor(o)) return o;
  made.emplace_back(wrap(operand(spec, i, o).ref()));
  if (!made.back()) host_error();
  return made.back().get();
}

void bind(const PythonOp& op, Call& call, Slots<kMost>& a, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
          PyObject* kwnames) {
  const Spec* spec = nullptr;
  for (const Spec* s : op.specs)
    if (s->count <= kMost && try_parse(*s, a, self, args, nargs, kwnames)) {
      spec = s;
      break;
    }
  if (!spec) no_match(op.specs, self, args, nargs, kwnames);
  std::vector<PyObject*> keywords;
  for (std::size_t i = 0; i < spec->count; ++i) {
    const Param& p = spec->params[i];
    if (!a.has(i)) continue;
    if (p.keyword_only && !std::strcmp(p.name, "out")) {
      if (a.given(i)) call.out = Owned::share(a[i]);
      continue;
    }
    if (call.count == Py_ssize_t(i) && keywords.empty() && !p.keyword_only)
      ++call.positional;
    else
      keywords.push_back(PyUnicode_InternFromString(p.name));
    call.values[call.count++] = value_of(*spec, i, a[i], call.made);
  }
  if (keywords.empty()) return;
  call.names = Owned(PyTuple_New(Py_ssize_t(keywords.size())));
  if (!call.names) host_error();
  for (std::size_t i = 0; i < keywords.size(); ++i) PyTuple_SET_ITEM(call.names.get(), Py_ssize_t(i), keywords[i]);
}

// A call whose arguments the Python function checks.
PyObject* forward(const PythonOp& op, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (!self) return PyObject_Vectorcall(function_of(op), args, std::size_t(nargs), kwnames);
  const Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  std::vector<PyObject*> values{self};
  values.insert(values.end(), args, args + all);
  return PyObject_Vectorcall(function_of(op), values.data(), std::size_t(nargs + 1), kwnames);
}

// An error of an op that the function calls says which op the user called. An in-place method's entry has another
// name than the method, which its function has.
PyObject* named(const PythonOp& op, PyObject* result) {
  if (!result) name_pending_error(op.function[std::strlen(op.function) - 1] == '_' ? op.function : op.op);
  return result;
}

PyObject* write_one(const char* op, PyObject* result, PyObject* out) {
  if (!is_tensor(out)) type_error(op, ": argument 'out' must be a Tensor, not ", Py_TYPE(out)->tp_name);
  if (!is_tensor(result)) type_error(op, ": out= is for results that are tensors");
  const TensorRef &from = tensor_of(result), &to = tensor_of(out);
  const OpSchema schema{op, op, 1, Amp::Keep, true};
  wiring::check_out(schema, to, {&from});
  wiring::write_out(schema, to, from->storage());
  Py_INCREF(out);
  return out;
}

}  // namespace

PyObject* written_out(const char* op, PyObject* stolen, PyObject* out) {
  const Owned owner(stolen);
  PyObject* result = owner.get();
  if (!result) return nullptr;
  if (!PyTuple_Check(result)) return write_one(op, result, out);
  const Py_ssize_t n = PyTuple_GET_SIZE(result);
  if (!PyTuple_Check(out) && !PyList_Check(out))
    type_error(op, ": argument 'out' must be a tuple of ", n, " Tensors, not ", Py_TYPE(out)->tp_name);
  Owned outs(PySequence_Fast(out, ""));
  if (!outs) return nullptr;
  if (PySequence_Fast_GET_SIZE(outs.get()) != n)
    type_error(op, ": out= holds ", PySequence_Fast_GET_SIZE(outs.get()), " tensors for ", n, " results");
  Owned written(PyTuple_New(n));
  if (!written) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(written.get(), i,
                     write_one(op, PyTuple_GET_ITEM(result, i), PySequence_Fast_GET_ITEM(outs.get(), i)));
  // A named tuple of the results' own type.
  if (Py_TYPE(result) != &PyTuple_Type) return PyObject_CallOneArg((PyObject*)Py_TYPE(result), written.get());
  return written.release();
}

PyObject* call_python(const PythonOp& op, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded(op.op, [&]() -> PyObject* {
    if (op.specs.empty()) return named(op, forward(op, self, args, nargs, kwnames));
    Slots<kMost> a;
    Call call;
    bind(op, call, a, self, args, nargs, kwnames);
    PyObject* result = named(op, call.run(function_of(op)));
    return call.out ? written_out(op.op, result, call.out.get()) : result;
  });
}

PyObject* call_python_inplace(const PythonOp& op, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames) {
  return guarded(op.op, [&]() -> PyObject* {
    Slots<kMost> a;
    Call call;
    bind(op, call, a, self, args, nargs, kwnames);
    // What the function saves is of a copy: this memory is about to change.
    const TensorRef& t = tensor_of(self);
    Owned copy;
    if ((t->requires_grad() || t->has_tangent()) && modes::grad_enabled()) {
      wiring::check_inplace(OpSchema{op.op, op.op, 1, Amp::Keep, true}, t, t->requires_grad());
      copy = Owned(PyObject_CallMethodNoArgs(self, TP_INTERNED("clone")));
      if (!copy) return nullptr;
      call.values[0] = copy.get();
    }
    Owned result(named(op, call.run(function_of(op))));
    if (!result) return nullptr;
    if (!is_tensor(result.get())) type_error(op.op, "_: the op has no single result to write");
    const TensorRef& r = tensor_of(result.get());
    if (!(r->sizes() == t->sizes()))
      value_error(op.op, "_: the result has sizes ", r->sizes(), " and the tensor ", t->sizes(), "; use ", op.op);
    if (category(r->dtype()) > category(t->dtype()))
      type_error(op.op, "_: the result is ", dtype_name(r->dtype()), " and can't be written into ",
                 dtype_name(t->dtype()), "; use ", op.op);
    ops::copy_(t, r);
    Py_INCREF(self);
    return self;
  });
}

PyObject* call_inplace_method(const char* op, FastFunction method, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames) {
  if (nargs < 1 || !is_tensor(args[0])) {
    std::string name = op;
    if (name.ends_with("__")) name.pop_back();  // of an entry whose own name ends with one
    PyErr_Format(PyExc_TypeError, "%s: the first argument must be a Tensor, not %s", name.c_str(),
                 nargs ? Py_TYPE(args[0])->tp_name : "missing");
    return nullptr;
  }
  return method(args[0], args + 1, nargs - 1, kwnames);
}

}  // namespace tp::python
