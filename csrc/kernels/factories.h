// Tensors made from numbers. Without a dtype, integers give int64 and other numbers the default float.
#pragma once
#include <optional>

#include "core/op_schema.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace tp::kernels {

/// Contents are whatever the memory held.
// kernel: empty_filled
TP_API Storage empty_filled(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype);
// kernel: zeros
TP_API Storage zeros(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype);
// kernel: ones
TP_API Storage ones(const OpSchema& op, const Dims& size, std::optional<Dtype> dtype);
// kernel: full
TP_API Storage full(const OpSchema& op, const Dims& size, const Scalar& fill_value, std::optional<Dtype> dtype);
// kernel: arange_end
TP_API Storage arange_end(const OpSchema& op, const Scalar& end, std::optional<Dtype> dtype);
// kernel: arange
TP_API Storage arange(const OpSchema& op, const Scalar& start, const Scalar& end, const Scalar& step,
                      std::optional<Dtype> dtype);
/// Both ends are exact; the second half counts back from the end.
// kernel: linspace
TP_API Storage linspace(const OpSchema& op, const Scalar& start, const Scalar& end, std::int64_t steps,
                        std::optional<Dtype> dtype);
// kernel: logspace (internal)
TP_API Storage logspace(const OpSchema& op, const Scalar& start, const Scalar& end, std::int64_t steps, double base,
                        std::optional<Dtype> dtype);
// kernel: eye
TP_API Storage eye(const OpSchema& op, std::int64_t n, std::optional<std::int64_t> m, std::optional<Dtype> dtype);
/// [2, count]: rows and columns of the lower triangle of a row x col matrix.
// kernel: tril_indices (internal)
TP_API Storage tril_indices(const OpSchema& op, std::int64_t row, std::int64_t col, std::int64_t offset,
                            std::optional<Dtype> dtype);
// kernel: triu_indices (internal)
TP_API Storage triu_indices(const OpSchema& op, std::int64_t row, std::int64_t col, std::int64_t offset,
                            std::optional<Dtype> dtype);

}  // namespace tp::kernels
