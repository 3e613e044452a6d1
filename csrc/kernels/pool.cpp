// Pooling windows of a fixed size: largest and mean.
#include "kernels/pool.h"

#include <algorithm>

#include "core/modes.h"
#include "kernels/axis.h"
#include "kernels/conv_plan.h"
#include "kernels/conv_walk.h"
#include "kernels/pool_plan.h"
#include "kernels/pool_table.h"
#include "kernels/scratch.h"

namespace tp::kernels {
namespace {

using std::int64_t;

template <class T>
const PoolLoops<T>& loops() {
  static const PoolTable& table = TP_PICK_TABLE(pool_table);
  if constexpr (std::is_same_v<T, float>)
    return table.f32;
  else if constexpr (std::is_same_v<T, double>)
    return table.f64;
  else
    return table.i64;
}

/// One dimension of windows: how many outputs, given sizes.
int64_t pooled_size(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation, bool ceil_mode) {
  const int64_t room = in + 2 * pad - dilation * (kernel - 1) - 1;
  int64_t n = (room >= 0 ? (room + (ceil_mode ? stride - 1 : 0)) / stride : -1) + 1;
  // The last window must start inside the input or in the padding before it.
  if (ceil_mode && n > 0 && (n - 1) * stride >= in + pad) --n;
  return n;
}

PoolPlan window_plan(const OpSchema& op, const Shape& sizes, const Dims& kernel_size, const Dims& stride,
                     const Dims& padding, const Dims& dilation, bool ceil_mode) {
  PoolPlan p = plane_plan(op, sizes, pooled_dims(op));
  const Dims k = conv_list(op, "kernel_size", kernel_size, p.dims, 1);
  const Dims s = stride.empty() ? k : conv_list(op, "stride", stride, p.dims, 1);
  const Dims pad = conv_list(op, "padding", padding, p.dims, 0), d = conv_list(op, "dilation", dilation, p.dims, 1);
  for (int i = 0; i < p.dims; ++i) {
    const int at = 3 - p.dims + i;
    if (TP_UNLIKELY(pad[i] * 2 > k[i]))
      value_error(op.name, ": padding must be at most half of kernel_size; they are ", pad, " and ", k);
    p.g.kernel[at] = k[i];
    p.g.stride[at] = s[i];
    p.g.padding[at] = pad[i];
    p.g.dilation[at] = d[i];
    p.g.out[at] = pooled_size(p.g.in[at], k[i], s[i], pad[i], d[i], ceil_mode);
    if (TP_UNLIKELY(p.g.out[at] <= 0))
      value_error(op.name, ": no window fits: input is ", sizes, ", kernel_size is ", k, ", padding is ", pad);
  }
  return p;
}

Dtype pool_work(const OpSchema& op, Dtype d) {
  if (TP_UNLIKELY(is_complex(d) || d == Dtype::Bool))
    type_error(op.name, ": not defined for ", dtype_name(d), " inputs");
  return is_float(d) ? dtype_of(compute_type(d)) : Dtype::I64;
}

template <class F>
void with_type(Dtype d, F&& f) {
  if (d == Dtype::F32)
    f(float());
  else if (d == Dtype::F64)
    f(double());
  else
    f(int64_t());
}

/// What each window's sum is divided by.
template <class T>
void divisors(const PoolPlan& p, bool count_include_pad, std::optional<int64_t> divisor, T* to) {
  const ConvGeometry& g = p.g;
  const auto length = [&](int d, int64_t o) {
    const int64_t start = o * g.stride[d] - g.padding[d], end = std::min(start + g.kernel[d], g.in[d] + g.padding[d]);
    return count_include_pad ? end - start : std::min(end, g.in[d]) - std::max<int64_t>(start, 0);
  };
  for (int64_t od = 0; od < g.out[0]; ++od)
    for (int64_t oh = 0; oh < g.out[1]; ++oh)
      for (int64_t ow = 0; ow < g.out[2]; ++ow)
        *to++ = T(divisor ? *divisor : length(0, od) * length(1, oh) * length(2, ow));
}

void check_divisor(const OpSchema& op, std::optional<int64_t> d) {
  if (TP_UNLIKELY(d && *d == 0)) value_error(op.name, ": divisor_override must not be 0");
}

}  // namespace

int pooled_dims(const OpSchema& op) {
  for (std::size_t i = 1; i < op.name.size(); ++i)
    if (op.name[i] == 'd' && op.name[i - 1] >= '1' && op.name[i - 1] <= '3') return op.name[i - 1] - '0';
  return 2;
}

PoolPlan plane_plan(const OpSchema& op, const Shape& sizes, int dims) {
  if (TP_UNLIKELY(sizes.size() != dims + 1 && sizes.size() != dims + 2))
    value_error(op.name, ": input must have ", dims + 2, " dimensions, or ", dims + 1, " without a batch; it is ",
                sizes);
  PoolPlan p;
  p.dims = dims;
  for (int i = 0; i < 3; ++i) {
    p.g.in[i] = p.g.out[i] = p.g.kernel[i] = p.g.stride[i] = p.g.dilation[i] = 1;
    p.g.padding[i] = 0;
  }
  for (int i = 0; i < sizes.size(); ++i) {
    if (i < sizes.size() - dims) {
      p.lead.push_back(sizes[i]);
      p.planes *= sizes[i];
    } else {
      p.g.in[3 - (sizes.size() - i)] = sizes[i];
    }
  }
  if (TP_UNLIKELY(p.g.in_plane() > 0x7fffffff))
    value_error(op.name, ": a plane of input has more than 2^31 - 1 elements: ", sizes);
  return p;
}

Shape PoolPlan::output_sizes() const {
  Shape s = lead;
  for (int d = 3 - dims; d < 3; ++d) s.push_back(g.out[d]);
  return s;
}

std::array<Storage, 2> max_pool(const OpSchema& op, const Storage& input, const Dims& kernel_size, const Dims& stride,
                                const Dims& padding, const Dims& dilation, bool ceil_mode) {
  const PoolPlan p = window_plan(op, input.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  const Dtype work = pool_work(op, input.dtype());
  const Storage x = contiguous(cast(input, work));
  Storage out = empty(p.output_sizes(), work), at = empty(p.output_sizes(), Dtype::I64);
  const int64_t in = p.g.in_plane(), n = p.g.out_plane();
  with_type(work, [&]<class T>(T) {
    modes::Unlocked unlocked(out.numel() * p.g.taps() > 200000);
    parallel_tiles(p.planes, grain_for(0.3 * double(n * p.g.taps())), [&](int64_t b, int64_t e) {
      Scratch<std::int32_t> room(2 * p.g.out[2]);
      for (int64_t i = b; i < e; ++i)
        loops<T>().max(p.g, x.data<T>() + i * in, out.data<T>() + i * n, at.data<int64_t>() + i * n, room.get());
    });
  });
  return {in_dtype(out, input.dtype()), at};
}

namespace {
/// How `indices` of [..., windows] lie over planes of `plane` elements; checked against the sizes of what they index.
struct Positions {
  int64_t planes = 1, plane = 1, count = 1;
};
Positions positions(const OpSchema& op, const Shape& sizes, const Storage& indices, int64_t dims) {
  Positions p;
  const int lead = sizes.size() - int(dims);
  bool ok = lead >= 0 && indices.dim() == sizes.size();
  for (int i = 0; ok && i < lead; ++i) ok = sizes[i] == indices.size(i);
  if (TP_UNLIKELY(!ok))
    value_error(op.name, ": indices of sizes ", indices.sizes(), " do not belong to planes of ", sizes);
  for (int i = 0; i < sizes.size(); ++i) {
    (i < lead ? p.planes : p.plane) *= sizes[i];
    if (i >= lead) p.count *= indices.size(i);
  }
  const int64_t* at = indices.data<int64_t>();
  for (int64_t i = 0; i < indices.numel(); ++i)
    if (TP_UNLIKELY(at[i] < 0 || at[i] >= p.plane))
      index_error(op.name, ": index ", at[i], " is out of range for planes of ", p.plane, " elements");
  return p;
}
}  // namespace

Storage plane_gather(const OpSchema& op, const Storage& input, const Storage& indices, int64_t dims) {
  const Storage at = contiguous(cast(indices, Dtype::I64));
  const Positions p = positions(op, input.sizes(), at, dims);
  const Dtype work = pool_work(op, input.dtype());
  const Storage x = contiguous(cast(input, work));
  Storage out = empty(indices.sizes(), work);
  with_type(work, [&]<class T>(T) {
    parallel_for(0, p.planes, grain_for(double(p.count)), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const T* from = x.data<T>() + i * p.plane;
        for (int64_t j = i * p.count; j < (i + 1) * p.count; ++j) out.data<T>()[j] = from[at.data<int64_t>()[j]];
      }
    });
  });
  return in_dtype(out, input.dtype());
}

