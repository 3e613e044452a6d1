// Quantiles of discrete distributions: what turns uniform numbers into draws of them. Knows no generator.
#pragma once
#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// The least k with P(X <= k) >= u for X of a Poisson distribution; operands are float64 and broadcast.
// kernel: poisson_quantile
TP_API Storage poisson_quantile(const OpSchema& op, const Storage& u, const Storage& rate);

}  // namespace tp::kernels
