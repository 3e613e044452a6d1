// Batching rules by name (`batch:` in ops.yaml), for ops that their family says too little about. Each is given the op as a
// function of its tensors (`call`), the loop over samples to fall back on (`loop`), and the op's arguments.
#pragma once
#include "core/scalar.h"
#include "transforms/leading.h"

namespace tp {

class Generator;

namespace batch::rules {

// ---- products --------------------------------------------------------------------------------------------------------
TP_API TensorRef product(const OpSchema& op, const TensorRef& a, const TensorRef& b);
TP_API TensorRef affine(const TensorRef& input, const TensorRef& product, const Scalar& beta, const Scalar& alpha);
TP_API TensorRef linear_of(const TensorRef& input, const TensorRef& weight, const TensorRef& bias);
TP_API TensorRef outer_of(const TensorRef& a, const TensorRef& b);
TP_API TensorRef summed_product(const OpSchema& op, const TensorRef& a, const TensorRef& b);

/// Vectors become matrices, batch dimensions broadcast.
// batch: matmul
template <class Call, class Loop>
TensorRef matmul(const OpSchema& op, const Call&, const Loop&, const TensorRef& a, const TensorRef& b) {
  return product(op, a, b);
}
// batch: linear
template <class Call, class Loop>
TensorRef linear(const OpSchema&, const Call& call, const Loop&, const TensorRef& input, const TensorRef& weight,
                 const TensorRef& bias) {
  if (any(weight, bias)) return linear_of(input, weight, bias);
  return wrap(call(physical(input), weight, bias), levels_of(input));
}
/// beta * input + alpha * (a @ b)
// batch: addmm
template <class Call, class Loop>
TensorRef addmm(const OpSchema& op, const Call&, const Loop&, const TensorRef& input, const TensorRef& a,
                const TensorRef& b, const Scalar& beta, const Scalar& alpha) {
  return affine(input, product(op, a, b), beta, alpha);
}
// batch: addbmm
template <class Call, class Loop>
TensorRef addbmm(const OpSchema& op, const Call&, const Loop&, const TensorRef& input, const TensorRef& a,
                 const TensorRef& b, const Scalar& beta, const Scalar& alpha) {
  return affine(input, summed_product(op, a, b), beta, alpha);
}
// batch: addr
template <class Call, class Loop>
TensorRef addr(const OpSchema&, const Call&, const Loop&, const TensorRef& input, const TensorRef& a,
               const TensorRef& b, const Scalar& beta, const Scalar& alpha) {
  return affine(input, outer_of(a, b), beta, alpha);
}
/// A vector on the right becomes a matrix of one column.
// batch: solve
template <class Call, class Loop>
TensorRef solve(const OpSchema& op, const Call& call, const Loop& loop, const TensorRef& a, const TensorRef& b,
                bool left) {
  if (a->dim() < 2 || b->dim() < 2 || !left || (b->dim() == a->dim() - 1)) return loop();
  const Broadcast in({&a, &b});
  (void)op;
  return in.wrap(call(in[0], in[1]));
}
/// Two matrices, whose own batch dimensions broadcast as well.
// batch: matrices
template <class Call, class Loop>
TensorRef matrices(const OpSchema&, const Call& call, const Loop& loop, const TensorRef& a, const TensorRef& b,
                   auto...) {
  if (a->dim() < 2 || b->dim() < 2) return loop();
  const Broadcast in({&a, &b}, 3);
  return in.wrap(call(in[0], in[1]));
}
/// Three of them.
// batch: three_matrices
template <class Call, class Loop>
TensorRef three_matrices(const OpSchema&, const Call& call, const Loop& loop, const TensorRef& a, const TensorRef& b,
                         const TensorRef& c) {
  if (a->dim() < 2 || b->dim() < 2 || c->dim() < 2) return loop();
  const Broadcast in({&a, &b, &c}, 7);
  return in.wrap(call(in[0], in[1], in[2]));
}
TP_API TensorRef as_column(const TensorRef& t);
TP_API TensorRef as_vector(const TensorRef& column);
/// The same with the exchanges of rows that belong to the first; flags come behind.
// batch: lu_solve
template <class Call, class Loop>
TensorRef lu_solve(const OpSchema&, const Call& call, const Loop& loop, const TensorRef& lu, const TensorRef& pivots,
                   const TensorRef& b, auto...) {
  const bool together = levels_of(lu) == levels_of(pivots) && pivots->dim() == lu->dim() - 1;
  if (!together || lu->dim() < 2 || b->dim() < 2) return loop();
  const TensorRef column = as_column(pivots);
  const Broadcast in({&lu, &column, &b}, 7);
  return in.wrap(call(in[0], as_vector(in[1]), in[2]));
}

// ---- views -----------------------------------------------------------------------------------------------------------
TP_API TensorRef transposed(const OpSchema& op, const TensorRef& input);
TP_API TensorRef strided(const TensorRef& input, const Dims& size, const Dims& stride,
                         std::optional<std::int64_t> offset);

// batch: t
template <class Call, class Loop>
TensorRef t(const OpSchema& op, const Call&, const Loop&, const TensorRef& input) {
  return transposed(op, input);
}
/// Each sample's own memory begins where it lies in the whole.
// batch: as_strided
template <class Call, class Loop>
TensorRef as_strided(const OpSchema&, const Call&, const Loop&, const TensorRef& input, const Dims& size,
                     const Dims& stride, std::optional<std::int64_t> offset) {
  return strided(input, size, stride, offset);
}

TP_API TensorRef strided_put(const TensorRef& input, const TensorRef& src, const Dims& size, const Dims& stride,
                             std::optional<std::int64_t> offset);
// batch: as_strided_scatter
template <class Call, class Loop>
TensorRef as_strided_scatter(const OpSchema&, const Call&, const Loop&, const TensorRef& input, const TensorRef& src,
                             const Dims& size, const Dims& stride, std::optional<std::int64_t> offset) {
  return strided_put(input, src, size, stride, offset);
}

// ---- indexing --------------------------------------------------------------------------------------------------------
/// Whether the indices are integers: masks of several dimensions are left to the loop.
TP_API bool plain_indices(std::span<const TensorRef> indices);
TP_API TensorRef taken(const TensorRef& input, std::span<const TensorRef> indices);
TP_API TensorRef put(const TensorRef& input, std::span<const TensorRef> indices, const TensorRef& values,
                     bool accumulate);
/// `index` as the index of dimension `dim` alone.
TP_API std::vector<TensorRef> at_dim(const OpSchema& op, const TensorRef& input, std::int64_t dim,
                                     const TensorRef& index);
TP_API TensorRef selected(const OpSchema& op, const TensorRef& input, std::int64_t dim, const TensorRef& index);
TP_API TensorRef scaled(const TensorRef& t, const Scalar& alpha);
TP_API TensorRef rows_put(const TensorRef& grad, const TensorRef& input, std::int64_t rows,
                          std::optional<std::int64_t> padding);
TP_API TensorRef searched(const TensorRef& sorted, const TensorRef& input, bool right);

/// A batched index gets the number of its sample as one more index.
// batch: index
template <class Call, class Loop>
TensorRef index(const OpSchema&, const Call&, const Loop& loop, const TensorRef& input,
                std::span<const TensorRef> indices) {
  return plain_indices(indices) ? taken(input, indices) : loop();
}
// batch: index_put
template <class Call, class Loop>
TensorRef index_put(const OpSchema&, const Call&, const Loop& loop, const TensorRef& input,
                    std::span<const TensorRef> indices, const TensorRef& values, bool accumulate) {
  return plain_indices(indices) ? put(input, indices, values, accumulate) : loop();
}
// batch: index_select
template <class Call, class Loop>
TensorRef index_select(const OpSchema& op, const Call&, const Loop& loop, const TensorRef& input, std::int64_t dim,
                       const TensorRef& index) {
  if (input->dim() == 0 || index->dim() != 1) return loop();
  return selected(op, input, dim, index);
}
// batch: index_add
template <class Call, class Loop>
TensorRef index_add(const OpSchema& op, const Call&, const Loop& loop, const TensorRef& input, std::int64_t dim,
                    const TensorRef& index, const TensorRef& source, const Scalar& alpha) {
  if (input->dim() == 0 || index->dim() != 1 || source->dim() != input->dim()) return loop();
  return put(input, at_dim(op, input, dim, index), scaled(source, alpha), true);
}
// batch: index_copy
template <class Call, class Loop>
TensorRef index_copy(const OpSchema& op, const Call&, const Loop& loop, const TensorRef& input, std::int64_t dim,
                     const TensorRef& index, const TensorRef& source) {
  if (input->dim() == 0 || index->dim() != 1 || source->dim() != input->dim()) return loop();
  return put(input, at_dim(op, input, dim, index), source, false);
}
// batch: index_fill
template <class Call, class Loop>
TensorRef index_fill(const OpSchema& op, const Call&, const Loop& loop, const TensorRef& input, std::int64_t dim,
                     const TensorRef& index, const TensorRef& value) {
  if (input->dim() == 0 || index->dim() != 1 || value->dim() != 0) return loop();
  return put(input, at_dim(op, input, dim, index), value, false);
}
// batch: embedding
template <class Call, class Loop>
TensorRef embedding(const OpSchema&, const Call& call, const Loop& loop, const TensorRef& input,
                    const TensorRef& weight, std::optional<std::int64_t> padding) {
  if (!weight->is_batched()) return wrap(call(physical(input), weight), levels_of(input));
  if (padding) return loop();
  return taken(weight, std::span<const TensorRef>(&input, 1));
}
// batch: embedding_backward
template <class Call, class Loop>
TensorRef embedding_backward(const OpSchema&, const Call&, const Loop&, const TensorRef& grad, const TensorRef& input,
                             std::int64_t rows, std::optional<std::int64_t> padding) {
  return rows_put(grad, input, rows, padding);
}
// batch: one_hot
template <class Call, class Loop>
TensorRef one_hot(const OpSchema&, const Call& call, const Loop& loop, const TensorRef& input, std::int64_t classes) {
  return classes < 0 ? loop() : wrap(call(physical(input)), levels_of(input));
}
// batch: searchsorted
template <class Call, class Loop>
TensorRef searchsorted(const OpSchema&, const Call& call, const Loop& loop, const TensorRef& sorted,
                       const TensorRef& input, bool right) {
  if (!sorted->is_batched() && sorted->dim() == 1) return wrap(call(sorted, physical(input)), levels_of(input));
  return sorted->dim() == 0 || input->dim() == 0 ? loop() : searched(sorted, input, right);
}
// ---- copies, medians -------------------------------------------------------------------------------------------------
/// A tensor that is the same for all samples, with memory for each of them.
TP_API TensorRef repeated(const TensorRef& t, Levels levels);
/// zeros_like and kin: in-place ops may write other values for each sample.
// batch: like
template <class Call, class Loop, class... Rest>
TensorRef like(const OpSchema&, const Call& call, const Loop&, const TensorRef& input, const Rest&...) {
  return wrap(call(physical(input)), levels_of(input));
}
// batch: like_sized
template <class Call, class Loop, class... Rest>
TensorRef like_sized(const OpSchema&, const Call& call, const Loop&, const TensorRef& input, const Rest&...) {
  return repeated(call(physical(input)), levels_of(input));
}
/// `src` at the sizes and in the dtype of `input`, as memory of its own.
TP_API TensorRef filled(const TensorRef& input, const TensorRef& src);
TP_API TensorRef median_of(const TensorRef& input);

// batch: copy
template <class Call, class Loop>
TensorRef copy(const OpSchema&, const Call&, const Loop&, const TensorRef& input, const TensorRef& src) {
  return filled(input, src);
}
/// Of one sample flattened.
// batch: median_all
template <class Call, class Loop>
TensorRef median_all(const OpSchema&, const Call&, const Loop&, const TensorRef& input) {
  return median_of(input);
}

// ---- the leading N, channels -----------------------------------------------------------------------------------------
/// The batch joins N where only the input is batched.
// batch: samples
template <class Call, class Loop, class... Rest>
auto samples(const OpSchema& op, const Call& call, const Loop& loop, const TensorRef& input, const TensorRef& weight,
             const TensorRef& bias, const Rest&...) {
  if (any(weight, bias)) return loop();
  const Fold in(op, {input}, weight->dim());
  return in.wrap(call(in[0], weight, bias));
}

/// Operands with the batch inside a dimension of channels: [N, batch * C, ...].
class TP_API Channels {
 public:
  explicit Channels(std::initializer_list<const TensorRef*> operands);
  std::int64_t size() const { return size_; }
  /// [N, C, ...], or [C, ...] of a convolution without N (`rank` counts N).
  TensorRef image(const TensorRef& t, int rank) const;
  /// [C, ...]: weights.
  TensorRef weight(const TensorRef& t) const;
  TensorRef wrap_image(const TensorRef& t, bool has_n) const;
  TensorRef wrap_weight(const TensorRef& t) const;
  Dims image_sizes(const Dims& s, int rank) const;
  Dims weight_sizes(const Dims& s) const;

