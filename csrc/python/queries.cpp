// Questions about tensors and sizes that are answered with a plain value, as functions; allclose and equal also as methods.
#include "autograd/engine.h"
#include "python/args.h"
#include "python/module.h"
#include "python/ops_used.h"
#include "python/tensor_type.h"

namespace tp::python {
namespace {

const TensorRef& tensor_argument(const Spec& spec, PyObject* o, const char* name) {
  if (!is_tensor(o))
    type_error(spec.op, ": ", name, " must be a Tensor, not ", Py_TYPE(o)->tp_name, "; wrap it with tensor()");
  return tensor_of(o);
}

constexpr Param kInput[] = {{"input", Kind::Any}};

template <class Ask>
PyObject* ask(const Spec& spec, PyObject* const* args, Py_ssize_t n, PyObject* names, const Ask& answer) {
  return guarded(spec.op, [&]() -> PyObject* {
    Slots<1> a;
    parse(spec, a, nullptr, args, n, names);
    return answer(tensor_argument(spec, a[0], "input"));
  });
}

PyObject* is_floating_point(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  static const Spec spec{"is_floating_point", "is_floating_point(Tensor input) -> bool", kInput};
  return ask(spec, args, n, names, [](const TensorRef& t) { return PyBool_FromLong(is_float(t->dtype())); });
}
PyObject* is_complex_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  static const Spec spec{"is_complex", "is_complex(Tensor input) -> bool", kInput};
  return ask(spec, args, n, names, [](const TensorRef& t) { return PyBool_FromLong(is_complex(t->dtype())); });
}
PyObject* is_inference(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  static const Spec spec{"is_inference", "is_inference(Tensor input) -> bool", kInput};
  return ask(spec, args, n, names, [](const TensorRef& t) { return PyBool_FromLong(t->is_inference()); });
}
PyObject* numel(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  static const Spec spec{"numel", "numel(Tensor input) -> int", kInput};
  return ask(spec, args, n, names, [](const TensorRef& t) { return PyLong_FromLongLong(t->numel()); });
}
PyObject* is_nonzero(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  static const Spec spec{"is_nonzero", "is_nonzero(Tensor input) -> bool", kInput};
  return ask(spec, args, n, names, [](const TensorRef& t) -> PyObject* {
    if (t->numel() != 1)
      runtime_error("is_nonzero: needs exactly one element, got ", t->numel(), "; use any() or all()");
    Owned value(item_of(t, "is_nonzero"));
    return value ? PyBool_FromLong(PyObject_IsTrue(value.get())) : nullptr;
  });
}

/// What two tensors are compared by, and whether all elements pass.
PyObject* all_true(const Spec& spec, const TensorRef& passed) {
  Owned value(item_of(ops::all(passed, Dims(), false), spec.op));
  return value.release();
}
void same_dtype(const Spec& spec, const TensorRef& x, const TensorRef& y) {
  if (x->dtype() == y->dtype()) return;
  Owned a(wrap(x->dtype())), b(wrap(y->dtype()));
  Owned p(PyObject_Str(a.get())), q(PyObject_Str(b.get()));
  if (!p || !q) host_error();
  runtime_error(spec.op, ": got ", PyUnicode_AsUTF8(p.get()), " and ", PyUnicode_AsUTF8(q.get()),
                "; convert one with .to()");
}

PyObject* allclose_call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  static constexpr Param params[] = {{"input", Kind::Any},
                                     {"other", Kind::Any},
                                     {"rtol", Kind::Float, true},
                                     {"atol", Kind::Float, true},
                                     {"equal_nan", Kind::Bool, true}};
  static const Spec spec{
      "allclose",
      "allclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool", params};
  return guarded(spec.op, [&]() -> PyObject* {
    Slots<5> a;
    parse(spec, a, self, args, n, names);
    const TensorRef &x = tensor_argument(spec, a[0], "input"), &y = tensor_argument(spec, a[1], "other");
    same_dtype(spec, x, y);
    const modes::NoGrad off;
    return all_true(
        spec, ops::isclose(x, y, to_double(spec, a, 2, 1e-5), to_double(spec, a, 3, 1e-8), to_bool(spec, a, 4, false)));
  });
}
PyObject* equal_call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  static constexpr Param params[] = {{"input", Kind::Any}, {"other", Kind::Any}};
  static const Spec spec{"equal", "equal(Tensor input, Tensor other) -> bool", params};
  return guarded(spec.op, [&]() -> PyObject* {
    Slots<2> a;
    parse(spec, a, self, args, n, names);
    const TensorRef &x = tensor_argument(spec, a[0], "input"), &y = tensor_argument(spec, a[1], "other");
    if (!(x->sizes() == y->sizes())) Py_RETURN_FALSE;
    same_dtype(spec, x, y);
    const modes::NoGrad off;
    // Most large tensors that differ do so at once.
    if (x->numel() > 16384 && x->sizes()[0] > 1) {
      const Owned first(all_true(spec, ops::eq(ops::select(x, 0, 0), ops::select(y, 0, 0))));
      if (first.get() != Py_True) Py_RETURN_FALSE;
    }
    return all_true(spec, ops::eq(x, y));
  });
}
PyObject* allclose(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return allclose_call(nullptr, args, n, names);
}
PyObject* equal(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return equal_call(nullptr, args, n, names);
}

