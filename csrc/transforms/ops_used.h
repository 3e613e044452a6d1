// The ops of the catalogue that batching rules call themselves. Their signatures follow ops.yaml.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "core/scalar.h"
#include "core/tensor_impl.h"

namespace tp {

class Generator;

namespace ops {

TensorRef add(const TensorRef& input, const TensorRef& other, const Scalar& alpha);
TensorRef arange(const Scalar& end, std::optional<Dtype> dtype);
TensorRef as_strided(const TensorRef& input, const Dims& size, const Dims& stride,
                     std::optional<std::int64_t> storage_offset);
TensorRef as_strided_scatter(const TensorRef& input, const TensorRef& src, const Dims& size, const Dims& stride,
                             std::optional<std::int64_t> storage_offset);
TensorRef bernoulli(const TensorRef& input, Generator* generator);
TensorRef cast(const TensorRef& input, Dtype dtype);
TensorRef clone(const TensorRef& input);
TensorRef contiguous(const TensorRef& input);
TensorRef convolution(const TensorRef& input, const TensorRef& weight, const TensorRef& bias, const Dims& stride,
                      const Dims& padding, const Dims& dilation, std::int64_t groups);
TensorRef convolution_input_backward(const TensorRef& grad, const TensorRef& weight, const Dims& size,
                                     const Dims& stride, const Dims& padding, const Dims& dilation,
                                     std::int64_t groups);
TensorRef convolution_mode(const TensorRef& input, const TensorRef& weight, const TensorRef& bias, const Dims& stride,
                           std::string_view padding, const Dims& dilation, std::int64_t groups);
TensorRef convolution_mode_input_backward(const TensorRef& grad, const TensorRef& weight, const Dims& size,
                                          const Dims& stride, std::string_view padding, const Dims& dilation,
                                          std::int64_t groups);
TensorRef convolution_mode_weight_backward(const TensorRef& grad, const TensorRef& input, const Dims& size,
                                           const Dims& stride, std::string_view padding, const Dims& dilation,
                                           std::int64_t groups);
TensorRef convolution_weight_backward(const TensorRef& grad, const TensorRef& input, const Dims& size,
                                      const Dims& stride, const Dims& padding, const Dims& dilation,
                                      std::int64_t groups);
TensorRef copy_(const TensorRef& input, const TensorRef& src);
std::array<TensorRef, 3> cross_entropy_index(const TensorRef& input, const TensorRef& target, const TensorRef& weight,
                                             std::int64_t ignore_index, std::string_view reduction,
                                             double label_smoothing);
TensorRef div(const TensorRef& input, const TensorRef& other);
TensorRef ge(const TensorRef& input, const TensorRef& other);
TensorRef index(const TensorRef& input, std::span<const TensorRef> indices);
TensorRef index_put(const TensorRef& input, std::span<const TensorRef> indices, const TensorRef& values,
                    bool accumulate);
TensorRef index_select(const TensorRef& input, std::int64_t dim, const TensorRef& index);
TensorRef lt(const TensorRef& input, const TensorRef& other);
TensorRef matmul(const TensorRef& input, const TensorRef& other);
std::array<TensorRef, 2> median_dim(const TensorRef& input, std::int64_t dim, bool keepdim);
TensorRef movedim(const TensorRef& input, const Dims& source, const Dims& destination);
TensorRef mul(const TensorRef& input, const TensorRef& other);
TensorRef multinomial(const TensorRef& input, std::int64_t num_samples, bool replacement, Generator* generator);
std::array<TensorRef, 3> native_batch_norm(const TensorRef& input, const TensorRef& weight, const TensorRef& bias,
                                           const TensorRef& running_mean, const TensorRef& running_var, bool training,
                                           double momentum, double eps);
std::array<TensorRef, 2> native_dropout(const TensorRef& input, double p, Generator* generator);
TensorRef ne(const TensorRef& input, const TensorRef& other);
std::array<TensorRef, 2> nll_loss_forward(const TensorRef& input, const TensorRef& target, const TensorRef& weight,
                                          std::int64_t ignore_index, std::string_view reduction);
TensorRef permute(const TensorRef& input, const Dims& dims);
TensorRef rand(const Dims& size, Generator* generator, std::optional<Dtype> dtype);
TensorRef rand_like(const TensorRef& input, Generator* generator, std::optional<Dtype> dtype);
TensorRef randint(std::int64_t high, const Dims& size, Generator* generator, std::optional<Dtype> dtype);
TensorRef randint(std::int64_t low, std::int64_t high, const Dims& size, Generator* generator,
                  std::optional<Dtype> dtype);
TensorRef randn(const Dims& size, Generator* generator, std::optional<Dtype> dtype);
TensorRef randn_like(const TensorRef& input, Generator* generator, std::optional<Dtype> dtype);
TensorRef randperm(std::int64_t n, Generator* generator, std::optional<Dtype> dtype);
TensorRef searchsorted_in(const TensorRef& sorted_sequence, const TensorRef& input, bool right);
TensorRef select(const TensorRef& input, std::int64_t dim, std::int64_t index);
TensorRef slice(const TensorRef& input, std::int64_t dim, std::optional<std::int64_t> start,
                std::optional<std::int64_t> end, std::int64_t step);
TensorRef stack(std::span<const TensorRef> tensors, std::int64_t dim);
TensorRef sum(const TensorRef& input, const Dims& dim, bool keepdim, std::optional<Dtype> dtype);
TensorRef transpose(const TensorRef& input, std::int64_t dim0, std::int64_t dim1);
TensorRef where(const TensorRef& condition, const TensorRef& input, const TensorRef& other);
TensorRef unsqueeze(const TensorRef& input, std::int64_t dim);

}  // namespace ops
}  // namespace tp