 private:
  Levels levels_ = 0;
  std::int64_t size_ = 1;
};
TP_API TensorRef run_conv(const TensorRef& input, const TensorRef& weight, const TensorRef& bias, const Dims& stride,
                          const Dims& padding, const Dims& dilation, std::int64_t groups);
TP_API TensorRef run_conv(const TensorRef& input, const TensorRef& weight, const TensorRef& bias, const Dims& stride,
                          std::string_view padding, const Dims& dilation, std::int64_t groups);
TP_API TensorRef run_conv_input(const TensorRef& grad, const TensorRef& weight, const Dims& size, const Dims& stride,
                                const Dims& padding, const Dims& dilation, std::int64_t groups);
TP_API TensorRef run_conv_input(const TensorRef& grad, const TensorRef& weight, const Dims& size, const Dims& stride,
                                std::string_view padding, const Dims& dilation, std::int64_t groups);
TP_API TensorRef run_conv_weight(const TensorRef& grad, const TensorRef& input, const Dims& size, const Dims& stride,
                                 const Dims& padding, const Dims& dilation, std::int64_t groups);
TP_API TensorRef run_conv_weight(const TensorRef& grad, const TensorRef& input, const Dims& size, const Dims& stride,
                                 std::string_view padding, const Dims& dilation, std::int64_t groups);

/// Batched weights make one group a sample.
// batch: conv
template <class Call, class Loop, class Padding>
TensorRef conv(const OpSchema& op, const Call& call, const Loop&, const TensorRef& input, const TensorRef& weight,
               const TensorRef& bias, const Dims& stride, const Padding& padding, const Dims& dilation,
               std::int64_t groups) {
  const int rank = weight->dim();
  if (!any(weight, bias)) {
    const Fold in(op, {input}, rank);
    return in.wrap(call(in[0], weight, bias));
  }
  const Channels in({&input, &weight, &bias});
  const TensorRef b = bias ? in.weight(bias) : TensorRef();
  return in.wrap_image(
      run_conv(in.image(input, rank), in.weight(weight), b, stride, padding, dilation, groups * in.size()),
      input->dim() == rank);
}
// batch: conv_input
template <class Call, class Loop, class Padding>
TensorRef conv_input(const OpSchema&, const Call&, const Loop&, const TensorRef& grad, const TensorRef& weight,
                     const Dims& size, const Dims& stride, const Padding& padding, const Dims& dilation,
                     std::int64_t groups) {
  const int rank = weight->dim();
  const Channels in({&grad, &weight});
  return in.wrap_image(run_conv_input(in.image(grad, rank), in.weight(weight), in.image_sizes(size, rank), stride,
                                      padding, dilation, groups * in.size()),
                       grad->dim() == rank);
}
// batch: conv_weight
template <class Call, class Loop, class Padding>
TensorRef conv_weight(const OpSchema&, const Call&, const Loop&, const TensorRef& grad, const TensorRef& input,
                      const Dims& size, const Dims& stride, const Padding& padding, const Dims& dilation,
                      std::int64_t groups) {
  const int rank = size.size();
  const Channels in({&grad, &input});
  return in.wrap_weight(run_conv_weight(in.image(grad, rank), in.image(input, rank), in.weight_sizes(size), stride,
                                        padding, dilation, groups * in.size()));
}

// ---- losses, attention -----------------------------------------------------------------------------------------------
/// Losses of classes by index, one value a row from the kernel; each sample is reduced on its own.
TP_API std::array<TensorRef, 3> index_loss(const OpSchema& op, const TensorRef& input, const TensorRef& target,
                                           const TensorRef& weight, std::int64_t ignore, std::string_view reduction,
                                           std::optional<double> smoothing);
// batch: cross_entropy
template <class Call, class Loop>
std::array<TensorRef, 3> cross_entropy(const OpSchema& op, const Call&, const Loop& loop, const TensorRef& input,
                                       const TensorRef& target, const TensorRef& weight, std::int64_t ignore,
                                       std::string_view reduction, double smoothing) {
  if (any(weight)) return loop();
  return index_loss(op, input, target, weight, ignore, reduction, smoothing);
}
// batch: nll_loss
template <class Call, class Loop>
std::array<TensorRef, 2> nll_loss(const OpSchema& op, const Call&, const Loop& loop, const TensorRef& input,
                                  const TensorRef& target, const TensorRef& weight, std::int64_t ignore,
                                  std::string_view reduction) {
  if (any(weight)) return loop();
  std::array<TensorRef, 3> r = index_loss(op, input, target, weight, ignore, reduction, std::nullopt);
  return {r[0], r[2]};
}
/// Batch dimensions broadcast in front. Numbers that dropout draws belong to one call: then once per sample.
// batch: attention
template <class Call, class Loop>
std::array<TensorRef, 3> attention(const OpSchema&, const Call& call, const Loop& loop, const TensorRef& query,
                                   const TensorRef& key, const TensorRef& value, const TensorRef& mask, double dropout,
                                   bool, std::optional<double>, Generator*) {
  if (dropout > 0) return loop();
  const Broadcast in({&query, &key, &value, &mask});
  std::array<TensorRef, 3> r = call(in[0], in[1], in[2], in[3]);
  return {in.wrap(std::move(r[0])), in.wrap(std::move(r[1])), std::move(r[2])};
}

// ---- normalisation ---------------------------------------------------------------------------------------------------
TP_API TensorRef weighted(const TensorRef& x, const TensorRef& weight, const TensorRef& bias, int channel);
TP_API std::array<TensorRef, 3> batch_normed(const OpSchema& op, const TensorRef& input, const TensorRef& weight,
                                             const TensorRef& bias, const TensorRef& mean, const TensorRef& var,
                                             bool training, double momentum, double eps);
/// Weights that are batched come after the normalisation.
// batch: layer_norm
template <class Call, class Loop>
std::array<TensorRef, 3> layer_norm(const OpSchema& op, const Call& call, const Loop&, const TensorRef& input,
                                    const Dims& shape, const TensorRef& weight, const TensorRef& bias, double) {
  const Leading in(op, {input});
  in.need_rank(shape.size(), "input");
  if (!any(weight, bias)) return in.wrap(call(in[0], weight, bias));
  std::array<TensorRef, 3> r = in.wrap(call(in[0], TensorRef(), TensorRef()));
  r[0] = weighted(r[0], weight, bias, -1);
  return r;
}
// batch: rms_norm
template <class Call, class Loop>
std::array<TensorRef, 2> rms_norm(const OpSchema& op, const Call& call, const Loop&, const TensorRef& input,
                                  const Dims& shape, const TensorRef& weight, std::optional<double>) {
  const Leading in(op, {input});
  in.need_rank(shape.size(), "input");
  if (!any(weight)) return in.wrap(call(in[0], weight));
  std::array<TensorRef, 2> r = in.wrap(call(in[0], TensorRef()));
  r[0] = weighted(r[0], weight, TensorRef(), -1);
  return r;
}
// batch: group_norm
template <class Call, class Loop>
std::array<TensorRef, 3> group_norm(const OpSchema& op, const Call& call, const Loop&, const TensorRef& input,
                                    std::int64_t, const TensorRef& weight, const TensorRef& bias, double) {
  const Fold in(op, {input}, input->dim());
  if (!any(weight, bias)) return in.wrap(call(in[0], weight, bias));
  std::array<TensorRef, 3> r = in.wrap(call(in[0], TensorRef(), TensorRef()));
  r[0] = weighted(r[0], weight, bias, 1);
  return r;
}
/// In training each sample has statistics of its own: the batch joins the channels.
// batch: batch_norm
template <class Call, class Loop>
std::array<TensorRef, 3> batch_norm(const OpSchema& op, const Call&, const Loop& loop, const TensorRef& input,
                                    const TensorRef& weight, const TensorRef& bias, const TensorRef& mean,
                                    const TensorRef& var, bool training, double momentum, double eps) {
  if (!training) return loop();
  return batch_normed(op, input, weight, bias, mean, var, training, momentum, eps);
}

// ---- random numbers --------------------------------------------------------------------------------------------------
/// The open levels whose samples want numbers of their own; raises by the op's name where one forbids to draw.
TP_API Levels drawn(const OpSchema& op);

TP_API TensorRef rand(const OpSchema& op, const Dims& size, Generator* generator, std::optional<Dtype> dtype);
TP_API TensorRef randn(const OpSchema& op, const Dims& size, Generator* generator, std::optional<Dtype> dtype);
TP_API TensorRef randint(const OpSchema& op, std::int64_t high, const Dims& size, Generator* generator,
                         std::optional<Dtype> dtype);
TP_API TensorRef randint(const OpSchema& op, std::int64_t low, std::int64_t high, const Dims& size,
                         Generator* generator, std::optional<Dtype> dtype);
TP_API TensorRef randperm(const OpSchema& op, std::int64_t n, Generator* generator, std::optional<Dtype> dtype);
TP_API TensorRef randint_like(const OpSchema& op, const TensorRef& input, std::int64_t low, std::int64_t high,
                              Generator* generator, std::optional<Dtype> dtype);
TP_API TensorRef randint_like(const OpSchema& op, const TensorRef& input, std::int64_t high, Generator* generator,
                              std::optional<Dtype> dtype);
TP_API TensorRef rand_like(const OpSchema& op, const TensorRef& input, Generator* generator,
                           std::optional<Dtype> dtype);
TP_API TensorRef randn_like(const OpSchema& op, const TensorRef& input, Generator* generator,
                            std::optional<Dtype> dtype);
TP_API TensorRef bernoulli(const OpSchema& op, const TensorRef& input, Generator* generator);
TP_API TensorRef multinomial(const OpSchema& op, const TensorRef& input, std::int64_t n, bool replacement,
                             Generator* generator);
TP_API std::array<TensorRef, 2> native_dropout(const OpSchema& op, const TensorRef& input, double p,
                                               Generator* generator);

}  // namespace batch::rules
}  // namespace tp
