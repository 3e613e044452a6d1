// The linear recurrence: one pass over each line, neighbouring lines abreast.
#include "kernels/recurrence.h"

#include <algorithm>

#include "core/complex.h"
#include "core/errors.h"
#include "kernels/lines.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

// Lines one behind the other: what each of them holds stays in a register, and none waits for another.
template <class T, std::int64_t kAbreast>
void recur_along(T* to, const T* x, const T* a, std::int64_t length, bool reverse) {
  T held[kAbreast];
  std::int64_t at = reverse ? length - 1 : 0;
  for (std::int64_t c = 0; c < kAbreast; ++c) to[at + c * length] = held[c] = x[at + c * length];
  for (std::int64_t r = 1; r < length; ++r) {
    at += reverse ? -1 : 1;
    for (std::int64_t c = 0, i = at; c < kAbreast; ++c, i += length) to[i] = held[c] = x[i] + a[i] * held[c];
  }
}

template <class T>
void recur(const Storage& out, const Storage& input, const Storage& factor, int dim, bool reverse) {
  const Lines l(out.sizes(), dim);
  const std::int64_t step = reverse ? -l.inner : l.inner;
  T* to = out.data<T>();
  const T *x = input.data<T>(), *a = factor.data<T>();
  for_each_bundle(l, 1.5, [&](std::int64_t offset, std::int64_t lines) {
    if (l.inner == 1) {
      if (lines == kBundle) return recur_along<T, kBundle>(to + offset, x + offset, a + offset, l.length, reverse);
      for (; lines > 0; --lines, offset += l.length)
        recur_along<T, 1>(to + offset, x + offset, a + offset, l.length, reverse);
      return;
    }
    std::int64_t at = offset + (reverse ? (l.length - 1) * l.inner : 0);
    std::copy_n(x + at, lines, to + at);
    for (std::int64_t r = 1; r < l.length; ++r) {
      at += step;
      for (std::int64_t c = at; c < at + lines; ++c) to[c] = x[c] + a[c] * to[c - step];
    }
  });
}

}  // namespace

Storage linear_recurrence(const OpSchema& op, const Storage& input, const Storage& factor, std::int64_t dim,
                          bool reverse) {
  if (TP_UNLIKELY(!(input.sizes() == factor.sizes()) || input.dtype() != factor.dtype()))
    value_error(op.name, ": input is ", dtype_name(input.dtype()), " ", input.sizes(), ", factor ",
                dtype_name(factor.dtype()), " ", factor.sizes(), "; they must agree");
  const int d = wrap_dim(op.name, dim, input.dim());
  const Dtype work = is_complex(input.dtype()) ? Dtype::C128 : Dtype::F64;
  const Storage x = contiguous(cast(input, work)), a = contiguous(cast(factor, work));
  Storage out = empty(input.sizes(), work);
  if (out.numel() != 0) {
    if (work == Dtype::C128)
      recur<c128>(out, x, a, d, reverse);
    else
      recur<double>(out, x, a, d, reverse);
  }
  return cast(out, input.dtype());
}

}  // namespace tp::kernels
