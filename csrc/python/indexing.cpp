// x[key] and x[key] = value: keys become views, then one index or index_put_ for tensors in the key. Memory is never walked
// backwards: a slice of negative step is a view of the elements it names in memory's order, which is then turned round.
#include <algorithm>

#include "autograd/engine.h"
#include "kernels/index.h"
#include "kernels/number.h"
#include "ops/wiring.h"
#include "python/ops_used.h"
#include "python/tensor_type.h"

namespace tp::python {
namespace {

enum class Item { Int, Slice, NewAxis, Ellipsis, Bool, Mask, Index };

struct Part {
  Item kind = Item::Int;
  std::int64_t value = 0;  // Int, Bool
  PyObject* slice = nullptr;
  TensorRef tensor;  // Mask, Index
};

bool is_truth(PyObject* o) { return PyBool_Check(o) || number_kind(o) == Number::Bool; }

Part classify(PyObject* o) {
  Part p;
  if (PyLong_CheckExact(o)) {
    p.value = PyLong_AsLongLong(o);
    if (p.value == -1 && PyErr_Occurred()) host_error();
  } else if (PySlice_Check(o)) {
    p.kind = Item::Slice;
    p.slice = o;
  } else if (o == Py_None) {
    p.kind = Item::NewAxis;
  } else if (o == Py_Ellipsis) {
    p.kind = Item::Ellipsis;
  } else if (is_truth(o)) {
    p.kind = Item::Bool;
    p.value = PyObject_IsTrue(o);
  } else {
    if (is_tensor(o)) {
      p.tensor = tensor_of(o);
    } else if (PyList_Check(o) || PyTuple_Check(o) || PyRange_Check(o) || is_numpy_array(o)) {
      p.tensor = tensor_like_array(o, "index", std::nullopt);
      // An empty list has no dtype of its own: it selects nothing.
      if (p.tensor->numel() == 0 && is_float(p.tensor->dtype()))
        p.tensor = TensorImpl::make(empty(p.tensor->sizes(), Dtype::I64));
    } else if (PyIndex_Check(o)) {
      Owned i(PyNumber_Index(o));
      if (!i) host_error();
      return classify(i.get());
    } else {
      index_error(
          "index: only integers, slices (`:`), ellipsis (`...`), None and long or bool tensors or lists are valid "
          "indices, not ",
          Py_TYPE(o)->tp_name);
    }
    const Dtype d = p.tensor->dtype();
    if (d == Dtype::Bool) {
      if (p.tensor->dim() == 0) {
        p.kind = Item::Bool;
        need_values(p.tensor, "index with a bool");
        p.value = read_element(p.tensor->storage(), 0).to_bool();
      } else {
        p.kind = Item::Mask;
      }
    } else if (category(d) == Category::Integer) {
      if (p.tensor->dim() == 0 && !p.tensor->is_batched()) {
        p.value = read_element(p.tensor->storage(), 0).to_int();
      } else {
        p.kind = Item::Index;
      }
    } else {
      index_error("index: tensors used as indices must be integer or bool, this one is ", dtype_name(d));
    }
  }
  return p;
}

TensorRef index_tensor(const std::vector<std::int64_t>& v) {
  Storage s = empty(Shape{std::int64_t(v.size())}, Dtype::I64);
  std::copy(v.begin(), v.end(), s.data<std::int64_t>());
  return TensorImpl::make(std::move(s));
}

// The positions of the true elements, one index tensor per dimension of the mask.
std::vector<TensorRef> mask_indices(const Storage& mask) {
  static constexpr OpSchema op{"index", ""};
  const Storage places = kernels::nonzero(op, mask);  // [count, dimensions]
  const std::int64_t count = places.size(0), dims = places.size(1);
  std::vector<TensorRef> tensors;
  for (std::int64_t d = 0; d < dims; ++d)
    tensors.push_back(TensorImpl::make(places.with_geometry(Shape{count}, Strides{dims}, places.offset() + d)));
  return tensors;
}

// The key, where it is one mask of all elements and nothing is recorded: such a mask needs no list of places.
TensorRef whole_mask(const TensorRef& t, PyObject* key) {
  if (!is_tensor(key) || t->dim() == 0 || t->requires_grad() || t->is_special()) return {};
  const TensorRef& mask = tensor_of(key);
  if (mask->dtype() != Dtype::Bool || mask->is_special() || !(mask->sizes() == t->sizes()) ||
      modes::any(modes::kForward | modes::kTransform))
    return {};
  return mask;
}

std::int64_t checked_index(std::int64_t i, std::int64_t size, int dim) {
  if (i < -size || i >= size) index_error("index ", i, " is out of bounds for dimension ", dim, " with size ", size);
  return i < 0 ? i + size : i;
}

TensorRef take(const TensorRef& t, int view_dim, int original_dim, std::int64_t i) {
  return ops::select(t, view_dim, checked_index(i, t->sizes()[view_dim], original_dim));
}

struct Range {
  Py_ssize_t start, stop, step;
  bool backwards;
};
/// A bound that is None or a plain small int; false: any other.
bool plain_bound(PyObject* o, std::int64_t absent, std::int64_t& v) {
  if (o == Py_None) return v = absent, true;
  if (!PyLong_CheckExact(o)) return false;
#if PY_VERSION_HEX >= 0x030C0000
  if (!PyUnstable_Long_IsCompact(reinterpret_cast<PyLongObject*>(o))) return false;
  return v = PyUnstable_Long_CompactValue(reinterpret_cast<PyLongObject*>(o)), true;
#else
  const Py_ssize_t digits = Py_SIZE(o);  // signed as the number
  if (digits < -1 || digits > 1) return false;
  return v = digits * std::int64_t(reinterpret_cast<PyLongObject*>(o)->ob_digit[0]), true;
#endif
}

Range range_of(PyObject* o, std::int64_t size) {
  const auto* s = reinterpret_cast<PySliceObject*>(o);
  std::int64_t start, stop, step;
  if (plain_bound(s->step, 1, step) && step > 0 && plain_bound(s->start, 0, start) &&
      plain_bound(s->stop, size, stop)) {
    const auto bound = [size](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + size : v, 0, size); };
    start = bound(start), stop = bound(stop);
    if (start >= stop) start = stop = 0;
    return {start, stop, step, false};
  }
  Range r;
  if (PySlice_Unpack(o, &r.start, &r.stop, &r.step) < 0) host_error();
  const Py_ssize_t n = PySlice_AdjustIndices(size, &r.start, &r.stop, r.step);
  r.backwards = r.step < 0;
  if (r.backwards) {
    r.step = -r.step;
    r.stop = r.start + 1;
    r.start -= (n - 1) * r.step;
  }
  if (n == 0) r.start = r.stop = 0;
  return r;
}

// The elements of a slice in memory's order; dimensions to be turned round are added to `reversed`.
TensorRef cut(const TensorRef& t, int dim, PyObject* o, Dims& reversed) {
  const Range r = range_of(o, t->sizes()[dim]);
  if (r.backwards) reversed.push_back(dim);
  return ops::slice(t, dim, r.start, r.stop, r.step);
}

TensorRef turned(TensorRef t, const Dims& reversed) { return reversed.empty() ? t : ops::flip(t, reversed); }

// Integers and slices of a tensor that records nothing, as one view without an op. Null: not such a key.
TensorRef plain_view(const TensorRef& t, PyObject* key) {
  if (t->is_batched() || wiring::records(t) || modes::any(modes::kForward | modes::kTransform)) return {};
  const bool several = PyTuple_CheckExact(key);
  PyObject* const* items = several ? &PyTuple_GET_ITEM(key, 0) : &key;
  const Py_ssize_t n = several ? PyTuple_GET_SIZE(key) : 1;
  if (n < 1 || n > t->dim()) return {};
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!PyLong_CheckExact(items[i]) && !PySlice_Check(items[i])) return {};
  const Storage& s = t->storage();
  Shape sizes;
  Strides strides;
  std::int64_t offset = s.offset();
  for (int i = 0; i < s.dim(); ++i) {
    PyObject* o = i < n ? items[i] : nullptr;
    if (!o) {
      sizes.push_back(s.size(i));
      strides.push_back(s.stride(i));
    } else if (PyLong_CheckExact(o)) {
      const std::int64_t at = PyLong_AsLongLong(o);
      if (at == -1 && PyErr_Occurred()) host_error();
      offset += checked_index(at, s.size(i), i) * s.stride(i);
    } else {
      const Range r = range_of(o, s.size(i));
      if (r.backwards) return {};
      const std::int64_t length = r.stop - r.start;
      sizes.push_back(r.step == 1 ? length : (length + r.step - 1) / r.step);
      strides.push_back(s.stride(i) * r.step);
      offset += r.start * s.stride(i);
    }
  }
  TensorRef view = TensorImpl::make_from([&] { return s.with_geometry(sizes, strides, offset); });
  wiring::mark_view(view, t, "index");
  return view;
}

