// The running reductions: work types, layout, threads.
#include "kernels/scan.h"

#include <algorithm>
#include <cmath>

#include "core/complex.h"
#include "core/errors.h"
#include "kernels/lines.h"
#include "kernels/scan_table.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"
#include "kernels/streaming.h"

namespace tp::kernels {
namespace {

const ScanTable* const scans = &TP_PICK_TABLE(scan_table);

/// The table's sums or products of a work type.
void run(const RunningFn (&fns)[3], const Storage& out, const Storage& x, const Lines& l) {
  const Dtype type = x.dtype();
  const RunningFn fn = fns[type == Dtype::F32 ? 0 : type == Dtype::F64 ? 1 : 2];
  const std::int64_t item = std::int64_t(item_size(type));
  const StreamFn to_memory = l.inner > 1 && streams(std::size_t(l.numel() * item)) ? staging->stream : nullptr;
  for_each_bundle(l, 0.5, [&](std::int64_t offset, std::int64_t lines) {
    fn(out.raw() + offset * item, x.raw() + offset * item, l.length, l.inner, lines, to_memory);
    if (to_memory) stream_fence();
  });
}

Dtype result_dtype(const Storage& input, std::optional<Dtype> dtype) {
  return dtype ? *dtype : is_integral(input.dtype()) ? Dtype::I64 : input.dtype();
}

Storage as_reals(const Storage& s) {
  Shape sizes = s.sizes();
  sizes.push_back(2);
  return Storage(s.block(), real_dtype(s.dtype()), sizes, contiguous_strides(sizes), 2 * s.offset());
}

void running_product(const Storage& out, const Storage& x, const Lines& l) {
  c128* to = out.data<c128>();
  const c128* from = x.data<c128>();
  for_each_bundle(l, 1.5, [&](std::int64_t offset, std::int64_t lines) {
    for_each_element(l, offset, lines, [&](std::int64_t at, std::int64_t r) {
      to[at] = r == 0 ? from[at] : to[at - l.inner] * from[at];
    });
  });
}

// Whether `now` becomes the extreme after `held`: it is no less extreme, or a nan.
template <bool kMax, class T>
bool takes(T now, T held) {
  return int(kMax ? now >= held : now <= held) | int(now != now);
}

// Along a line in memory, blocks in which nothing is taken are filled at once.
template <bool kMax, class T>
void extreme_line(T* __restrict v, std::int64_t* __restrict place, const T* __restrict from, std::int64_t n) {
  constexpr int kAtOnce = 8;
  T held = from[0];
  std::int64_t last = 0, i = 0;
  const auto scalar = [&](std::int64_t end) {
    for (; i < end; ++i) {
      if (takes<kMax>(from[i], held)) held = from[i], last = i;
      v[i] = held;
      place[i] = last;
    }
  };
  while (i + kAtOnce <= n) {
    int taken = 0;
    for (int k = 0; k < kAtOnce; ++k) taken |= takes<kMax>(from[i + k], held);
    if (taken) {
      scalar(i + kAtOnce);
      continue;
    }
    for (int k = 0; k < kAtOnce; ++k) v[i + k] = held;
    for (int k = 0; k < kAtOnce; ++k) place[i + k] = last;
    i += kAtOnce;
  }
  scalar(n);
}

template <class T, bool kMax>
void running_extreme(const Storage& values, const Storage& index, const Storage& x, const Lines& l) {
  T* v = values.data<T>();
  std::int64_t* place = index.data<std::int64_t>();
  const T* from = x.data<T>();
  for_each_bundle(l, l.inner == 1 ? 0.5 : 1.5, [&](std::int64_t offset, std::int64_t lines) {
    if (l.inner == 1) {
      for (std::int64_t c = 0; c < lines; ++c, offset += l.length)
        extreme_line<kMax>(v + offset, place + offset, from + offset, l.length);
      return;
    }
    for_each_element(l, offset, lines, [&](std::int64_t at, std::int64_t r) {
      const bool take = r == 0 || takes<kMax>(from[at], v[at - l.inner]);
      v[at] = take ? from[at] : v[at - l.inner];
      place[at] = take ? r : place[at - l.inner];
    });
  });
}

template <bool kMax>
std::array<Storage, 2> extreme(const OpSchema& op, const Storage& input, std::int64_t dim) {
  if (TP_UNLIKELY(is_complex(input.dtype()))) type_error(op.name, ": complex numbers have no order");
  const int d = wrap_dim(op.name, dim, input.dim());
  const Dtype work = input.dtype() == Dtype::Bool ? Dtype::I32 : dtype_of(compute_type(input.dtype()));
  const Storage x = contiguous(cast(input, work));
  const Lines l(input.sizes(), d);
  Storage values = empty(input.sizes(), work), index = empty(input.sizes(), Dtype::I64);
  switch (compute_type(work)) {
    case Compute::I64: running_extreme<std::int64_t, kMax>(values, index, x, l); break;
    case Compute::U64: running_extreme<std::uint64_t, kMax>(values, index, x, l); break;
    case Compute::F32: running_extreme<float, kMax>(values, index, x, l); break;
    case Compute::F64: running_extreme<double, kMax>(values, index, x, l); break;
    default: running_extreme<std::int32_t, kMax>(values, index, x, l); break;
  }
  return {cast(values, input.dtype()), std::move(index)};
}

// log(exp(a) + exp(b)) without overflow.
double log_add(double a, double b) {
  if (a != a || b != b) return a + b;
  const double high = std::max(a, b), low = std::min(a, b);
  if (high == low && std::isinf(high)) return high;
  return high + std::log1p(std::exp(low - high));
}

c128 log_add(c128 a, c128 b) {
  const c128 high = a.re < b.re ? b : a, low = a.re < b.re ? a : b;
  if (std::isinf(high.re) && (high.re < 0 || low.re < high.re)) return high;
  const double size = std::exp(low.re - high.re), turn = low.im - high.im;
  const c128 rest{size * std::cos(turn), size * std::sin(turn)};
  return {high.re + 0.5 * std::log1p(rest.re * (2 + rest.re) + rest.im * rest.im),
          high.im + std::atan2(rest.im, 1 + rest.re)};
}

template <class T>
void running_log(const Storage& out, const Storage& x, const Lines& l) {
  T* to = out.data<T>();
  const T* from = x.data<T>();
  for_each_bundle(l, 20, [&](std::int64_t offset, std::int64_t lines) {
    for_each_element(l, offset, lines, [&](std::int64_t at, std::int64_t r) {
      to[at] = r == 0 ? from[at] : log_add(to[at - l.inner], from[at]);
    });
  });
}

}  // namespace

Storage cumsum(const OpSchema& op, const Storage& input, std::int64_t dim, std::optional<Dtype> dtype) {
  const Dtype out_dtype = result_dtype(input, dtype);
  const int d = wrap_dim(op.name, dim, input.dim());
  const Dtype work = is_complex(out_dtype) ? out_dtype
      : is_integral(out_dtype)             ? Dtype::I64
      : out_dtype == Dtype::F64            ? Dtype::F64
                                           : Dtype::F32;
  Storage x = contiguous(cast(input, work)), out = empty(input.sizes(), work);
  Lines l(input.sizes(), d);
  const bool complex = is_complex(work);
  if (complex) l.inner *= 2;
  const Storage from = complex ? as_reals(x) : x, to = complex ? as_reals(out) : out;
  run({scans->sum_f32, scans->sum_f64, scans->sum_i64}, to, from, l);
  return cast(out, out_dtype);
}

Storage cumprod(const OpSchema& op, const Storage& input, std::int64_t dim, std::optional<Dtype> dtype) {
  const Dtype out_dtype = result_dtype(input, dtype);
  const int d = wrap_dim(op.name, dim, input.dim());
  const bool narrow = item_size(input.dtype()) <= 2 || input.dtype() == Dtype::F32;
  const Dtype work = is_complex(out_dtype) ? Dtype::C128
      : is_integral(out_dtype)             ? Dtype::I64
      : narrow && out_dtype != Dtype::F64  ? Dtype::F32
                                           : Dtype::F64;
  const Storage x = contiguous(cast(input, work));
  Storage out = empty(input.sizes(), work);
  const Lines l(input.sizes(), d);
  if (work == Dtype::C128)
    running_product(out, x, l);
  else
    run({scans->prod_f32, scans->prod_f64, scans->prod_i64}, out, x, l);
  return cast(out, out_dtype);
}

std::array<Storage, 2> cummax(const OpSchema& op, const Storage& input, std::int64_t dim) {
  return extreme<true>(op, input, dim);
}
std::array<Storage, 2> cummin(const OpSchema& op, const Storage& input, std::int64_t dim) {
  return extreme<false>(op, input, dim);
}

Storage logcumsumexp(const OpSchema& op, const Storage& input, std::int64_t dim) {
  const Dtype out_dtype = is_integral(input.dtype()) ? default_float() : input.dtype();
  const int d = wrap_dim(op.name, dim, input.dim());
  const Dtype work = is_complex(out_dtype) ? Dtype::C128 : Dtype::F64;
  const Storage x = contiguous(cast(input, work));
  Storage out = empty(input.sizes(), work);
  const Lines l(input.sizes(), d);
  if (work == Dtype::C128)
    running_log<c128>(out, x, l);
  else
    running_log<double>(out, x, l);
  return cast(out, out_dtype);
}

}  // namespace tp::kernels