PyObject* broadcast_shapes(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  static constexpr Param params[] = {{"sizes", Kind::IntList}};
  static const Spec spec{"broadcast_shapes", "broadcast_shapes(*shapes) -> tuple of int", params};
  return guarded(spec.op, [&]() -> PyObject* {
    if (names && PyTuple_GET_SIZE(names)) type_error(spec.op, ": takes sizes one by one, no keywords");
    std::vector<Dims> all;
    int most = 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
      Owned list(PyNumber_Check(args[i]) ? PyTuple_Pack(1, args[i]) : PySequence_Tuple(args[i]));
      if (!list) host_error();
      all.push_back(to_dims(spec, 0, list.get()));
      most = std::max(most, all.back().size());
    }
    Dims out(most, 1);
    for (const Dims& sizes : all)
      for (int i = 1; i <= sizes.size(); ++i) {
        const std::int64_t have = out[most - i], size = sizes[sizes.size() - i];
        if (size < 0) runtime_error(spec.op, ": ", sizes, " has a negative size");
        if (size == 1 || size == have) continue;
        if (have != 1) {
          std::ostringstream shown;
          for (std::size_t k = 0; k < all.size(); ++k) shown << (k ? ", " : "") << all[k];
          runtime_error(spec.op, ": the sizes [", shown.str(), "] don't go together at dimension -", i, ": ", have,
                        " and ", size);
        }
        out[most - i] = size;
      }
    return wrap(out);
  });
}

PyMethodDef functions[] = {
    {"allclose", fast(allclose), METH_FASTCALL | METH_KEYWORDS,
     "allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False)\n--\n\n"
     "Whether |input - other| <= atol + rtol * |other| for every element; the two broadcast.\n\nArgs:\n"
     "  rtol, atol: relative and absolute tolerance.\n  equal_nan: whether two nans count as equal."},
    {"broadcast_shapes", fast(broadcast_shapes), METH_FASTCALL | METH_KEYWORDS,
     "broadcast_shapes(*shapes)\n--\n\nThe size that tensors of these sizes have together."},
    {"equal", fast(equal), METH_FASTCALL | METH_KEYWORDS,
     "equal(input, other)\n--\n\n"
     "Whether two tensors have the same sizes and the same elements; nan equals nothing, itself included."},
    {"is_complex", fast(is_complex_function), METH_FASTCALL | METH_KEYWORDS,
     "is_complex(input)\n--\n\nWhether the dtype is complex64 or complex128."},
    {"is_floating_point", fast(is_floating_point), METH_FASTCALL | METH_KEYWORDS,
     "is_floating_point(input)\n--\n\nWhether the dtype is float16, bfloat16, float32 or float64."},
    {"is_inference", fast(is_inference), METH_FASTCALL | METH_KEYWORDS,
     "is_inference(input)\n--\n\nWhether the tensor was made under inference_mode."},
    {"is_nonzero", fast(is_nonzero), METH_FASTCALL | METH_KEYWORDS,
     "is_nonzero(input)\n--\n\nWhether the only element of a tensor differs from zero."},
    {"numel", fast(numel), METH_FASTCALL | METH_KEYWORDS, "numel(input)\n--\n\nNumber of elements."},
    {},
};
PyMethodDef methods[] = {
    {"allclose", fast(allclose_call), METH_FASTCALL | METH_KEYWORDS,
     "allclose($self, /, other, rtol=1e-05, atol=1e-08, equal_nan=False)\n--\n\nWhether all elements are close to "
     "those of other."},
    {"equal", fast(equal_call), METH_FASTCALL | METH_KEYWORDS,
     "equal($self, /, other)\n--\n\nWhether sizes and all elements are those of other."},
    {},
};

}  // namespace

void register_queries(Registry& r) {
  r.add("", functions);
  r.add_methods(methods);
}

}  // namespace tp::python
