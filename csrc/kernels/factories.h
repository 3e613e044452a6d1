// Tensors made from numbers: constants, ranges, the identity. Knows no autograd.
#pragma once
#include <optional>

#include "core/op_schema.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace tp::kernels {

// kernel: zeros
TP_API Storage zeros(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype);
// kernel: ones
TP_API Storage ones(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype);
/// Whatever the memory held.
// kernel: empty_filled
TP_API Storage empty_filled(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype);
/// Without dtype: that of the value, bool, int64, or the default float or complex type.
// kernel: full
TP_API Storage full(const OpSchema& op, const Dims& size, const Scalar& fill_value, std::optional<Dtype> dtype);
// kernel: arange
TP_API Storage arange(const OpSchema& op, const Scalar& start, const Scalar& end, const Scalar& step, std::optional<Dtype> dtype);
// kernel: arange_end
TP_API Storage arange_end(const OpSchema& op, const Scalar& end, std::optional<Dtype> dtype);
// kernel: linspace
TP_API Storage linspace(const OpSchema& op, const Scalar& start, const Scalar& end, std::int64_t steps, std::optional<Dtype> dtype);
// kernel: eye
TP_API Storage eye(const OpSchema& op, std::int64_t n, std::optional<std::int64_t> m, std::optional<Dtype> dtype);

}  // namespace tp::kernels
