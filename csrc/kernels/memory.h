// Kernels of copies and conversions, as ops call them; the moves themselves are in staging. Knows no autograd.
#pragma once
#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

// kernel: clone
TP_API Storage clone(const OpSchema& op, const Storage& input);
// kernel: cast
TP_API Storage cast(const OpSchema& op, const Storage& input, Dtype dtype);
/// src broadcast to input's sizes, in input's dtype.
// kernel: copy
TP_API Storage copy(const OpSchema& op, const Storage& input, const Storage& src);
// kernel: copy_
TP_API void copy_(const OpSchema& op, Storage& self, const Storage& src);
// kernel: fill
TP_API Storage fill(const OpSchema& op, const Storage& input, const Storage& value);
// kernel: fill_
TP_API void fill_(const OpSchema& op, Storage& self, const Storage& value);

}  // namespace tp::kernels
