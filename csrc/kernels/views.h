// View kernels: the same memory under other sizes, strides and offset. No element is read or written, save where a name
// says so (reshape and flatten copy when no view exists; the *_scatter forms and mH of a complex tensor copy always).
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

// ---- order of dimensions
// kernel: transpose
TP_API Storage transpose(const OpSchema& op, const Storage& input, std::int64_t dim0, std::int64_t dim1);
// kernel: permute
TP_API Storage permute(const OpSchema& op, const Storage& input, const Dims& dims);
// kernel: movedim
TP_API Storage movedim(const OpSchema& op, const Storage& input, const Dims& source, const Dims& destination);
/// 2-d transpose; a 0-d or 1-d tensor is itself.
// kernel: t
TP_API Storage t(const OpSchema& op, const Storage& input);
/// All dimensions reversed.
// kernel: numpy_T (internal)
TP_API Storage numpy_T(const OpSchema& op, const Storage& input);
// kernel: mT (internal)
TP_API Storage mT(const OpSchema& op, const Storage& input);
/// mT; of a complex tensor, a conjugated copy.
// kernel: mH (internal)
TP_API Storage mH(const OpSchema& op, const Storage& input);

// ---- sizes
// kernel: reshape
TP_API Storage reshape(const OpSchema& op, const Storage& input, const Dims& shape);
/// The bytes under another dtype: a last dimension of as many more or fewer elements where the sizes of one differ.
// kernel: view_bytes
TP_API Storage view_bytes(const OpSchema& op, const Storage& input, Dtype dtype);
// kernel: view
TP_API Storage view(const OpSchema& op, const Storage& input, const Dims& size);
// kernel: flatten (internal)
TP_API Storage flatten(const OpSchema& op, const Storage& input, std::int64_t start_dim, std::int64_t end_dim);
// kernel: unflatten
TP_API Storage unflatten(const OpSchema& op, const Storage& input, std::int64_t dim, const Dims& sizes);
// kernel: expand
TP_API Storage expand(const OpSchema& op, const Storage& input, const Dims& size);
/// Absent dims: every dimension of size 1.
// kernel: squeeze
TP_API Storage squeeze(const OpSchema& op, const Storage& input, const std::optional<Dims>& dim);
// kernel: unsqueeze
TP_API Storage unsqueeze(const OpSchema& op, const Storage& input, std::int64_t dim);

// ---- parts
// kernel: select
TP_API Storage select(const OpSchema& op, const Storage& input, std::int64_t dim, std::int64_t index);
/// Python's slice: bounds are clamped, negative ones count from the end; the step is positive.
// kernel: slice
TP_API Storage slice(const OpSchema& op, const Storage& input, std::int64_t dim, std::optional<std::int64_t> start,
                     std::optional<std::int64_t> end, std::int64_t step);
// kernel: narrow
TP_API Storage narrow(const OpSchema& op, const Storage& input, std::int64_t dim, std::int64_t start,
                      std::int64_t length);
// kernel: diagonal
TP_API Storage diagonal(const OpSchema& op, const Storage& input, std::int64_t offset, std::int64_t dim1,
                        std::int64_t dim2);
/// Windows of `size` along `dimension`, every `step`, as a new last dimension.
// kernel: unfold (internal)
TP_API Storage unfold(const OpSchema& op, const Storage& input, std::int64_t dimension, std::int64_t size,
                      std::int64_t step);
// kernel: as_strided
TP_API Storage as_strided(const OpSchema& op, const Storage& input, const Dims& size, const Dims& stride,
                          std::optional<std::int64_t> storage_offset);
// kernel: unbind
TP_API std::vector<Storage> unbind(const OpSchema& op, const Storage& input, std::int64_t dim);
// kernel: split
TP_API std::vector<Storage> split(const OpSchema& op, const Storage& input, std::int64_t split_size, std::int64_t dim);
// kernel: split_with_sizes
TP_API std::vector<Storage> split_with_sizes(const OpSchema& op, const Storage& input, const Dims& split_sizes,
                                             std::int64_t dim);
// kernel: chunk
TP_API std::vector<Storage> chunk(const OpSchema& op, const Storage& input, std::int64_t chunks, std::int64_t dim);
/// `sections` parts whose sizes differ by at most one.
// kernel: tensor_split (internal)
TP_API std::vector<Storage> tensor_split(const OpSchema& op, const Storage& input, std::int64_t sections,
                                         std::int64_t dim);
/// Parts between the given indices.
// kernel: tensor_split_indices (internal)
TP_API std::vector<Storage> tensor_split_indices(const OpSchema& op, const Storage& input, const Dims& indices,
                                                 std::int64_t dim);

// ---- complex parts
// kernel: real
TP_API Storage real(const OpSchema& op, const Storage& input);
// kernel: imag (internal)
TP_API Storage imag(const OpSchema& op, const Storage& input);
// kernel: view_as_real
TP_API Storage view_as_real(const OpSchema& op, const Storage& input);
// kernel: view_as_complex
TP_API Storage view_as_complex(const OpSchema& op, const Storage& input);

// ---- a copy of `input` with the part a view names replaced by `src`
// kernel: select_scatter (internal)
TP_API Storage select_scatter(const OpSchema& op, const Storage& input, const Storage& src, std::int64_t dim,
                              std::int64_t index);
// kernel: slice_scatter (internal)
TP_API Storage slice_scatter(const OpSchema& op, const Storage& input, const Storage& src, std::int64_t dim,
                             std::optional<std::int64_t> start, std::optional<std::int64_t> end, std::int64_t step);
// kernel: diagonal_scatter (internal)
TP_API Storage diagonal_scatter(const OpSchema& op, const Storage& input, const Storage& src, std::int64_t offset,
                                std::int64_t dim1, std::int64_t dim2);
// kernel: as_strided_scatter
TP_API Storage as_strided_scatter(const OpSchema& op, const Storage& input, const Storage& src, const Dims& size,
                                  const Dims& stride, std::optional<std::int64_t> storage_offset);

// ---- gradients of views: zeros of the given size with `grad` at the places the view shows
// kernel: select_backward
TP_API Storage select_backward(const OpSchema& op, const Storage& grad, const Dims& size, std::int64_t dim,
                               std::int64_t index);
// kernel: slice_backward
TP_API Storage slice_backward(const OpSchema& op, const Storage& grad, const Dims& size, std::int64_t dim,
                              std::optional<std::int64_t> start, std::optional<std::int64_t> end, std::int64_t step);
// kernel: diagonal_backward
TP_API Storage diagonal_backward(const OpSchema& op, const Storage& grad, const Dims& size, std::int64_t offset,
                                 std::int64_t dim1, std::int64_t dim2);
/// Windows may overlap; their gradients add up.
// kernel: unfold_backward (internal)
TP_API Storage unfold_backward(const OpSchema& op, const Storage& grad, const Dims& input_size, std::int64_t dimension,
                               std::int64_t size, std::int64_t step);

}  // namespace tp::kernels
