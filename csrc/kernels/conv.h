// Kernels of convolutions over one, two or three dimensions. Inputs are [N, C, ...] or [C, ...], weights
// [C_out, C_in / groups, ...] ([C_in, C_out / groups, ...] where transposed). An op whose name ends in 1d, 2d or 3d takes
// that many dimensions only. Lists of sizes may have one element for all dimensions.
#pragma once
#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

// kernel: convolution
TP_API Storage convolution(const OpSchema& op, const Storage& input, const Storage& weight, const Storage& bias,
                           const Dims& stride, const Dims& padding, const Dims& dilation, std::int64_t groups);
/// padding: "valid" or "same" (stride 1; an odd total puts the extra element behind).
// kernel: convolution_mode
TP_API Storage convolution_mode(const OpSchema& op, const Storage& input, const Storage& weight, const Storage& bias,
                                const Dims& stride, std::string_view padding, const Dims& dilation,
                                std::int64_t groups);
// kernel: conv_transpose (internal)
TP_API Storage conv_transpose(const OpSchema& op, const Storage& input, const Storage& weight, const Storage& bias,
                              const Dims& stride, const Dims& padding, const Dims& output_padding, std::int64_t groups,
                              const Dims& dilation);

/// Gradient of a convolution in its input of the given sizes, and in its weight of the given sizes.
// kernel: convolution_input_slope
TP_API Storage convolution_input_slope(const OpSchema& op, const Storage& grad, const Storage& weight,
                                       const Dims& sizes, const Dims& stride, const Dims& padding, const Dims& dilation,
                                       std::int64_t groups);
// kernel: convolution_weight_slope
TP_API Storage convolution_weight_slope(const OpSchema& op, const Storage& grad, const Storage& input,
                                        const Dims& sizes, const Dims& stride, const Dims& padding,
                                        const Dims& dilation, std::int64_t groups);
/// The padding in front that "same" or "valid" stands for: what the slopes of convolution_mode are called with.
TP_API Dims conv_mode_padding(const OpSchema& op, const Dims& weight_sizes, std::string_view padding,
                              const Dims& dilation);
// kernel: convolution_mode_input_slope
TP_API Storage convolution_mode_input_slope(const OpSchema& op, const Storage& grad, const Storage& weight,
                                            const Dims& sizes, const Dims& stride, std::string_view padding,
                                            const Dims& dilation, std::int64_t groups);
// kernel: convolution_mode_weight_slope
TP_API Storage convolution_mode_weight_slope(const OpSchema& op, const Storage& grad, const Storage& input,
                                             const Dims& sizes, const Dims& stride, std::string_view padding,
                                             const Dims& dilation, std::int64_t groups);

/// Columns of patches: [N, C, ...] to [N, C * taps, positions].
// kernel: patches (internal)
TP_API Storage patches(const OpSchema& op, const Storage& input, const Dims& kernel_size, const Dims& dilation,
                       const Dims& padding, const Dims& stride);
/// Sums patches back into [N, C, ...output_size].
// kernel: fold_patches (internal)
TP_API Storage fold_patches(const OpSchema& op, const Storage& input, const Dims& output_size, const Dims& kernel_size,
                            const Dims& dilation, const Dims& padding, const Dims& stride);

}  // namespace tp::kernels
