// Attributes of Tensor: geometry, dtype, history, gradient. Knows no op but the views behind T, mT, real and imag.
#include "ops/complex_parts.h"
#include "python/graph_objects.h"
#include "python/ops_used.h"
#include "python/tensor_type.h"
#include "transforms/batched.h"

namespace tp::python {
namespace {

PyObject* get_shape(PyObject* self, void*) { return wrap_size(tensor_of(self)->sizes()); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(tensor_of(self)->dim()); }
PyObject* get_dtype(PyObject* self, void*) { return wrap(tensor_of(self)->dtype()); }
PyObject* get_device(PyObject*, void*) {
  Py_INCREF(device_object());
  return device_object();
}
PyObject* get_layout(PyObject*, void*) { return PyUnicode_FromString("strided"); }
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromSize_t(item_size(tensor_of(self)->dtype())); }
PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromSize_t(tensor_of(self)->storage().nbytes()); }
PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }

// ---- autograd state --------------------------------------------------------------------------------------------------
PyObject* get_requires_grad(PyObject* self, void*) { return PyBool_FromLong(tensor_of(self)->requires_grad()); }
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    if (!value) runtime_error("requires_grad: can't be deleted");
    if (!PyBool_Check(value)) runtime_error("requires_grad: must be a bool, not ", Py_TYPE(value)->tp_name);
    set_requires_grad_flag(tensor_of(self), value == Py_True);
    ensure_tracked(self);
    return 0;
  });
}
PyObject* get_is_leaf(PyObject* self, void*) { return PyBool_FromLong(tensor_of(self)->is_leaf()); }

PyObject* get_grad(PyObject* self, void*) {
  const TensorRef& t = batch::physical(tensor_of(self));
  const TensorRef& g = t->grad();
  if (TP_UNLIKELY(g && tensor_of(self)->is_batched()))
    return guarded([&] { return wrap(batch::cover(g, batch::levels_of(tensor_of(self)))); });
  if (TP_LIKELY(bool(g))) return wrap(g);
  if (!t->is_leaf() && !(t->meta() && t->meta()->retains_grad)) {
    if (PyErr_WarnEx(
            PyExc_UserWarning,
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't "
            "be populated during autograd.backward(). If you indeed want the .grad field to be populated for a "
            "non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.",
            1) < 0)
      return nullptr;
  }
  Py_RETURN_NONE;
}

int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    const TensorRef& t = batch::physical(tensor_of(self));
    if (!value || value == Py_None) {
      if (t->meta()) t->meta()->grad.reset();
      return 0;
    }
    if (!is_tensor(value)) type_error("grad: expected Tensor or None, not ", Py_TYPE(value)->tp_name);
    const TensorRef g = batch::peel(tensor_of(value), batch::levels_of(tensor_of(self)));
    if (g == t) runtime_error("grad: can't assign a tensor as its own gradient");
    const AutogradMeta* meta = t->meta();
    const Dtype want = meta && meta->has_grad_dtype ? meta->grad_dtype : t->dtype();
    if (g->dtype() != want && !(meta && meta->any_grad_dtype))
      runtime_error("grad: assigned gradient has dtype ", dtype_name(g->dtype()), ", expected ", dtype_name(want),
                    "; convert it with .to(), or set grad_dtype");
    if (!(g->sizes() == t->sizes()))
      runtime_error("grad: assigned gradient has sizes ", g->sizes(), ", expected ", t->sizes());
    t->ensure_meta().grad = g;
    ensure_tracked(self);
    return 0;
  });
}

PyObject* get_grad_dtype(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    if (!t->is_leaf()) runtime_error("grad_dtype: only leaf tensors have one; this one was made by an operation");
    const AutogradMeta* meta = t->meta();
    if (meta && meta->any_grad_dtype) Py_RETURN_NONE;
    return wrap(meta && meta->has_grad_dtype ? meta->grad_dtype : t->dtype());
  });
}
int set_grad_dtype(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    const TensorRef& t = tensor_of(self);
    if (!value) runtime_error("grad_dtype: can't be deleted");
    if (!t->is_leaf()) runtime_error("grad_dtype: can only be set on a leaf tensor; this one was made by an operation");
    Dtype d = t->dtype();
    if (value != Py_None && !dtype_from(value, &d))
      runtime_error("grad_dtype: expected a tensorplay dtype or None, not ", Py_TYPE(value)->tp_name);
    if (value != Py_None && t->grad() && t->grad()->dtype() != d)
      runtime_error("grad_dtype: can't become ", dtype_name(d), " while .grad has dtype ",
                    dtype_name(t->grad()->dtype()), "; set .grad to None first");
    AutogradMeta& meta = t->ensure_meta();
    meta.has_grad_dtype = true;
    meta.any_grad_dtype = value == Py_None;
    meta.grad_dtype = d;
    return 0;
  });
}