Storage plane_scatter(const OpSchema& op, const Storage& grad, const Storage& indices, const Dims& sizes,
                      int64_t dims) {
  const Storage at = contiguous(cast(indices, Dtype::I64));
  const Positions p = positions(op, sizes, at, dims);
  if (TP_UNLIKELY(!(grad.sizes() == indices.sizes())))
    value_error(op.name, ": grad and indices differ in sizes: ", grad.sizes(), " and ", indices.sizes());
  const Dtype work = pool_work(op, grad.dtype());
  const Storage g = contiguous(cast(grad, work));
  Storage out = empty(sizes, work);
  with_type(work, [&]<class T>(T) {
    modes::Unlocked unlocked(out.numel() > 200000);
    parallel_tiles(p.planes, grain_for(double(p.count) + 0.1 * double(p.plane)), [&](int64_t b, int64_t e) {
      const int64_t* where = at.data<int64_t>();
      const T* from = g.data<T>();
      for (int64_t i = b; i < e; ++i) {
        T* to = out.data<T>() + i * p.plane;
        std::fill_n(to, p.plane, T(0));
        for (int64_t j = i * p.count; j < (i + 1) * p.count; ++j) to[where[j]] += from[j];
      }
    });
  });
  return in_dtype(out, grad.dtype());
}

