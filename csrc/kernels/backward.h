// Reductions to a given size and gradients that add a selection back into zeros of the whole. Knows no autograd.
#pragma once
#include <optional>
#include <string_view>

#include "core/op_schema.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace tp::kernels {

/// Overlapping elements add up, so any geometry is right.
// kernel: as_strided_backward
TP_API Storage as_strided_backward(const OpSchema& op, const Storage& grad, const Dims& input_size, const Dims& size,
                                   const Dims& stride, std::optional<std::int64_t> storage_offset);
// kernel: masked_select_backward
TP_API Storage masked_select_backward(const OpSchema& op, const Storage& grad, const Storage& mask, const Dims& size);
// kernel: sum_to
TP_API Storage sum_to(const OpSchema& op, const Storage& input, const Dims& size);
/// The same memory and version counter, without anything else.
// kernel: alias
TP_API Storage alias(const OpSchema& op, const Storage& input);

}  // namespace tp::kernels
