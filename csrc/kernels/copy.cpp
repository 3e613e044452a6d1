// Argument checks of the copying ops.
#include "kernels/copy.h"

#include <string>

#include "core/errors.h"
#include "kernels/number.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

/// Values of any dtype, as an assignment takes them.
void assign(std::string_view op, Storage& to, const Storage& from) {
  if (from.sizes() == to.sizes()) return copy_into(to, from);
  // Extra leading dimensions of size 1 are dropped, as in assignment to a slice.
  int extra = from.dim() - to.dim();
  bool fits = true;
  for (int d = 0; d < extra; ++d) fits &= from.size(d) == 1;
  if (extra < 0) extra = 0;
  Strides strides(to.dim(), 0);
  for (int d = 0; fits && d < from.dim() - extra; ++d) {
    const int own = from.dim() - 1 - d, other = to.dim() - 1 - d;
    fits = from.size(own) == to.size(other) || from.size(own) == 1;
    strides[other] = from.size(own) == 1 ? 0 : from.stride(own);
  }
  if (!fits) value_error(op, ": values of shape ", from.sizes(), " do not broadcast to shape ", to.sizes());
  if (from.wrapped_number()) check_held(op, from, to.dtype());
  copy_into(to, from.with_geometry(to.sizes(), strides, from.offset()));
}

}  // namespace

void copy_broadcast(std::string_view op, Storage& to, const Storage& from) {
  if (TP_UNLIKELY(!can_cast(from.dtype(), to.dtype())))
    type_error(op, ": result type ", dtype_name(from.dtype()), " can't be cast to ", dtype_name(to.dtype()));
  assign(op, to, from);
}

Storage cast(const OpSchema&, const Storage& input, Dtype dtype) { return cast(input, dtype); }

Storage clone(const OpSchema&, const Storage& input) {
  Storage out = empty(input.sizes(), input.dtype());
  if (!input.is_contiguous() && input.is_dense()) out = out.with_geometry(input.sizes(), input.strides(), 0);
  copy_into(out, input);
  return out;
}

Storage contiguous(const OpSchema&, const Storage& input) { return contiguous(input); }

Storage copy(const OpSchema& op, const Storage& input, const Storage& src) {
  Storage out = empty(input.sizes(), input.dtype());
  assign(op.name, out, src);
  return out;
}

void copy_(const OpSchema& op, Storage& self, const Storage& src) { assign(std::string(op.name) + "_", self, src); }

Storage fill(const OpSchema& op, const Storage& input, const Storage& value) {
  Storage out = empty(input.sizes(), input.dtype());
  fill_(op, out, value);
  return out;
}

void fill_(const OpSchema& op, Storage& self, const Storage& value) {
  if (TP_UNLIKELY(value.dim() != 0))
    value_error(op.name, "_: value must be a number or a 0-d tensor, got shape ", value.sizes());
  assign(std::string(op.name) + "_", self, value);
}

}  // namespace tp::kernels
