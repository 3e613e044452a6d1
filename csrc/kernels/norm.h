// Kernels of layer, RMS, group and batch normalisation and of their gradients. Statistics come back in F32 for
// half inputs; a gradient that is not wanted comes back undefined.
#pragma once
#include <array>
#include <optional>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// (out, mean, rstd); mean and rstd keep the normalised dimensions as ones.
// kernel: native_layer_norm
TP_API std::array<Storage, 3> native_layer_norm(const OpSchema& op, const Storage& input, const Dims& normalized_shape,
                                                const Storage& weight, const Storage& bias, double eps);
/// Gradients of (input, weight, bias).
// kernel: native_layer_norm_backward
TP_API std::array<Storage, 3> native_layer_norm_backward(const OpSchema& op, const Storage& g, const Storage& input,
                                                         const Dims& normalized_shape, const Storage& mean,
                                                         const Storage& rstd, const Storage& weight, bool want_input,
                                                         bool want_weight, bool want_bias);

/// (out, rstd). Without eps, the machine epsilon of the input's dtype.
// kernel: native_rms_norm
TP_API std::array<Storage, 2> native_rms_norm(const OpSchema& op, const Storage& input, const Dims& normalized_shape,
                                              const Storage& weight, std::optional<double> eps);
/// Gradients of (input, weight).
// kernel: native_rms_norm_backward
TP_API std::array<Storage, 2> native_rms_norm_backward(const OpSchema& op, const Storage& g, const Storage& input,
                                                       const Dims& normalized_shape, const Storage& rstd,
                                                       const Storage& weight, bool want_input, bool want_weight);

/// (out, mean, rstd); mean and rstd have sizes [N, num_groups].
// kernel: native_group_norm
TP_API std::array<Storage, 3> native_group_norm(const OpSchema& op, const Storage& input, std::int64_t num_groups,
                                                const Storage& weight, const Storage& bias, double eps);
// kernel: native_group_norm_backward
TP_API std::array<Storage, 3> native_group_norm_backward(const OpSchema& op, const Storage& g, const Storage& input,
                                                         std::int64_t num_groups, const Storage& mean,
                                                         const Storage& rstd, const Storage& weight, bool want_input,
                                                         bool want_weight, bool want_bias);

/// (out, mean, rstd), per channel: of the batch when training, else the running ones. Training moves running_mean and
/// running_var (where given) in place, by `momentum`, towards the batch's mean and unbiased variance.
// kernel: native_batch_norm
TP_API std::array<Storage, 3> native_batch_norm(const OpSchema& op, const Storage& input, const Storage& weight,
                                                const Storage& bias, const Storage& running_mean,
                                                const Storage& running_var, bool training, double momentum, double eps);
// kernel: native_batch_norm_backward
TP_API std::array<Storage, 3> native_batch_norm_backward(const OpSchema& op, const Storage& g, const Storage& input,
                                                         const Storage& weight, const Storage& mean,
                                                         const Storage& rstd, bool training, bool want_input,
                                                         bool want_weight, bool want_bias);

}  // namespace tp::kernels