Storage avg_pool(const OpSchema& op, const Storage& input, const Dims& kernel_size, const Dims& stride,
                 const Dims& padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  check_divisor(op, divisor_override);
  const PoolPlan p = window_plan(op, input.sizes(), kernel_size, stride, padding, {1}, ceil_mode);
  const Dtype work = pool_work(op, input.dtype());
  const Storage x = contiguous(cast(input, work));
  Storage out = empty(p.output_sizes(), work);
  const int64_t in = p.g.in_plane(), n = p.g.out_plane();
  with_type(work, [&]<class T>(T) {
    Scratch<T> by(n);
    divisors(p, count_include_pad, divisor_override, by.get());
    modes::Unlocked unlocked(out.numel() * p.g.taps() > 200000);
    parallel_tiles(p.planes, grain_for(0.2 * double(n * p.g.taps())), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        T* to = out.data<T>() + i * n;
        loops<T>().sum(p.g, x.data<T>() + i * in, to);
        for (int64_t j = 0; j < n; ++j) to[j] /= by[j];
      }
    });
  });
  return in_dtype(out, input.dtype());
}

Storage avg_pool_slope(const OpSchema& op, const Storage& grad, const Dims& sizes, const Dims& kernel_size,
                       const Dims& stride, const Dims& padding, bool ceil_mode, bool count_include_pad,
                       std::optional<int64_t> divisor_override) {
  check_divisor(op, divisor_override);
  const PoolPlan p = window_plan(op, sizes, kernel_size, stride, padding, {1}, ceil_mode);
  if (TP_UNLIKELY(!(grad.sizes() == p.output_sizes())))
    value_error(op.name, ": grad must have sizes ", p.output_sizes(), "; it is ", grad.sizes());
  const Dtype work = pool_work(op, grad.dtype());
  const Storage g = contiguous(cast(grad, work));
  Storage out = empty(sizes, work);
  const int64_t in = p.g.in_plane(), n = p.g.out_plane();
  with_type(work, [&]<class T>(T) {
    Scratch<T> by(n);
    divisors(p, count_include_pad, divisor_override, by.get());
    modes::Unlocked unlocked(grad.numel() * p.g.taps() > 200000);
    parallel_tiles(p.planes, grain_for(0.3 * double(n * p.g.taps())), [&](int64_t b, int64_t e) {
      Scratch<T> shares(n);
      for (int64_t i = b; i < e; ++i) {
        T* to = out.data<T>() + i * in;
        const T* from = g.data<T>() + i * n;
        std::fill_n(to, in, T(0));
        for (int64_t j = 0; j < n; ++j) shares[j] = from[j] / by[j];
        loops<T>().sum_back(p.g, shares.get(), to);
      }
    });
  });
  return in_dtype(out, grad.dtype());
}

}  // namespace tp::kernels
