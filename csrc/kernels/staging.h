// Moves blocks between any dtype and stride and contiguous memory of a compute type. Knows no op.
#pragma once
#include "core/scalar.h"
#include "core/storage.h"

namespace tp::kernels {

inline constexpr std::int64_t kStage = 1024;  // elements per staged block: a few operands fit in L1

/// Reads n elements of `from` (stride in elements) into contiguous `to` of compute type `as`.
using LoadFn = void (*)(char* to, const char* from, std::int64_t stride, std::int64_t n);
/// Writes n contiguous elements of a compute type to `to` (stride in elements) of a dtype.
using StoreFn = void (*)(char* to, std::int64_t stride, const char* from, std::int64_t n);
TP_API LoadFn load_fn(Dtype from, Compute as);
TP_API StoreFn store_fn(Compute from, Dtype to);
/// Loads as mask bytes (nonzero, nan included, is 1).
TP_API LoadFn load_mask_fn(Dtype from);

/// Contiguous storage of `dtype` with the values of `s` (s itself when it already is).
TP_API Storage contiguous(const Storage& s);
TP_API Storage cast(const Storage& s, Dtype dtype);
/// Copies values (casting, strided, blocked transposes) between storages of equal sizes; handles overlap by a temporary.
TP_API void copy_into(Storage& to, const Storage& from);
/// A result broadcast to the sizes of `to`, whose dtype must hold its kind, then copied.
TP_API void copy_broadcast(std::string_view op, Storage& to, const Storage& from);
TP_API void fill(Storage& s, const Scalar& value);

}  // namespace tp::kernels