struct Selection {
  TensorRef view;
  std::vector<TensorRef> indices;  // by dimension of `view`; empty: the view is the result
  Dims reversed;  // dimensions of `view` that are turned round
};

Selection select_parts(const TensorRef& t, PyObject* const* items, Py_ssize_t n) {
  InlineVec<Part, 4> parts;
  int used = 0;
  bool ellipsis = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    Part p = classify(items[i]);
    switch (p.kind) {
      case Item::Int:
      case Item::Slice:
      case Item::Index: ++used; break;
      case Item::Mask: used += p.tensor->dim(); break;
      case Item::Ellipsis:
        if (ellipsis) index_error("index: an index can have only a single ellipsis ('...')");
        ellipsis = true;
        break;
      default: break;
    }
    parts.push_back(std::move(p));
  }
  if (used > t->dim()) {
    if (t->dim() == 0 && n == 1)
      index_error(
          "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim tensor to a number");
    index_error("too many indices for tensor of dimension ", t->dim(), " (got ", used, ")");
  }
  Selection s{t, {}, {}};
  int dim = 0, original = 0;
  const auto put = [&](TensorRef index) {
    s.indices.resize(std::size_t(dim));
    s.indices.push_back(std::move(index));
    ++dim;
  };
  for (Part& p : parts) {
    switch (p.kind) {
      case Item::Int: s.view = take(s.view, dim, original++, p.value); break;
      case Item::Slice: s.view = cut(s.view, dim++, p.slice, s.reversed), ++original; break;
      case Item::NewAxis: s.view = ops::unsqueeze(s.view, dim++); break;
      case Item::Ellipsis:
        original += t->dim() - used;
        dim += t->dim() - used;
        break;
      case Item::Bool:
        s.view = ops::unsqueeze(s.view, dim);
        put(index_tensor(p.value ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{}));
        break;
      case Item::Mask: {
        const Shape& m = p.tensor->sizes();
        for (int k = 0; k < m.size(); ++k)
          if (m[k] != s.view->sizes()[dim + k])
            index_error("The shape of the mask ", m, " at index ", k,
                        " does not match the shape of the indexed tensor ", t->sizes(), " at index ", original + k);
        original += m.size();
        if (TP_UNLIKELY(p.tensor->is_batched()))
          runtime_error(
              "index: vmap: a mask that differs between samples selects a number of elements that differs too; use "
              "tensorplay.where(mask, x, other) instead of x[mask]");
        for (TensorRef& index : mask_indices(p.tensor->storage())) put(std::move(index));
        break;
      }
      case Item::Index:
        ++original;
        put(std::move(p.tensor));
        break;
    }
  }
  return s;
}

