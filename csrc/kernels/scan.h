// Running reductions along one dimension: every element is the fold of those up to it.
#pragma once
#include <array>
#include <optional>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// Integers are summed as int64; sums of float32 and narrower are carried in double.
// kernel: cumsum
TP_API Storage cumsum(const OpSchema& op, const Storage& input, std::int64_t dim, std::optional<Dtype> dtype);
// kernel: cumprod
TP_API Storage cumprod(const OpSchema& op, const Storage& input, std::int64_t dim, std::optional<Dtype> dtype);
/// (values, indices). Of equal elements the last one's position, as in PyTorch; a nan, once met, stays.
// kernel: cummax (internal)
TP_API std::array<Storage, 2> cummax(const OpSchema& op, const Storage& input, std::int64_t dim);
// kernel: cummin (internal)
TP_API std::array<Storage, 2> cummin(const OpSchema& op, const Storage& input, std::int64_t dim);
// kernel: logcumsumexp (internal)
TP_API Storage logcumsumexp(const OpSchema& op, const Storage& input, std::int64_t dim);

}  // namespace tp::kernels
