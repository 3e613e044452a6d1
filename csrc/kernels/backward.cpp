// Gradients of selections, and sums down to a broadcast operand's sizes.
#include "kernels/backward.h"

#include "core/errors.h"
#include "kernels/elementwise.h"
#include "kernels/index.h"
#include "kernels/reduce.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace tp::kernels {

Storage as_strided_backward(const OpSchema& op, const Storage& grad, const Dims& input_size, const Dims& size,
                            const Dims& stride, std::optional<std::int64_t> storage_offset) {
  (void)op;
  Storage whole = zeros_storage(input_size, grad.dtype());
  if (grad.numel() == 0) return whole;
  const Storage piece = whole.with_geometry(size, stride, storage_offset.value_or(0));
  // Where no two indices meet, a copy does; otherwise one index after another is added.
  if (piece.is_dense() || [&] {
        Dims order;
        for (int i = 0; i < size.size(); ++i)
          if (size[i] != 1) order.push_back(i);
        std::sort(order.begin(), order.end(),
                  [&](std::int64_t a, std::int64_t b) { return stride[int(a)] < stride[int(b)]; });
        std::int64_t reach = 1;
        for (std::int64_t i : order) {
          if (stride[int(i)] < reach) return false;
          reach = stride[int(i)] * (size[int(i)] - 1) + reach;
        }
        return true;
      }()) {
    Storage target = piece;
    copy_into(target, grad);
    return whole;
  }
  const Storage wide = is_complex(grad.dtype()) ? cast(grad, Dtype::C128) : cast(grad, Dtype::F64);
  const Storage flat = contiguous(wide);
  Storage sum = zeros_storage(input_size, wide.dtype());
  const int parts = is_complex(grad.dtype()) ? 2 : 1;
  double* to = sum.data<double>();
  const double* from = flat.data<double>();
  Dims at(size.size(), 0);
  for (std::int64_t k = 0; k < flat.numel(); ++k) {
    std::int64_t offset = storage_offset.value_or(0);
    for (int i = 0; i < size.size(); ++i) offset += at[i] * stride[i];
    for (int p = 0; p < parts; ++p) to[offset * parts + p] += from[k * parts + p];
    for (int i = size.size() - 1; i >= 0; --i) {
      if (++at[i] < size[i]) break;
      at[i] = 0;
    }
  }
  return cast(sum, grad.dtype());
}

Storage masked_select_backward(const OpSchema& op, const Storage& grad, const Storage& mask, const Dims& size) {
  Storage whole = zeros_storage(size, grad.dtype());
  const Storage* both[] = {&whole, &mask};
  const Shape full = broadcast_shapes(op.name, both);
  if (!(full == size)) {  // input was repeated to meet a larger mask: fill the repeats, then add them up
    Storage repeated = zeros_storage(full, grad.dtype());
    const Storage wide_mask = expand(op, mask, full);
    const Storage filled = masked_scatter(op, repeated, wide_mask, grad);
    return sum_to(op, filled, size);
  }
  return masked_scatter(op, whole, expand(op, mask, full), grad);
}

Storage sum_to(const OpSchema& op, const Storage& input, const Dims& size) {
  if (input.sizes() == size) return input;
  const int lead = input.dim() - size.size();
  if (lead < 0) value_error(op.name, ": sizes ", input.sizes(), " cannot be summed to ", size);
  Dims dims;
  for (int i = 0; i < input.dim(); ++i) {
    const bool extra = i < lead;
    if (!extra && size[i - lead] != input.size(i) && size[i - lead] != 1)
      value_error(op.name, ": sizes ", input.sizes(), " cannot be summed to ", size);
    if (extra || (size[i - lead] == 1 && input.size(i) != 1)) dims.push_back(i);
  }
  if (dims.empty()) return reshape(op, input, size);
  return reshape(op, sum(op, input, dims, true, input.dtype()), size);
}

Storage alias(const OpSchema& op, const Storage& input) {
  (void)op;
  return input;
}

}  // namespace tp::kernels
