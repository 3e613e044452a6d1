// The vocabulary of formulas beyond the ops themselves, for both worlds: plain memory (Storage) and tensors with history
// (TensorRef). A generated formula is one template over the two.
#pragma once
#include <optional>

#include "core/scalar.h"
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

inline bool is_contiguous(const Storage& s) { return s.is_contiguous(); }
inline bool is_contiguous(const TensorRef& t) { return t->storage().is_contiguous(); }
inline Dtype dtype_or(std::optional<Dtype> d, const Storage& s) { return d.value_or(s.dtype()); }
inline Dtype dtype_or(std::optional<Dtype> d, const TensorRef& t) { return d.value_or(t->dtype()); }
inline Dtype dtype_or(std::optional<Dtype> d, Dtype own) { return d.value_or(own); }

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

// Sizes and dimension lists (csrc/ops/formula_shapes.cpp).
TP_API Dims negative(const Dims& dims);
/// Empty (all) for an absent dimension.
TP_API Dims dims_of(std::optional<std::int64_t> dim);
/// `sizes` with the dimensions from start to end merged into one.
TP_API Shape flatten_shape(const Shape& sizes, std::int64_t start, std::int64_t end);
/// Sizes of a repeated tensor with every repeat count as a dimension before the size it repeats, and which of those
/// dimensions have to be summed to undo the repetition.
TP_API Shape tile_shape(const Shape& sizes, const Dims& repeats);
TP_API Dims tile_dims(const Shape& sizes, const Dims& repeats);
/// Padding after each dimension that brings `small` to `large`, last dimension first.
TP_API Dims trailing_pads(const Shape& small, const Shape& large);
/// `sizes` broadcast with `other` in every dimension but `dim`.
TP_API Shape along_shape(const Shape& sizes, const Shape& other, std::int64_t dim);
/// The dimension of classes of a loss's scores: 1, or 0 of a vector; and sizes that let a vector over classes broadcast.
inline std::int64_t class_dim(const Shape& sizes) { return sizes.size() == 1 ? 0 : 1; }
TP_API Shape class_shape(const Shape& sizes);
/// The last n dimensions; every dimension of n but the second; sizes of a vector over channels before n of space.
TP_API Dims last_dims(std::int64_t n);
TP_API Dims other_dims(std::int64_t n);
TP_API Shape channel_sizes(std::int64_t channels, std::int64_t n);
/// 0, 1, 2 for none, mean, sum; ValueError for anything else.
TP_API int reduction_code(std::string_view reduction);
inline bool is_floating(const Storage& s) { return is_float(s.dtype()); }
inline bool is_floating(const TensorRef& t) { return is_float(t->dtype()); }
TP_API Shape broadcast_shape(const Shape& a, const Shape& b);
/// Of Fourier transforms: the dimensions (the last len(s), or all, where none are given), their lengths (an empty s and -1
/// leave the tensor's own), and the norm with which the opposite transform has the same factor.
TP_API Dims fft_dims(const std::optional<Dims>& dim, const std::optional<Dims>& s, std::int64_t n);
TP_API Dims fft_sizes(const Shape& sizes, const Dims& dim, const std::optional<Dims>& s);
TP_API std::string_view flip_norm(std::optional<std::string_view> norm);
TP_API Dims halves(const Dims& sizes);
/// sizes[:n] and sizes[n:] of Python.
TP_API Dims first_sizes(const Dims& sizes, std::int64_t n);
TP_API Dims last_sizes(const Dims& sizes, std::int64_t n);
TP_API std::int64_t product_of(const Dims& sizes);
TP_API Dims joined(const Dims& a, const Dims& b);
/// Every dimension of n but those of dim.
TP_API Dims without_dims(std::int64_t n, const std::optional<Dims>& dim);
/// The first dimension of a size; as many as there are where none has it. And whether no size is below the least.
TP_API std::int64_t first_of_size(const Dims& sizes, std::int64_t n);
TP_API bool within_sizes(const Dims& sizes, std::int64_t least);
/// A dimension counted from the front. Raises IndexError.
TP_API std::int64_t wrap_dim(std::int64_t dim, std::int64_t n);
/// One number for each of n dimensions, of one for all or one each.
TP_API Dims per_dim(const Dims& given, std::int64_t n);
/// Where pieces of these lengths begin, and where the last one ends.
TP_API Dims starts(const Dims& lengths);
/// An item of a list of sizes that stands for None: the tensor's own.
inline constexpr std::int64_t kOwnSize = INT64_MIN;
TP_API Dims kept_sizes(const Dims& given, const Dims& sizes);
/// Of interpolation: the size, given or sizes times a factor or one each; the factors, none where sizes say them.
TP_API Dims resized(const Dims& sizes, const std::optional<Dims>& size,
                    const std::optional<std::vector<double>>& scale);
