// Kernels of pooling over one, two or three trailing dimensions; the op's name says how many (max_pool2d). Inputs are
// [N, C, ...] or [C, ...]. An empty stride stands for kernel_size. Positions are counted within a plane.
#pragma once
#include <array>
#include <optional>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// (values, indices)
// kernel: max_pool (internal)
TP_API std::array<Storage, 2> max_pool(const OpSchema& op, const Storage& input, const Dims& kernel_size,
                                       const Dims& stride, const Dims& padding, const Dims& dilation, bool ceil_mode);
/// Values of the planes of `input` (the last `dims` dimensions) at `indices`, and slopes added back at them.
// kernel: plane_gather (internal)
TP_API Storage plane_gather(const OpSchema& op, const Storage& input, const Storage& indices, std::int64_t dims);
// kernel: plane_scatter (internal)
TP_API Storage plane_scatter(const OpSchema& op, const Storage& grad, const Storage& indices, const Dims& sizes,
                             std::int64_t dims);

// kernel: avg_pool (internal)
TP_API Storage avg_pool(const OpSchema& op, const Storage& input, const Dims& kernel_size, const Dims& stride,
                        const Dims& padding, bool ceil_mode, bool count_include_pad,
                        std::optional<std::int64_t> divisor_override);
// kernel: avg_pool_slope (internal)
TP_API Storage avg_pool_slope(const OpSchema& op, const Storage& grad, const Dims& sizes, const Dims& kernel_size,
                              const Dims& stride, const Dims& padding, bool ceil_mode, bool count_include_pad,
                              std::optional<std::int64_t> divisor_override);

/// output_size: as many numbers as dimensions are pooled (one stands for all); -1 keeps the input's size.
// kernel: adaptive_avg_pool (internal)
TP_API Storage adaptive_avg_pool(const OpSchema& op, const Storage& input, const Dims& output_size);
// kernel: adaptive_avg_pool_slope (internal)
TP_API Storage adaptive_avg_pool_slope(const OpSchema& op, const Storage& grad, const Dims& sizes);
/// (values, indices)
// kernel: adaptive_max_pool (internal)
TP_API std::array<Storage, 2> adaptive_max_pool(const OpSchema& op, const Storage& input, const Dims& output_size);

}  // namespace tp::kernels