PyObject* get_grad_fn(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = batch::physical(tensor_of(self));
    if (t->is_leaf()) Py_RETURN_NONE;
    Node* n = grad_fn(t);
    if (!n || n->is_accumulator()) Py_RETURN_NONE;
    return wrap_node(n);
  });
}
PyObject* get_output_nr(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(batch::physical(tensor_of(self))->output_nr());
}
PyObject* get_retains_grad(PyObject* self, void*) {
  const TensorRef& t = batch::physical(tensor_of(self));
  return PyBool_FromLong(!t->is_leaf() && t->meta() && t->meta()->retains_grad);
}

PyObject* get_version(PyObject* self, void*) {
  const TensorRef& t = batch::physical(tensor_of(self));
  if (t->is_inference()) {
    PyErr_SetString(PyExc_RuntimeError,
                    "_version: inference tensors do not track changes; clone() one outside inference_mode");
    return nullptr;
  }
  return PyLong_FromUnsignedLong(t->storage().version());
}
PyObject* get_base(PyObject* self, void*) {
  const TensorRef& t = batch::physical(tensor_of(self));
  if (!t->is_view()) Py_RETURN_NONE;
  return wrap(t->view().base);
}

PyObject* get_data(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const batch::Levels levels = batch::levels_of(tensor_of(self));
    const Storage& s = batch::physical(tensor_of(self))->storage();
    // The same memory under a version counter of its own: the unsafe hatch.
    TensorRef alias = TensorImpl::make(Storage(alias_block(s.block()), s.dtype(), s.sizes(), s.strides(), s.offset()));
    alias->set_inference(tensor_of(self)->is_inference());
    return kept(wrap(batch::wrap(std::move(alias), levels)), self);
  });
}
int set_data(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    if (!value || !is_tensor(value))
      type_error("data: expected a Tensor, not ", value ? Py_TYPE(value)->tp_name : "nothing");
    const TensorRef& t = tensor_of(self);
    const TensorRef& other = tensor_of(value);
    if (t->is_batched() || other->is_batched()) runtime_error("data: can't be assigned inside vmap; use copy_()");
    if (t->requires_grad() && !is_differentiable(other->dtype()))
      runtime_error("data: a tensor that requires grad can't hold ", dtype_name(other->dtype()), " values");
    t->set_storage(other->storage());
    t->clear_reshaped();  // no op follows that would
    return 0;
  });
}

// ---- transposed and complex views ------------------------------------------------------------------------------------
TensorRef last_two_swapped(const TensorRef& t, const char* name) {
  if (t->dim() < 2) runtime_error(name, ": needs a tensor of at least 2 dimensions, this one has ", t->dim());
  return ops::transpose(t, -2, -1);
}
PyObject* get_t(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    if (t->dim() < 2) return kept(wrap(t), self);
    Dims dims;
    for (int i = t->dim() - 1; i >= 0; --i) dims.push_back(i);
    return kept(wrap(ops::permute(t, dims)), self);
  });
}
PyObject* get_mt(PyObject* self, void*) {
  return guarded([&] { return kept(wrap(last_two_swapped(tensor_of(self), "mT")), self); });
}
PyObject* get_mh(PyObject* self, void*) {
  return guarded([&] {
    TensorRef t = last_two_swapped(tensor_of(self), "mH");
    return kept(wrap(is_complex(t->dtype()) ? ops::conj(t) : t), self);
  });
}
PyObject* get_h(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    if (t->dim() != 0 && t->dim() != 2)
      runtime_error("H: needs a matrix, this tensor has ", t->dim(), " dimensions; mH takes batches");
    TensorRef r = t->dim() == 2 ? ops::transpose(t, 0, 1) : t;
    return kept(wrap(is_complex(r->dtype()) ? ops::conj(r) : r), self);
  });
}
PyObject* get_real(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    return kept(wrap(is_complex(t->dtype()) ? complex_part(t, ComplexPart::Real) : t), self);
  });
}
PyObject* get_imag(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    if (!is_complex(t->dtype()))
      runtime_error("imag: only complex tensors have one, this one is ", dtype_name(t->dtype()));
    return kept(wrap(complex_part(t, ComplexPart::Imag)), self);
  });
}

}  // namespace

