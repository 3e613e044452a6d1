// Kernels of softmax and log_softmax along a dimension, and their gradients.
#pragma once
#include <optional>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

// kernel: softmax
TP_API Storage softmax(const OpSchema& op, const Storage& input, std::int64_t dim, std::optional<Dtype> dtype);
// kernel: log_softmax
TP_API Storage log_softmax(const OpSchema& op, const Storage& input, std::int64_t dim, std::optional<Dtype> dtype);
/// (g - sum(g * out)) * out
// kernel: softmax_backward
TP_API Storage softmax_backward(const OpSchema& op, const Storage& g, const Storage& out, std::int64_t dim);
/// g - exp(out) * sum(g)
// kernel: log_softmax_backward
TP_API Storage log_softmax_backward(const OpSchema& op, const Storage& g, const Storage& out, std::int64_t dim);

}  // namespace tp::kernels
