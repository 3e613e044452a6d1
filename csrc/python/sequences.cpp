// Tensors from nested Python sequences: one walk finds sizes and dtype, one fills. Knows no op.
#include "python/creation.h"

#include <cmath>
#include <cstring>

namespace tp::python {
namespace {

bool is_sequence(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o) || PyRange_Check(o); }

// Numbers of NumPy keep their dtype, as in PyTorch.
Dtype number_dtype(PyObject* o, Number k) {
  if (!std::strncmp(Py_TYPE(o)->tp_name, "numpy.", 6)) {
    Dtype d;
    if (dtype_from(reinterpret_cast<PyObject*>(Py_TYPE(o)), &d)) return d;
  }
  switch (k) {
    case Number::Bool: return Dtype::Bool;
    case Number::Int: return Dtype::I64;
    case Number::Float: return default_float();
    default: return complex_dtype(default_float());
  }
}

class Scan {
 public:
  Scan(const char* op) : op_(op) {}
  Shape sizes;
  Dtype dtype = Dtype::Bool;
  bool any = false;

  void walk(PyObject* o, int depth) {
    if (is_sequence(o)) {
      Owned fast(PySequence_Fast(o, "a sequence"));
      if (!fast) host_error();
      enter(PySequence_Fast_GET_SIZE(fast.get()), depth);
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
        at_.push_back(i);
        walk(PySequence_Fast_GET_ITEM(fast.get(), i), depth + 1);
        at_.pop_back();
      }
      return;
    }
    if (is_tensor(o)) {
      need_values(tensor_of(o), "tensor");
      const Storage& s = tensor_of(o)->storage();
      for (int d = 0; d < s.dim(); ++d) enter(s.size(d), depth + d);
      leaf(depth + s.dim());
      add(s.dtype());
      return;
    }
    const Number k = number_kind(o);
    if (k == Number::None) {
      if (is_numpy_array(o)) {
        TensorRef t = tensor_from_array(o, op_);
        for (int d = 0; d < t->dim(); ++d) enter(t->sizes()[d], depth + d);
        leaf(depth + t->dim());
        add(t->dtype());
        return;
      }
      if (PyIndex_Check(o)) {
        leaf(depth);
        add(Dtype::I64);
        return;
      }
      type_error(op_, ": can't make a tensor of a ", Py_TYPE(o)->tp_name, place());
    }
    leaf(depth);
    add(number_dtype(o, k));
  }

 private:
  std::string place() const {
    if (at_.empty()) return "";
    std::string s = " at position [";
    for (std::size_t i = 0; i < at_.size(); ++i) s += (i ? ", " : "") + std::to_string(at_[i]);
    return s + "]";
  }
  void enter(std::int64_t n, int depth) {
    if (depth >= 64) value_error(op_, ": sequences are nested too deeply (more than 64 levels); is one inside itself?");
    if (depth < sizes.size()) {
      if (sizes[depth] != n)
        value_error(op_, ": expected sequence of length ", sizes[depth], " at dim ", depth, " (got ", n, ")", place());
      return;
    }
    if (closed_) value_error(op_, ": expected a number", place(), ", found a sequence of length ", n);
    sizes.push_back(n);
  }
  // The depth of the first number is the number of dimensions.
  void leaf(int depth) {
    if (depth < sizes.size())
      value_error(op_, ": expected a sequence of length ", sizes[depth], place(), ", found a number");
    closed_ = true;
  }
  void add(Dtype d) {
    dtype = any ? promote_types(dtype, d) : d;
    any = true;
  }
  const char* op_;
  bool closed_ = false;
  std::vector<Py_ssize_t> at_;
};

void check_range(const char* op, Dtype d, const Scalar& v) {
  if (category(d) != Category::Integer || item_size(d) == 8) return;
  if (!v.is_integral() && !std::isfinite(v.to_double()))
    value_error(op, ": ", v.to_double(), " can't be converted to ", dtype_name(d));
  const int bits = int(item_size(d)) * 8;
  const std::int64_t low = is_signed(d) ? -(std::int64_t(1) << (bits - 1)) : 0;
  const std::int64_t high = is_signed(d) ? (std::int64_t(1) << (bits - 1)) - 1 : (std::int64_t(1) << bits) - 1;
  if (v.to_int() < low || v.to_int() > high)
    runtime_error(op, ": value ", v.to_int(), " cannot be converted to type ", dtype_name(d), " without overflow");
}

class Fill {
 public:
  Fill(const char* op, const Storage& s) : op_(op), p_(s.raw()), dtype_(s.dtype()), step_(item_size(s.dtype())) {}

  void walk(PyObject* o) {
    if (is_sequence(o)) {
      Owned fast(PySequence_Fast(o, "a sequence"));
      if (!fast) host_error();
      PyObject* const* items = PySequence_Fast_ITEMS(fast.get());
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
      for (Py_ssize_t i = 0; i < n; ++i) walk(items[i]);
      return;
    }
    if (is_tensor(o)) return elements(tensor_of(o)->storage());
    if (is_numpy_array(o)) return elements(tensor_from_array(o, op_)->storage());
    number(o);
  }

 private:
  void elements(const Storage& s) {
    for (std::int64_t i = 0; i < s.numel(); ++i, p_ += step_) write_element(p_, dtype_, read_element(s, i));
  }
  void number(PyObject* o) {
    if (PyFloat_CheckExact(o)) {
      if (dtype_ == Dtype::F32) {
        const float v = float(PyFloat_AS_DOUBLE(o));
        std::memcpy(p_, &v, 4);
        p_ += 4;
        return;
      }
      if (dtype_ == Dtype::F64) {
        const double v = PyFloat_AS_DOUBLE(o);
        std::memcpy(p_, &v, 8);
        p_ += 8;
        return;
      }
    } else if (PyLong_CheckExact(o)) {
      if (dtype_ == Dtype::U64) {
        const unsigned long long v = PyLong_AsUnsignedLongLong(o);
        if (v == static_cast<unsigned long long>(-1) && PyErr_Occurred()) host_error();
        std::memcpy(p_, &v, 8);
        p_ += 8;
        return;
      }
      if (is_float(dtype_)) {  // any size of int
        const double v = PyLong_AsDouble(o);
        if (v == -1 && PyErr_Occurred()) host_error();
        write_element(p_, dtype_, Scalar(v));
        p_ += step_;
        return;
      }
    }
    Owned index;
    if (number_kind(o) == Number::None) {
      index = Owned(PyNumber_Index(o));
      if (!index) host_error();
      o = index.get();
    }
    const Scalar v = scalar_from(o);
    if (v.is_complex() && !is_complex(dtype_))
      type_error(op_, ": can't convert complex to ", dtype_name(dtype_), "; take .real first");
    check_range(op_, dtype_, v);
    write_element(p_, dtype_, v);
    p_ += step_;
  }
  const char* op_;
  char* p_;
  Dtype dtype_;
  std::size_t step_;
};

}  // namespace

TensorRef tensor_from_sequence(PyObject* data, const char* op, std::optional<Dtype> dtype) {
  Scan scan(op);
  scan.walk(data, 0);
  const Dtype d = dtype ? *dtype : scan.any ? scan.dtype : default_float();
  Storage s = empty(scan.sizes, d);
  Fill(op, s).walk(data);
  return TensorImpl::make(std::move(s));
}

}  // namespace tp::python
