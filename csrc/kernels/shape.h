// Ops that lay values out anew: joining, repeating, reversing, shifting, padding, triangles. All copy.
#pragma once
#include <span>

#include "core/op_schema.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace tp::kernels {

/// Dtypes promote; an empty 1-d tensor joins with anything.
// kernel: cat
TP_API Storage cat(const OpSchema& op, std::span<const Storage> tensors, std::int64_t dim);
// kernel: stack
TP_API Storage stack(const OpSchema& op, std::span<const Storage> tensors, std::int64_t dim);
// kernel: repeat
TP_API Storage repeat(const OpSchema& op, const Storage& input, const Dims& repeats);
/// Like repeat, but missing leading dims count as 1 on either side.
// kernel: tile (internal)
TP_API Storage tile(const OpSchema& op, const Storage& input, const Dims& dims);
// kernel: flip
TP_API Storage flip(const OpSchema& op, const Storage& input, const Dims& dims);
/// Without dims the flattened tensor is shifted.
// kernel: roll
TP_API Storage roll(const OpSchema& op, const Storage& input, const Dims& shifts, const Dims& dims);
// kernel: tril
TP_API Storage tril(const OpSchema& op, const Storage& input, std::int64_t diagonal);
// kernel: triu
TP_API Storage triu(const OpSchema& op, const Storage& input, std::int64_t diagonal);
/// The last dimension laid on the diagonal of two new ones.
// kernel: diag_embed (internal)
TP_API Storage diag_embed(const OpSchema& op, const Storage& input, std::int64_t offset, std::int64_t dim1,
                          std::int64_t dim2);

/// pad: (before, after) pairs from the last dimension on; negative amounts crop.
// kernel: constant_pad_nd
TP_API Storage constant_pad_nd(const OpSchema& op, const Storage& input, const Dims& pad, const Scalar& value);
/// mode: reflect, replicate or circular.
// kernel: pad_by_index
TP_API Storage pad_by_index(const OpSchema& op, const Storage& input, const Dims& pad, std::string_view mode);
// kernel: pad_by_index_backward
TP_API Storage pad_by_index_backward(const OpSchema& op, const Storage& grad, const Dims& size, const Dims& pad,
                                     std::string_view mode);

}  // namespace tp::kernels
