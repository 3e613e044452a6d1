// Memory laid out as a tensor's. Knows no gradient and no op.
#pragma once
#include <functional>
#include <numeric>

#include "core/tensor_impl.h"

namespace tp {

/// Elements from the first to the last that sizes and strides touch.
inline std::int64_t extent(const Shape& sizes, const Strides& strides) {
  if (product(sizes) == 0) return 0;
  return std::inner_product(sizes.begin(), sizes.end(), strides.begin(), std::int64_t(1), std::plus<>(),
                            [](std::int64_t n, std::int64_t step) { return (n - 1) * step; });
}

/// A row of zeros with room for what is laid out as `like`.
inline TensorRef zeros_under(const Storage& like, Dtype dtype) {
  return TensorImpl::make(zeros_storage({extent(like.sizes(), like.strides())}, dtype));
}

}  // namespace tp
