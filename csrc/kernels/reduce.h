// Reductions: sums, means, products, extrema and their positions, variance, norms, logsumexp, truth. `dim` empty means all
// dimensions. Sums are taken in blocks with a compensated double total; results do not depend on the number of threads.
#pragma once
#include <array>
#include <optional>

#include "core/op_schema.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace tp::kernels {

// kernel: sum
TP_API Storage sum(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim, std::optional<Dtype> dtype);
// kernel: nansum (internal)
TP_API Storage nansum(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim,
                      std::optional<Dtype> dtype);
// kernel: mean
TP_API Storage mean(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim,
                    std::optional<Dtype> dtype);
// kernel: prod
TP_API Storage prod(const OpSchema& op, const Storage& input, std::optional<std::int64_t> dim, bool keepdim,
                    std::optional<Dtype> dtype);

/// A nan wins.
// kernel: amax
TP_API Storage amax(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim);
// kernel: amin
TP_API Storage amin(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim);
/// The first of equal elements; the first nan when there is one. Without dim: position in the flattened tensor.
// kernel: argmax
TP_API Storage argmax(const OpSchema& op, const Storage& input, std::optional<std::int64_t> dim, bool keepdim);
// kernel: argmin
TP_API Storage argmin(const OpSchema& op, const Storage& input, std::optional<std::int64_t> dim, bool keepdim);
/// (values, indices)
// kernel: max_dim
TP_API std::array<Storage, 2> max_dim(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim);
// kernel: min_dim
TP_API std::array<Storage, 2> min_dim(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim);

// kernel: any
TP_API Storage any(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim);
// kernel: all
TP_API Storage all(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim);
// kernel: count_numbers (internal)
TP_API Storage count_numbers(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim);
// kernel: count_nonzero
TP_API Storage count_nonzero(const OpSchema& op, const Storage& input, const Dims& dim);

/// Of complex input: variance of the real plus of the imaginary part.
// kernel: var
TP_API Storage var(const OpSchema& op, const Storage& input, const std::optional<Dims>& dim, const Scalar& correction,
                   bool keepdim);
// kernel: std
TP_API Storage std(const OpSchema& op, const Storage& input, const std::optional<Dims>& dim, const Scalar& correction,
                   bool keepdim);
// kernel: logsumexp
TP_API Storage logsumexp(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim);
/// (sum |x|^ord)^(1/ord); ord inf and -inf: largest and smallest magnitude; ord 0: number of nonzero elements.
// kernel: vector_norm
TP_API Storage vector_norm(const OpSchema& op, const Storage& input, const Scalar& ord, const Dims& dim, bool keepdim,
                           std::optional<Dtype> dtype);

}  // namespace tp::kernels
