// The linear recurrence along one dimension: what running products and running logarithms of sums send backward.
#pragma once
#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// out[k] = input[k] + factor[k] * out[k - 1], from the other end with out[k + 1] where `reverse`; the first has none before
/// it. Sizes and dtypes agree. Carried in double.
// kernel: linear_recurrence (internal)
TP_API Storage linear_recurrence(const OpSchema& op, const Storage& input, const Storage& factor, std::int64_t dim,
                                 bool reverse);

}  // namespace tp::kernels
