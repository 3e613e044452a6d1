// Copies and conversions.
#include "kernels/memory.h"

#include "core/errors.h"
#include "kernels/staging.h"

namespace tp::kernels {

Storage clone(const OpSchema&, const Storage& input) {
  Storage out = empty(input.sizes(), input.dtype());
  copy_into(out, input);
  return out;
}

Storage cast(const OpSchema&, const Storage& input, Dtype dtype) { return cast(input, dtype); }

void copy_(const OpSchema& op, Storage& self, const Storage& src) {
  if (self.sizes() == src.sizes())
    copy_into(self, src);
  else
    copy_broadcast(op.name, self, src);
}

Storage copy(const OpSchema& op, const Storage& input, const Storage& src) {
  Storage out = empty(input.sizes(), input.dtype());
  copy_(op, out, src);
  return out;
}

void fill_(const OpSchema& op, Storage& self, const Storage& value) {
  if (value.dim() != 0) runtime_error(op.name, ": the value must have no dimensions, it has sizes ", value.sizes());
  copy_broadcast(op.name, self, value);
}

Storage fill(const OpSchema& op, const Storage& input, const Storage& value) {
  Storage out = empty(input.sizes(), input.dtype());
  fill_(op, out, value);
  return out;
}

}  // namespace tp::kernels
