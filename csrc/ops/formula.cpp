// Numbers as operands, dimension lists, and gradients brought to the sizes and dtype of their input.
#include "ops/formula.h"

#include "core/errors.h"

namespace tp::ops {

Storage number_storage(const Scalar& value) {
  // A number keeps all its digits (0.1 times a float64 tensor is exact): promotion goes by its category alone.
  Storage s;
  switch (value.category()) {
    case Category::Bool:
      s = empty({}, Dtype::Bool);
      *s.data<std::uint8_t>() = value.to_bool();
      break;
    case Category::Integer:
      s = empty({}, Dtype::I64);
      *s.data<std::int64_t>() = value.to_int();
      break;
    case Category::Float:
      s = empty({}, Dtype::F64);
      *s.data<double>() = value.to_double();
      break;
    case Category::Complex:
      s = empty({}, Dtype::C128);
      s.data<double>()[0] = value.to_double();
      s.data<double>()[1] = value.imag();
      break;
  }
  s.set_wrapped_number(true);
  return s;
}

int normal_dim(std::string_view op, std::int64_t dim, int ndim) {
  const int n = ndim ? ndim : 1;  // a 0-d tensor has dimensions 0 and -1
  if (dim < -n || dim >= n)
    index_error(op, ": Dimension out of range (expected to be in range of [", -n, ", ", n - 1, "], but got ", dim, ")");
  return int(dim < 0 ? dim + n : dim);
}

Dims normal_dims(std::string_view op, const Dims& dims, int ndim) {
  Dims out;
  if (dims.empty()) {
    for (int i = 0; i < ndim; ++i) out.push_back(i);
    return out;
  }
  for (std::int64_t d : dims) out.push_back(normal_dim(op, d, ndim));
  std::sort(out.begin(), out.end());
  if (const std::int64_t* twice = std::adjacent_find(out.begin(), out.end()); twice != out.end())
    runtime_error(op, ": dim ", *twice, " appears multiple times in the list of dims");
  if (ndim == 0) out.clear();
  return out;
}

Shape keepdim_shape(const Shape& input, const Dims& dims) {
  Shape out = input;
  if (dims.empty()) {
    std::fill(out.begin(), out.end(), 1);
    return out;
  }
  if (input.empty()) return out;
  for (std::int64_t d : dims) out[normal_dim("reduction", d, input.size())] = 1;
  return out;
}

std::int64_t reduced_count(const Shape& input, const Dims& dims) {
  if (dims.empty()) return product(input);
  if (input.empty()) return 1;
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= input[normal_dim("reduction", d, input.size())];
  return n;
}

Storage fit(Storage grad, const Shape& sizes, Dtype dtype) {
  if (!grad.defined()) return grad;
  if (!(grad.sizes() == sizes)) grad = engine_ops.sum_to(grad, sizes);
  if (grad.dtype() != dtype) grad = engine_ops.cast(grad, dtype);
  return grad;
}

void refit(Storage& grad, const Shape& sizes, Dtype dtype) {
  if (TP_UNLIKELY(!(grad.dtype() == dtype && grad.sizes() == sizes))) grad = fit(std::move(grad), sizes, dtype);
}

void fit_into(Storage& into, Storage grad, const Shape& sizes, Dtype dtype) {
  into = std::move(grad);
  refit(into, sizes, dtype);
}

TensorRef fit(TensorRef grad, const Shape& sizes, Dtype dtype) {
  if (!grad) return grad;
  if (!(grad->sizes() == sizes)) grad = engine_ops.sum_to_graph(grad, sizes);
  if (grad->dtype() != dtype) grad = engine_ops.cast_graph(grad, dtype);
  return grad;
}

}  // namespace tp::ops
