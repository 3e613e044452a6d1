// What generated op code uses beyond wiring.h and formula.h: small helpers of formulas, tangents and in-place forms.
// Knows no op but the few that its templates call.
#pragma once
#include <cmath>
#include <functional>
#include <limits>

#include "core/errors.h"
#include "core/scalar.h"
#include "ops/formula.h"
#include "ops/require.h"

namespace tp {
class Generator;
struct ElementwiseSpec;
struct LoopSet;
}  // namespace tp

namespace tp::ops {

Storage transpose(const Storage& input, std::int64_t dim0, std::int64_t dim1);
TensorRef transpose(const TensorRef& input, std::int64_t dim0, std::int64_t dim1);
Storage conj(const Storage& input);
TensorRef conj(const TensorRef& input);

/// Whether a running backward wants the gradient of input i, and there is somewhere for it to go.
template <class N>
[[gnu::always_inline]] inline bool needs(N& node, std::size_t i) {
  return node.wants(i) && node.next_edges()[i].node;
}

/// What a loop is given of a value that lives as long as the call does.
inline const Storage* operand(const Storage& s) { return &s; }

// ---- metadata --------------------------------------------------------------------------------------------------------
inline std::int64_t ndim(const Shape& s) { return s.size(); }
inline std::int64_t numel(const Shape& s) { return product(s); }
TP_API std::int64_t size(const Shape& s, std::int64_t dim);
TP_API std::int64_t reduced_count(const Shape& s, const std::optional<Dims>& dim);
template <class V>
std::int64_t ndim(const V& x) {
  return shape(x).size();
}
template <class V>
std::int64_t numel(const V& x) {
  return product(shape(x));
}
template <class V>
std::int64_t size(const V& x, std::int64_t dim) {
  return size(shape(x), dim);
}
template <class V>
std::int64_t reduced_count(const V& x, const std::optional<Dims>& dim) {
  return reduced_count(shape(x), dim);
}
template <class V>
std::int64_t len(const std::vector<V>& x) {
  return std::int64_t(x.size());
}
template <class V>
std::int64_t len(std::span<const V> x) {
  return std::int64_t(x.size());
}
[[noreturn]] TP_API void missing_item(std::size_t count, std::int64_t i);
/// Item `i` of a list of tensors; ValueError where the list is too short.
template <class List>
const auto& item(const List& x, std::int64_t i) {
  if (TP_UNLIKELY(i < 0 || std::size_t(i) >= x.size())) missing_item(x.size(), i);
  return x[std::size_t(i)];
}
inline std::int64_t len(const Dims& d) { return d.size(); }
/// The sizes of a list of tensors.
using Shapes = PooledVec<Shape>;
TP_API Shapes shapes_of(std::span<const TensorRef> tensors);
TP_API PooledVec<Dtype> dtypes_of(std::span<const TensorRef> tensors);
/// The permutation that undoes `dims`.
TP_API Dims invert_permutation(const Dims& dims);
/// Item `i`, counted from the end when negative.
TP_API std::int64_t at(const Dims& dims, std::int64_t i);
TP_API double at(const std::vector<double>& values, std::int64_t i);
inline double at(const std::optional<std::vector<double>>& values, std::int64_t i) { return at(*values, i); }
inline std::int64_t len(const std::vector<double>& values) { return std::int64_t(values.size()); }
TP_API Dims concat(const Dims& a, const Dims& b);
/// Python's // and % on integers.
TP_API std::int64_t floor_div(std::int64_t a, std::int64_t b);
TP_API std::int64_t floor_mod(std::int64_t a, std::int64_t b);

/// The length of each piece along dim.
TP_API Dims lengths_along(const Shapes& shapes, std::int64_t dim);
/// x cut along dim into pieces as long as the shapes say.
template <class V>
std::vector<V> split_like(const V& x, const Shapes& shapes, std::int64_t dim) {
  return split_sizes(x, lengths_along(shapes, dim), dim);
}

// ---- values ----------------------------------------------------------------------------------------------------------
TP_API Storage full_storage(const Shape& sizes, const Scalar& value, Dtype dtype);
template <class V>
V full(const Shape& sizes, const Scalar& value, Dtype dtype) {
  return lift<V>(full_storage(sizes, value, dtype));
}
/// A number with a dtype: unlike number(), it takes part in promotion as a 0-d tensor.
template <class V>
V constant(const Scalar& value, Dtype dtype) {
  return full<V>(Shape(), value, dtype);
}
constexpr std::uint32_t dtype_bit(Dtype d) { return 1u << int(d); }
inline constexpr std::uint32_t kBoolDtypes = dtype_bit(Dtype::Bool);
inline constexpr std::uint32_t kIntDtypes = dtype_bit(Dtype::U8) | dtype_bit(Dtype::I8) | dtype_bit(Dtype::I16) |
    dtype_bit(Dtype::I32) | dtype_bit(Dtype::I64) | dtype_bit(Dtype::U16) | dtype_bit(Dtype::U32) |
    dtype_bit(Dtype::U64);
inline constexpr std::uint32_t kHalfDtypes = dtype_bit(Dtype::F16) | dtype_bit(Dtype::BF16);
inline constexpr std::uint32_t kFloatDtypes = dtype_bit(Dtype::F32) | dtype_bit(Dtype::F64);
inline constexpr std::uint32_t kComplexDtypes = dtype_bit(Dtype::C64) | dtype_bit(Dtype::C128);
[[noreturn]] TP_API void refuse_dtype(const OpSchema& schema, Dtype got, std::uint32_t allowed);
/// TypeError by the op's name where an operand (not a Python number) has a dtype that the entry does not list.
inline void check_dtype(const OpSchema& schema, const Storage& s, std::uint32_t allowed) {
  if (TP_UNLIKELY(!(allowed & dtype_bit(s.dtype())) && !s.wrapped_number())) refuse_dtype(schema, s.dtype(), allowed);
}
/// Whether a Scalar argument is of a higher category than every operand: 0.5 beside integers, 1j beside floats.
inline bool outranks(const Scalar& s, std::initializer_list<const Storage*> operands) {
  if (TP_LIKELY(s.is_integral())) return false;
  for (const Storage* o : operands)
    if (category(o->dtype()) >= s.category()) return false;
  return true;
}
/// The operand in the category of the Scalar.
TP_API Storage raised(const Storage& operand, const Scalar& s);
/// TypeError where a result written into an operand's memory would have to be of a higher category than it.
TP_API void refuse_outranked(const OpSchema& schema, const char* argument, const Scalar& s,
                             std::initializer_list<const Storage*> operands);
inline bool is_one(const Scalar& s) { return s.to_double() == 1 && s.imag() == 0; }

/// The conjugate; a real value is returned as it is.
template <class V>
V conj_of(const V& x) {
  return is_complex(dtype(x)) ? conj(x) : x;
}
template <class V>
V mT(const V& x) {
  return transpose(x, -2, -1);
}
template <class V>
V mH(const V& x) {
  return conj_of<V>(transpose(x, -2, -1));
}
template <class V>
V cast(const V& x, Dtype to) {
  return dtype(x) == to ? x : fit(x, shape(x), to);
}
template <class V>
V expand_to(const V& x, const Shape& sizes) {
  return shape(x) == sizes ? x : expand(x, sizes);
}

/// g itself, or zeros where that output got no gradient.
inline Storage or_zeros(const Storage& g, const Storage& like) {
  return g.defined() ? g : zeros_storage(like.sizes(), like.dtype());
}
inline TensorRef or_zeros(const TensorRef& g, const Storage& like) {
  return g ? g : wiring::wrap(zeros_storage(like.sizes(), like.dtype()));
}

/// A saved list of tensors; absent ones stay absent. `first_edge`: where the list's edges begin, -1 when it has none.
TP_API std::vector<Storage> unsaved_storages(Node& node, std::span<const SavedValue> saved, const char* name);
TP_API std::vector<TensorRef> unsaved_tensors(Node& node, std::span<const SavedValue> saved, const char* name,
                                              int first_edge);
template <class V>
std::vector<V> unsaved(Node& node, std::span<const SavedValue> saved, const char* name, int first_edge) {
  if constexpr (std::is_same_v<V, Storage>)
    return unsaved_storages(node, saved, name);
  else
    return unsaved_tensors(node, saved, name, first_edge);
}

// ---- tangents --------------------------------------------------------------------------------------------------------
/// An elementwise vjp of tensors by its fused loop. Null where what happens to the operands has to be followed: history,
/// tangents, a batch.
TP_API TensorRef fused(const ElementwiseSpec& spec, const LoopSet& loops,
                       std::initializer_list<const TensorRef*> operands, std::initializer_list<Scalar> params = {});
/// The sum of two tangents, either of which may be absent.
TP_API TensorRef plus(TensorRef a, TensorRef b);
/// A tangent in the sizes and dtype of its primal.
TP_API TensorRef as_tangent(TensorRef t, const TensorRef& primal);

/// The Storages of a list of tensors (absent ones undefined).
TP_API PooledVec<Storage> storages_of(std::span<const TensorRef> tensors);

/// The result `t` of a view op: a view where the kernel shared the memory, else a fresh tensor.
TP_API void settle_view(const TensorRef& t, const TensorRef& base, const char* op, ViewKind kind = ViewKind::Plain);
template <class F>
TensorRef view_of(const TensorRef& base, const char* op, F&& kernel) {
  TensorRef t = TensorImpl::make_from(kernel);
  settle_view(t, base, op);
  return t;
}

// ---- a composition's form on memory, through the one on tensors ---------------------------------------------------------
inline TensorRef tensors_of(const Storage& s) { return s.defined() ? wiring::wrap(s) : TensorRef(); }
TP_API std::vector<TensorRef> tensors_of(std::span<const Storage> list);
inline Storage memory_from(const TensorRef& t) { return t ? t->storage() : Storage(); }
TP_API std::vector<Storage> memory_from(const std::vector<TensorRef>& list);
template <std::size_t N>
std::array<Storage, N> memory_from(const std::array<TensorRef, N>& several) {
  std::array<Storage, N> out;
  for (std::size_t i = 0; i < N; ++i) out[i] = memory_from(several[i]);
  return out;
}
template <class T>
T memory_from(const T& plain) {
  return plain;
}
template <class F>
auto on_tensors(const F& call) {
  const modes::Guard plain(modes::kNoGrad, modes::kAutocast | modes::kTransform | modes::kForward);
  return memory_from(call());
}

[[noreturn]] TP_API void missing_derivative(const OpSchema& schema, const char* argument, const char* why);

}  // namespace tp::ops
