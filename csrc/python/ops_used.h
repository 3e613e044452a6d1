// The ops of the catalogue this room calls itself: for indexing and views. Their signatures follow ops.yaml.
#pragma once
#include <optional>
#include <span>

#include "core/scalar.h"
#include "core/tensor_impl.h"

namespace tp::ops {

TensorRef select(const TensorRef& input, std::int64_t dim, std::int64_t index);
TensorRef slice(const TensorRef& input, std::int64_t dim, std::optional<std::int64_t> start,
                std::optional<std::int64_t> end, std::int64_t step);
TensorRef unsqueeze(const TensorRef& input, std::int64_t dim);
TensorRef index(const TensorRef& input, std::span<const TensorRef> indices);
TensorRef index_put_(const TensorRef& input, std::span<const TensorRef> indices, const TensorRef& values,
                     bool accumulate);
TensorRef masked_select(const TensorRef& input, const TensorRef& mask);
TensorRef masked_fill_(const TensorRef& input, const TensorRef& mask, const TensorRef& value);
TensorRef copy_(const TensorRef& input, const TensorRef& src);
TensorRef permute(const TensorRef& input, const Dims& dims);
TensorRef transpose(const TensorRef& input, std::int64_t dim0, std::int64_t dim1);
TensorRef view(const TensorRef& input, const Dims& shape);
TensorRef expand(const TensorRef& input, const Dims& sizes);
TensorRef flip(const TensorRef& input, const Dims& dims);
TensorRef conj(const TensorRef& input);
TensorRef all(const TensorRef& input, const Dims& dim, bool keepdim);
TensorRef eq(const TensorRef& input, const TensorRef& other);
TensorRef isclose(const TensorRef& input, const TensorRef& other, double rtol, double atol, bool equal_nan);

}  // namespace tp::ops