Selection select_key(const TensorRef& t, PyObject* key) {
  if (PyTuple_Check(key)) return select_parts(t, &PyTuple_GET_ITEM(key, 0), PyTuple_GET_SIZE(key));
  return select_parts(t, &key, 1);
}

// One element of a tensor without history set to a number: written in place, without a view and an operand.
bool set_element(const TensorRef& t, PyObject* key, PyObject* value) {
  if (!PyLong_CheckExact(key) && !PyTuple_CheckExact(key)) return false;
  if (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value)) return false;
  const Storage& s = t->storage();
  if (t->requires_grad() || t->is_special() || t->is_inference() || s.block()->read_only ||
      modes::any(modes::kForward | modes::kTransform | modes::kMutationAllowed))
    return false;
  const bool several = PyTuple_CheckExact(key);
  PyObject* const* items = several ? &PyTuple_GET_ITEM(key, 0) : &key;
  const Py_ssize_t n = several ? PyTuple_GET_SIZE(key) : 1;
  if (n != t->dim()) return false;
  std::int64_t offset = 0;
  for (int i = 0; i < n; ++i) {
    if (!PyLong_CheckExact(items[i])) return false;
    const std::int64_t at = PyLong_AsLongLong(items[i]);
    if (at == -1 && PyErr_Occurred()) host_error();
    offset += checked_index(at, s.size(i), i) * s.stride(i);
  }
  const Scalar v = scalar_from(value);
  kernels::check_held("setitem", v, s.dtype());
  write_element(s.raw() + offset * std::int64_t(item_size(s.dtype())), s.dtype(), v);
  s.bump_version();
  return true;
}

