// Gather, scatter, masks and advanced indexing over raw memory. Indices are checked before anything is written.
#pragma once
#include <optional>
#include <span>

#include "core/op_schema.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace tp::kernels {

// kernel: gather
TP_API Storage gather(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index);
// kernel: scatter
TP_API Storage scatter(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index, const Storage& src);
// kernel: scatter_value
TP_API Storage scatter_value(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index, const Scalar& value);
// kernel: scatter_add
TP_API Storage scatter_add(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index, const Storage& src);
// kernel: index_select
TP_API Storage index_select(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index);
// kernel: index_add
TP_API Storage index_add(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index, const Storage& source,
                         const Scalar& alpha);
/// Advanced indexing: an undefined entry keeps its dimension, a bool one stands for the positions where it is true.
// kernel: index
TP_API Storage index(const OpSchema& op, const Storage& input, std::span<const Storage> indices);
// kernel: index_put
TP_API Storage index_put(const OpSchema& op, const Storage& input, std::span<const Storage> indices, const Storage& values,
                         bool accumulate);
// kernel: index_put_
TP_API void index_put_(const OpSchema& op, Storage& self, std::span<const Storage> indices, const Storage& values, bool accumulate);
// kernel: masked_select
TP_API Storage masked_select(const OpSchema& op, const Storage& input, const Storage& mask);
/// Copy of input with the true places of mask (of the same sizes) filled from source in order.
TP_API Storage masked_scatter(const OpSchema& op, const Storage& input, const Storage& mask, const Storage& source);
// kernel: nonzero
TP_API Storage nonzero(const OpSchema& op, const Storage& input);
// kernel: one_hot
TP_API Storage one_hot(const OpSchema& op, const Storage& input, std::int64_t num_classes);
// kernel: embedding
TP_API Storage embedding(const OpSchema& op, const Storage& input, const Storage& weight, std::optional<std::int64_t> padding_idx);
// kernel: embedding_backward
TP_API Storage embedding_backward(const OpSchema& op, const Storage& grad, const Storage& input, std::int64_t num_weights,
                                  std::optional<std::int64_t> padding_idx);

}  // namespace tp::kernels