void set_requires_grad_flag(const TensorRef& t, bool on) {
  if (TP_UNLIKELY(t->is_batched())) return set_requires_grad_flag(t->meta()->physical, on);
  if (!t->is_leaf()) {
    if (on) return;
    runtime_error(
        "requires_grad: you can only change requires_grad flags of leaf variables. If you want to use a computed "
        "variable in a subgraph that doesn't require differentiation use detach(): y = x.detach()");
  }
  if (on && !is_differentiable(t->dtype()))
    runtime_error("requires_grad: only tensors of floating point and complex dtype can require gradients, this one is ",
                  dtype_name(t->dtype()));
  if (on && t->is_inference() && !modes::any(modes::kInference))
    runtime_error(
        "requires_grad: an inference tensor can't require gradients outside inference_mode; clone() it first");
  t->set_requires_grad(on);
}

PyObject* wrap_leaf(TensorRef t, PyObject* flag) {
  if (flag && flag != Py_None) {
    if (!PyBool_Check(flag)) type_error("requires_grad: must be a bool, not ", Py_TYPE(flag)->tp_name);
    if (flag == Py_True) set_requires_grad_flag(t, true);
  }
  return wrap(std::move(t));
}

namespace {
// What NumPy's arrays have under this name: no attribute, so that hasattr says so, and what to do instead.
PyObject* get_absent(PyObject* self, void* said) {
  return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute %s", Py_TYPE(self)->tp_name,
                      static_cast<const char*>(said));
}
PyGetSetDef absent(const char* name, const char* said) {
  return {name, get_absent, nullptr, "Absent.", const_cast<char*>(said)};
}
}  // namespace

PyGetSetDef tensor_attributes[] = {
    {"shape", get_shape, nullptr, "Sizes of the dimensions.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"dtype", get_dtype, nullptr, "Type of the elements.", nullptr},
    {"device", get_device, nullptr, "Where the memory is.", nullptr},
    {"layout", get_layout, nullptr, "How elements are laid out: always strided.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes per element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"is_cuda", get_false, nullptr, "Whether the tensor is on a CUDA device: never.", nullptr},
    {"is_sparse", get_false, nullptr, "Whether the tensor is sparse: never.", nullptr},
    {"is_meta", get_false, nullptr, "Whether the tensor has no memory: never.", nullptr},
    {"is_quantized", get_false, nullptr, "Whether the tensor is quantised: never.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether operations on this tensor are recorded.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Whether no recorded operation made this tensor.", nullptr},
    {"grad", get_grad, set_grad, "The gradient accumulated by backward().", nullptr},
    {"grad_dtype", get_grad_dtype, set_grad_dtype, "The dtype .grad must have; None allows any.", nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node that made this tensor; None for a leaf.", nullptr},
    {"output_nr", get_output_nr, nullptr, "Which result of grad_fn this tensor is.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "Whether backward() fills .grad of this non-leaf.", nullptr},
    {"_version", get_version, nullptr, "How often this memory was changed in place.", nullptr},
    {"_base", get_base, nullptr, "The tensor this one is a view of; None otherwise.", nullptr},
    {"data", get_data, set_data, "The same memory without history and version checks.", nullptr},
    {"T", get_t, nullptr, "All dimensions reversed.", nullptr},
    {"mT", get_mt, nullptr, "The last two dimensions swapped.", nullptr},
    {"mH", get_mh, nullptr, "The last two dimensions swapped, conjugated.", nullptr},
    {"H", get_h, nullptr, "A matrix transposed and conjugated.", nullptr},
    {"real", get_real, nullptr, "The real part.", nullptr},
    {"imag", get_imag, nullptr, "The imaginary part.", nullptr},
    absent("astype", "'astype': to(dtype) gives the values in another dtype"),
    absent("copy", "'copy': clone() copies the memory; copy_(other) writes into this one"),
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};

}  // namespace tp::python
