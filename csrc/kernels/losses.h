// Kernels of the losses over class indices: nll_loss and the fused cross_entropy, with their gradients. Inputs are
// (C), (N, C) or (N, C, d...); targets have the same sizes without C. `reduction` is "none", "mean" or "sum".
#pragma once
#include <array>
#include <string_view>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// (loss, total_weight): the sum of the weights of the targets that count, what "mean" divides by.
// kernel: nll_loss
TP_API std::array<Storage, 2> nll_loss(const OpSchema& op, const Storage& input, const Storage& target,
                                       const Storage& weight, std::int64_t ignore_index, std::string_view reduction);
/// The gradient with respect to the log-probabilities, of sizes `sizes`.
// kernel: nll_loss_backward
TP_API Storage nll_loss_backward(const OpSchema& op, const Storage& g, const Dims& sizes, const Storage& target,
                                 const Storage& weight, const Storage& total_weight, std::int64_t ignore_index,
                                 std::string_view reduction);
/// (loss, logsumexp over the classes, total_weight). Reads the scores once, writes no log-probabilities.
// kernel: cross_entropy_index
TP_API std::array<Storage, 3> cross_entropy_index(const OpSchema& op, const Storage& input, const Storage& target,
                                                  const Storage& weight, std::int64_t ignore_index,
                                                  std::string_view reduction, double label_smoothing);
// kernel: cross_entropy_index_backward
TP_API Storage cross_entropy_index_backward(const OpSchema& op, const Storage& g, const Storage& input,
                                            const Storage& target, const Storage& weight, const Storage& logsumexp,
                                            const Storage& total_weight, std::int64_t ignore_index,
                                            std::string_view reduction, double label_smoothing);

}  // namespace tp::kernels