TP_API std::vector<double> kept_scales(std::int64_t n, const std::optional<std::vector<double>>& scale, bool recompute);
/// The last of the wanted sizes, each of which must be less than a step away from the natural one.
TP_API Dims unpool_sizes(const Dims& natural, const Dims& step, const std::optional<Dims>& wanted);
// Facts of dtypes: whole numbers (bool is none); itself or the default float; the largest finite number, 0 of integers; the
// end of the whole numbers held without gaps.
inline bool is_whole(Dtype d) { return is_integral(d) && d != Dtype::Bool; }
inline Dtype default_dtype() { return default_float(); }
inline Dtype floating_dtype(Dtype d) { return is_integral(d) ? default_float() : d; }
TP_API double largest_of(Dtype dtype);
TP_API std::int64_t whole_limit(Dtype dtype);
/// The distance from 1 to the next number of the dtype.
TP_API double epsilon(Dtype dtype);

/// The reduced dimensions put back as size 1 where keepdim dropped them.
template <class V>
V restore_dims(const V& g, const Shape& input, const Dims& dims, bool keepdim) {
  return keepdim ? g : reshape(g, keepdim_shape(input, dims));
}
template <class V>
V restore_dims(const V& g, const Shape& input, const std::optional<Dims>& dims, bool keepdim) {
  return restore_dims(g, input, dims.value_or(Dims()), keepdim);
}
template <class V>
V restore_dims(const V& g, const Shape& input, std::int64_t dim, bool keepdim) {
  return keepdim ? g : restore_dims(g, input, input.size() ? Dims{dim} : Dims(), false);
}
/// A reduction's gradient spread over its input.
template <class V, class D>
V expand_reduced(const V& g, const Shape& input, const D& dims, bool keepdim) {
  return expand(restore_dims(g, input, dims, keepdim), input);
}
/// What a reduction over one dimension leaves of a dimension of size 1.
template <class V>
V drop_dim(const V& x, std::int64_t dim, bool keepdim) {
  Shape sizes = shape(x);
  if (keepdim || sizes.empty()) return x;
  sizes.erase(int(dim < 0 ? dim + sizes.size() : dim));
  return reshape(x, sizes);
}
/// `x` cut along dim into pieces with the given lengths.
std::vector<Storage> split_sizes(const Storage& x, const Dims& lengths, std::int64_t dim);
std::vector<TensorRef> split_sizes(const TensorRef& x, const Dims& lengths, std::int64_t dim);

/// A gradient brought to its input's sizes (sum over broadcast dimensions) and dtype (real part for a real input).
TP_API Storage fit(Storage grad, const Shape& sizes, Dtype dtype);
TP_API TensorRef fit(TensorRef grad, const Shape& sizes, Dtype dtype);
/// The same in place.
TP_API void refit(Storage& grad, const Shape& sizes, Dtype dtype);
/// The same into a place that holds nothing yet: one move, where a Storage that is returned and assigned takes three.
TP_API void fit_into(Storage& into, Storage grad, const Shape& sizes, Dtype dtype);
inline void fit_into(TensorRef& into, TensorRef grad, const Shape& sizes, Dtype dtype) {
  into = fit(std::move(grad), sizes, dtype);
}

}  // namespace tp::ops
