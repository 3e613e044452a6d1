// Distances between all rows of two matrices.
#pragma once
#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// [..., m, k] and [..., n, k] of floating dtypes to [..., m, n]; p: 1, 2 or infinity.
// kernel: distance_pairs
TP_API Storage distance_pairs(const OpSchema& op, const Storage& x1, const Storage& x2, double p);

/// The same of one operand's rows, [..., n, k] to [..., n, n].
// kernel: distances_among
TP_API Storage distances_among(const OpSchema& op, const Storage& x, double p);

/// out[..., i, k] = the sum over j of weight[..., i, j] * (x1[..., i, k] - x2[..., j, k]); leading dimensions broadcast.
// kernel: weighted_differences
TP_API Storage weighted_differences(const OpSchema& op, const Storage& weight, const Storage& x1, const Storage& x2);

}  // namespace tp::kernels
