// The linear recurrence: one pass over each line, neighbouring lines abreast.
#include "kernels/recurrence.h"

#include <algorithm>

#include "core/complex.h"
#include "core/errors.h"
#include "core/modes.h"
#include "core/parallel_for.h"
#include "kernels/scratch.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

constexpr std::int64_t kColumns = 256;  // neighbouring lines of one task

template <class T>
void recur(const Storage& out, const Storage& input, const Storage& factor, int dim, bool reverse) {
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < out.dim(); ++d)
    if (d != dim) (d < dim ? outer : inner) *= out.size(d);
  const std::int64_t length = out.dim() == 0 ? 1 : out.size(dim), blocks = (inner + kColumns - 1) / kColumns;
  const std::int64_t step = reverse ? -inner : inner;
  T* to = out.data<T>();
  const T *x = input.data<T>(), *a = factor.data<T>();
  modes::Unlocked unlocked(out.numel() > 50000);
  parallel_tiles(outer * blocks, grain_for(2.0 * double(length) * double(std::min(kColumns, inner))),
                 [&](std::int64_t b, std::int64_t e) {
                   for (std::int64_t i = b; i < e; ++i) {
                     const std::int64_t first = i % blocks * kColumns, cols = std::min(kColumns, inner - first);
                     std::int64_t at = i / blocks * length * inner + first + (reverse ? (length - 1) * inner : 0);
                     std::copy_n(x + at, cols, to + at);
                     for (std::int64_t r = 1; r < length; ++r) {
                       at += step;
                       for (std::int64_t c = at; c < at + cols; ++c) to[c] = x[c] + a[c] * to[c - step];
                     }
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
