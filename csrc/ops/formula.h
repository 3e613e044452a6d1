// The vocabulary of formulas beyond the ops themselves, for both worlds: plain memory (Storage) and tensors with history
// (TensorRef). A generated formula is one template over the two.
#pragma once
#include <optional>

#include "ops/wiring.h"

namespace tp::ops {

// Declared by the shards that define them; repeated here since the templates below call them.
Storage reshape(const Storage& input, const Dims& shape);
TensorRef reshape(const TensorRef& input, const Dims& shape);
Storage sum_to(const Storage& input, const Dims& sizes);
TensorRef sum_to(const TensorRef& input, const Dims& sizes);
Storage expand(const Storage& input, const Dims& sizes);
TensorRef expand(const TensorRef& input, const Dims& sizes);

inline bool is_absent(const Storage& s) { return !s.defined(); }
inline bool is_absent(const TensorRef& t) { return !t; }

inline const Storage& memory_of(const Storage& s) { return s; }
inline const Storage& memory_of(const TensorRef& t) { return t->storage(); }
inline const Shape& shape(const Storage& s) { return s.sizes(); }
inline const Shape& shape(const TensorRef& t) { return t->sizes(); }
inline Dtype dtype(const Storage& s) { return s.dtype(); }
inline Dtype dtype(const TensorRef& t) { return t->dtype(); }

inline Storage lift(Storage s, Storage*) { return s; }
inline TensorRef lift(Storage s, TensorRef*) { return wiring::wrap(std::move(s)); }
/// A plain value in the world of V.
template <class V>
V lift(Storage s) {
  return lift(std::move(s), static_cast<V*>(nullptr));
}

/// A number as an operand: yields to the other operand's dtype as a Python number does.
TP_API Storage number_storage(const Scalar& value);
template <class V>
V number(const Scalar& value) {
  return lift<V>(number_storage(value));
}
template <class V>
V zeros(const Shape& sizes, Dtype d) {
  return lift<V>(zeros_storage(sizes, d));
}
template <class V>
V ones(const Shape& sizes, Dtype d) {
  return lift<V>(ones_storage(sizes, d));
}

/// Dimension numbers counted from the front, unique, in order; empty `dims` means all. Raises IndexError by op name.
TP_API Dims normal_dims(std::string_view op, const Dims& dims, int ndim);
TP_API int normal_dim(std::string_view op, std::int64_t dim, int ndim);
/// Sizes with the reduced dimensions put back as 1.
TP_API Shape keepdim_shape(const Shape& input, const Dims& dims);
/// Number of elements each result of a reduction over `dims` saw.
TP_API std::int64_t reduced_count(const Shape& input, const Dims& dims);

/// The reduced dimensions put back as size 1 where keepdim dropped them.
template <class V>
V restore_dims(const V& g, const Shape& input, const Dims& dims, bool keepdim) {
  return keepdim ? g : reshape(g, keepdim_shape(input, dims));
}
/// A reduction's gradient spread over its input.
template <class V>
V expand_reduced(const V& g, const Shape& input, const Dims& dims, bool keepdim) {
  return expand(restore_dims(g, input, dims, keepdim), input);
}

/// A gradient brought to its input's sizes (sum over broadcast dimensions) and dtype (real part for a real input).
TP_API Storage fit(Storage grad, const Shape& sizes, Dtype dtype);
TP_API TensorRef fit(TensorRef grad, const Shape& sizes, Dtype dtype);

}  // namespace tp::ops
