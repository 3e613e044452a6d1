// Argument checks of the copying ops.
#include "kernels/copy.h"

#include <string>

#include "core/errors.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"

namespace tp::kernels {

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
  copy_broadcast(op.name, out, src);
  return out;
}

void copy_(const OpSchema& op, Storage& self, const Storage& src) {
  copy_broadcast(std::string(op.name) + "_", self, src);
}

Storage fill(const OpSchema& op, const Storage& input, const Storage& value) {
  Storage out = empty(input.sizes(), input.dtype());
  fill_(op, out, value);
  return out;
}

void fill_(const OpSchema& op, Storage& self, const Storage& value) {
  if (TP_UNLIKELY(value.dim() != 0))
    value_error(op.name, "_: value must be a number or a 0-d tensor, got shape ", value.sizes());
  copy_broadcast(std::string(op.name) + "_", self, value);
}

}  // namespace tp::kernels
