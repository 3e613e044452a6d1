// Searching in sorted sequences, distinct values, order statistics. A nan counts as larger than every number.
#pragma once
#include <array>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// Where each value would go in the sorted last dimension: before equal elements, or after them when `right`.
/// sorted_sequence is 1-d, or has input's shape in all dimensions but the last.
// kernel: searchsorted (internal)
TP_API Storage searchsorted(const OpSchema& op, const Storage& sorted_sequence, const Storage& input, bool right);
// kernel: bucketize (internal)
TP_API Storage bucketize(const OpSchema& op, const Storage& input, const Storage& boundaries, bool right);
/// (values in order, inverse, counts) of the flattened tensor; input equals values[inverse].
// kernel: unique (internal)
TP_API std::array<Storage, 3> unique(const OpSchema& op, const Storage& input);
/// The same, but only neighbours that are equal are joined and the order is kept.
// kernel: unique_consecutive (internal)
TP_API std::array<Storage, 3> unique_consecutive(const OpSchema& op, const Storage& input);
/// (values, indices) of the k-th smallest element, counted from 1.
// kernel: kthvalue (internal)
TP_API std::array<Storage, 2> kthvalue(const OpSchema& op, const Storage& input, std::int64_t k, std::int64_t dim,
                                       bool keepdim);
/// (values, indices); the lower of two middle elements; nan where there is one.
// kernel: median_dim (internal)
TP_API std::array<Storage, 2> median_dim(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim);
// kernel: median (internal)
TP_API Storage median(const OpSchema& op, const Storage& input);
/// The same over the elements that are not nan.
// kernel: nanmedian (internal)
TP_API Storage nanmedian(const OpSchema& op, const Storage& input);
/// (values, indices): the most frequent element, the smallest of several, and the last place it stands at.
// kernel: mode (internal)
TP_API std::array<Storage, 2> mode(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim);

}  // namespace tp::kernels
