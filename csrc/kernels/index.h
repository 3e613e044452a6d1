// Ops that pick or write elements by index tensors and masks. An index out of range raises IndexError with its value, the
// dimension and its size, before anything is written.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "core/op_schema.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace tp::kernels {

// ---- picking
/// out[i][j] = input[index[i][j]][j] for dim 0; index may be smaller than input in the other dimensions.
// kernel: gather
TP_API Storage gather(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index);
// kernel: index_select
TP_API Storage index_select(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index);
/// Elements of the flattened input; negative indices count from the end.
// kernel: take (internal)
TP_API Storage take(const OpSchema& op, const Storage& input, const Storage& index);
/// Rows of weight, [...] to [..., width].
// kernel: embedding
TP_API Storage embedding(const OpSchema& op, const Storage& input, const Storage& weight,
                         std::optional<std::int64_t> padding_idx);
// kernel: embedding_backward
TP_API Storage embedding_backward(const OpSchema& op, const Storage& grad, const Storage& input,
                                  std::int64_t num_weights, std::optional<std::int64_t> padding_idx);
/// Advanced indexing: integer tensors broadcast together, bool masks stand for the indices of their true elements, an
/// undefined entry for a whole dimension. Negative indices count from the end.
// kernel: index
TP_API Storage index(const OpSchema& op, const Storage& input, std::span<const Storage> indices);

// ---- writing along a dimension; the forms with an underscore write into self
// kernel: scatter
TP_API Storage scatter(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                       const Storage& src);
// kernel: scatter_
TP_API void scatter_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index, const Storage& src);
// kernel: scatter_value
TP_API Storage scatter_value(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                             const Scalar& value);
// kernel: scatter_value_
TP_API void scatter_value_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index,
                           const Scalar& value);
// kernel: scatter_add
TP_API Storage scatter_add(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                           const Storage& src);
// kernel: scatter_add_
TP_API void scatter_add_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index, const Storage& src);
/// reduce: sum, prod, mean, amax or amin.
// kernel: scatter_reduce (internal)
TP_API Storage scatter_reduce(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                              const Storage& src, std::string_view reduce, bool include_self);
// kernel: index_add
TP_API Storage index_add(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                         const Storage& source, const Scalar& alpha);
// kernel: index_add_
TP_API void index_add_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index, const Storage& source,
                       const Scalar& alpha);
// kernel: index_copy (internal)
TP_API Storage index_copy(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                          const Storage& source);
// kernel: index_copy_ (internal)
TP_API void index_copy_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index,
                        const Storage& source);
/// `value` is 0-d.
// kernel: index_fill (internal)
TP_API Storage index_fill(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                          const Storage& value);
// kernel: index_fill_ (internal)
TP_API void index_fill_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index,
                        const Storage& value);

// ---- writing by advanced indexing; of several values for one place the last one stays
// kernel: index_put
TP_API Storage index_put(const OpSchema& op, const Storage& input, std::span<const Storage> indices,
                         const Storage& values, bool accumulate);
// kernel: index_put_
TP_API void index_put_(const OpSchema& op, Storage& self, std::span<const Storage> indices, const Storage& values,
                       bool accumulate);

// ---- masks and counts
/// [count, dimensions], in row-major order.
// kernel: nonzero
TP_API Storage nonzero(const OpSchema& op, const Storage& input);
// kernel: masked_select
TP_API Storage masked_select(const OpSchema& op, const Storage& input, const Storage& mask);
/// True places take the elements of source in order; there must be enough.
// kernel: masked_scatter (internal)
TP_API Storage masked_scatter(const OpSchema& op, const Storage& input, const Storage& mask, const Storage& source);
// kernel: one_hot
TP_API Storage one_hot(const OpSchema& op, const Storage& input, std::int64_t num_classes);
// kernel: bincount (internal)
TP_API Storage bincount(const OpSchema& op, const Storage& input, const Storage& weights, std::int64_t minlength);

}  // namespace tp::kernels
