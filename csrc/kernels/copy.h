// Ops that move values into other memory: casts, copies, fills. The moving itself is staging.h's.
#pragma once
#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// The same values in `dtype`; the input itself when it already has it.
// kernel: cast
TP_API Storage cast(const OpSchema& op, const Storage& input, Dtype dtype);
/// Always fresh memory; a dense layout is kept.
// kernel: clone
TP_API Storage clone(const OpSchema& op, const Storage& input);
/// The input itself when it is row-major already.
// kernel: contiguous
TP_API Storage contiguous(const OpSchema& op, const Storage& input);
/// Fresh memory with input's sizes and dtype and src's values, broadcast and cast.
// kernel: copy
TP_API Storage copy(const OpSchema& op, const Storage& input, const Storage& src);
// kernel: copy_
TP_API void copy_(const OpSchema& op, Storage& self, const Storage& src);
/// `value` is 0-d.
// kernel: fill
TP_API Storage fill(const OpSchema& op, const Storage& input, const Storage& value);
// kernel: fill_
TP_API void fill_(const OpSchema& op, Storage& self, const Storage& value);

}  // namespace tp::kernels
