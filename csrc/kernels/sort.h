// Order and selection along one dimension. nan counts as the largest value, ties keep their order. Knows no autograd.
#pragma once
#include <array>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// (values, indices)
// kernel: sort
TP_API std::array<Storage, 2> sort(const OpSchema& op, const Storage& input, std::int64_t dim, bool descending,
                                   bool stable);
/// (values, indices) of the k largest or smallest; in order when `sorted`, and where it costs nothing.
// kernel: topk
TP_API std::array<Storage, 2> topk(const OpSchema& op, const Storage& input, std::int64_t k, std::int64_t dim,
                                   bool largest, bool sorted);

}  // namespace tp::kernels