// The value of an assignment, in the dtype of the target.
TensorRef assigned(PyObject* value, const TensorRef& target) {
  if (is_tensor(value)) return tensor_of(value);
  if (number_kind(value) != Number::None) return wrapped_number(value);
  if (PyList_Check(value) || PyTuple_Check(value)) return tensor_from_data(value, "setitem", target->dtype());
  if (is_numpy_array(value)) return tensor_like_array(value, "setitem", std::nullopt);
  type_error("setitem: can't assign a ", Py_TYPE(value)->tp_name, " to a tensor of ", dtype_name(target->dtype()));
}

// Leading dimensions of size 1 that the target does not have fall away.
TensorRef without_leading_ones(TensorRef v, int dims) {
  while (v->dim() > dims && v->dim() > 0 && v->sizes()[0] == 1) v = ops::select(v, 0, 0);
  return v;
}

}  // namespace

PyObject* tensor_subscript(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = tensor_of(self);
    if (TensorRef view = plain_view(t, key)) return kept(wrap(std::move(view)), self);
    if (TP_LIKELY(t->dim() > 0)) {
      if (PyLong_CheckExact(key)) {
        const long long i = PyLong_AsLongLong(key);
        if (i == -1 && PyErr_Occurred()) return nullptr;
        return kept(wrap(take(t, 0, 0, i)), self);
      }
      if (PySlice_Check(key)) {
        Dims reversed;
        TensorRef part = cut(t, 0, key, reversed);
        return kept(wrap(turned(std::move(part), reversed)), self);
      }
    }
    if (const TensorRef mask = whole_mask(t, key)) return kept(wrap(ops::masked_select(t, mask)), self);
    Selection s = select_key(t, key);
    s.view = turned(std::move(s.view), s.reversed);
    if (!s.indices.empty()) return kept(wrap(ops::index(s.view, s.indices)), self);
    // x[...] and x[()] are views, not the same object.
    if (s.view == t) return kept(wrap(ops::expand(t, t->sizes())), self);
    return kept(wrap(std::move(s.view)), self);
  });
}

int tensor_assign_subscript(PyObject* self, PyObject* key, PyObject* value) {
  return guarded_int([&]() -> int {
    if (!value) type_error("delitem: elements of a tensor can't be deleted");
    const TensorRef& t = tensor_of(self);
    if (set_element(t, key, value)) return 0;
    if (number_kind(value) != Number::None) kernels::check_held("setitem", scalar_from(value), t->dtype());
    TensorRef v = assigned(value, t);
    if (v->dim() == 0 && !v->requires_grad() && !v->is_special() && !t->is_inference() &&
        !t->storage().block()->read_only)
      if (const TensorRef mask = whole_mask(t, key)) {
        ops::masked_fill_(t, mask, v->dtype() == t->dtype() ? v : engine_ops.cast_graph(v, t->dtype()));
        return 0;
      }
    TensorRef view = plain_view(t, key);
    const Selection s = view ? Selection{std::move(view), {}, {}} : select_key(t, key);
    if (!s.reversed.empty()) {
      if (!s.indices.empty())
        value_error(
            "setitem: a negative slice step beside an index tensor or a mask is not supported; give the "
            "positions as an index");
      v = ops::flip(ops::expand(without_leading_ones(std::move(v), s.view->dim()), s.view->sizes()), s.reversed);
    }
    if (s.indices.empty()) {
      ops::copy_(s.view, without_leading_ones(std::move(v), s.view->dim()));
    } else {
      if (v->dtype() != t->dtype()) v = engine_ops.cast_graph(v, t->dtype());
      ops::index_put_(s.view, s.indices, v, false);
    }
    if (t->grad_fn_raw()) ensure_tracked(self);
    return 0;
  });
}

}  // namespace tp::python
