// The few ops the engine and the views need, hung into the table through which the lower rooms reach them.
#include <optional>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/scalar.h"
#include "kernels/staging.h"
#include "ops/wiring.h"

namespace tp {
namespace ops {

// Their signatures follow ops.yaml.
Storage add(const Storage& input, const Storage& other, const Scalar& alpha);
TensorRef add(const TensorRef& input, const TensorRef& other, const Scalar& alpha);
Storage sum_to(const Storage& input, const Dims& size);
TensorRef sum_to(const TensorRef& input, const Dims& size);
TensorRef cast(const TensorRef& input, Dtype dtype);
TensorRef clone(const TensorRef& input);
TensorRef contiguous(const TensorRef& input);
TensorRef copy_(const TensorRef& input, const TensorRef& src);
TensorRef as_strided(const TensorRef& input, const Dims& size, const Dims& stride,
                     std::optional<std::int64_t> storage_offset);
TensorRef as_strided_backward(const TensorRef& grad, const Dims& input_size, const Dims& size, const Dims& stride,
                              std::optional<std::int64_t> storage_offset);
TensorRef as_strided_scatter(const TensorRef& input, const TensorRef& src, const Dims& size, const Dims& stride,
                             std::optional<std::int64_t> storage_offset);
// Views between real and complex: an entry each, which a small catalogue may lack.
[[gnu::weak]] TensorRef view_as_real(const TensorRef& input);
[[gnu::weak]] TensorRef view_as_complex(const TensorRef& input);

}  // namespace ops

namespace {

constexpr std::int64_t kGrain = 1 << 15;

template <class T>
[[gnu::optimize("O3")]] void add_range(T* __restrict into, const T* __restrict value, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) into[i] += value[i];
}

template <class T>
void add_dense(Storage& into, const Storage& value, std::int64_t n) {
  T* a = into.data<T>();
  const T* b = value.data<T>();
  if (TP_LIKELY(n <= kGrain)) return add_range(a, b, n);
  modes::Unlocked unlocked(n > 8 * kGrain);
  parallel_for(0, n, kGrain, [=](std::int64_t from, std::int64_t to) { add_range(a + from, b + from, to - from); });
}

/// Same dtype and sizes; `into` is dense. Where both lie in the same order one flat loop does.
void add_inplace(Storage& into, const Storage& value) {
  if (into.strides() == value.strides() && into.block() != value.block()) {
    const std::int64_t n = into.numel();
    switch (into.dtype()) {
      case Dtype::F32: return add_dense<float>(into, value, n);
      case Dtype::F64: return add_dense<double>(into, value, n);
      case Dtype::C64: return add_dense<float>(into, value, 2 * n);
      case Dtype::C128: return add_dense<double>(into, value, 2 * n);
      default: break;
    }
  }
  kernels::copy_into(into, ops::add(into, value, Scalar(1)));
}

Storage clone(const Storage& s) {
  Storage copy = empty(s.sizes(), s.dtype());
  kernels::copy_into(copy, s);
  return copy;
}

Storage add(const Storage& a, const Storage& b) { return ops::add(a, b, Scalar(1)); }
TensorRef add_graph(const TensorRef& a, const TensorRef& b) { return ops::add(a, b, Scalar(1)); }

TensorRef as_strided(const TensorRef& t, const Shape& sizes, const Strides& strides, std::int64_t offset) {
  return ops::as_strided(t, sizes, strides, offset);
}
TensorRef as_strided_scatter(const TensorRef& into, const TensorRef& src, const Shape& sizes, const Strides& strides,
                             std::int64_t offset) {
  return ops::as_strided_scatter(into, src, sizes, strides, offset);
}
TensorRef as_strided_backward(const TensorRef& g, const Shape& base, const Shape& sizes, const Strides& strides,
                              std::int64_t offset) {
  return ops::as_strided_backward(g, base, sizes, strides, offset);
}
TensorRef as_real(const TensorRef& t) {
  if (!ops::view_as_real)
    not_implemented("view_as_real: not in this catalogue; a view between real and complex needs it");
  return ops::view_as_real(t);
}
TensorRef as_complex(const TensorRef& t) {
  if (!ops::view_as_complex)
    not_implemented("view_as_complex: not in this catalogue; a view between real and complex needs it");
  return ops::view_as_complex(t);
}

[[maybe_unused]] const bool filled = [] {
  engine_ops = {
      .add = add,
      .add_inplace = add_inplace,
      .sum_to = ops::sum_to,
      .cast = kernels::cast,
      .clone = clone,
      .add_graph = add_graph,
      .sum_to_graph = ops::sum_to,
      .cast_graph = ops::cast,
      .clone_graph = ops::clone,
      .as_strided_graph = as_strided,
      .as_strided_scatter_graph = as_strided_scatter,
      .as_strided_backward_graph = as_strided_backward,
      .copy_graph = [](const TensorRef& into, const TensorRef& from) { ops::copy_(into, from); },
      .view_as_real_graph = as_real,
      .view_as_complex_graph = as_complex,
  };
  return true;
}();

}  // namespace
}  // namespace tp
