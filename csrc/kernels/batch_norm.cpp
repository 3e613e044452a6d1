// Batch normalisation: statistics per channel of [N, C, ...], read as runs of `inner` elements, or as columns when there
// is nothing behind the channels.
#include <algorithm>
#include <cmath>

#include "kernels/norm.h"
#include "kernels/norm_support.h"
#include "kernels/reduce_table.h"

namespace tp::kernels {
namespace {

using std::int64_t;

// Channels of one task when inner == 1: as many as there are threads for, so that rows are read as they lie.
constexpr int64_t kColumns = 64, kMostColumns = kFoldColumns;

Axis channels_of(const OpSchema& op, const Storage& input) {
  if (TP_UNLIKELY(input.dim() < 2)) value_error(op.name, ": input needs sizes [N, C, ...]; it is ", input.sizes());
  return axis_of(input.sizes(), 1);
}

/// f(first, end) over channels; tasks are blocks of neighbouring channels when inner == 1.
template <class F>
void over_channels(const Axis& a, double ns_each, const F& f) {
  const double ns = ns_each * double(a.outer * a.inner);
  if (a.inner == 1) {
    const int64_t width = std::clamp((a.n / num_threads() + 63) & -64, kColumns, kMostColumns);
    const int64_t blocks = (a.n + width - 1) / width;
    parallel_tiles(blocks, grain_for(ns * double(width)), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) f(i * width, std::min(a.n, (i + 1) * width));
    });
  } else {
    parallel_tiles(a.n, grain_for(ns), f);
  }
}

/// Of `width` neighbouring channels with nothing behind them: the fold of var, before its end.
template <class T>
void columns_moments(int64_t width, int64_t rows, int64_t stride, const T* x, T* mean, T* m2) {
  static const ReduceTable& table = TP_PICK_TABLE(reduce_table);
  const FoldKernel& var = std::is_same_v<T, float> ? table.var_f32 : table.var_f64;
  const Scratch<double> planes(3 * width);
  const Accumulators acc{reinterpret_cast<char*>(planes.get()), width};
  var.init(acc, width);
  var.cols(acc, reinterpret_cast<const char*>(x), stride, rows, width, 0);
  for (int64_t c = 0; c < width; ++c) {
    mean[c] = T(planes[width + c]);
    m2[c] = T(planes[2 * width + c]);
  }
}

/// Mean and squared distances per channel: those of runs, which are read in the order they lie in, combined by Chan's formula.
template <class T>
void batch_moments(const Axis& a, const T* x, T* mean, T* m2) {
  const NormLoops<T>& l = norm_loops<T>();
  if (a.inner == 1)
    return over_channels(
        a, 0.25, [&](int64_t c0, int64_t c1) { columns_moments(c1 - c0, a.outer, a.n, x + c0, mean + c0, m2 + c0); });
  const Scratch<T> runs(2 * a.outer * a.n);
  T *run_mean = runs.get(), *run_m2 = run_mean + a.outer * a.n;
  parallel_for(0, a.outer * a.n, grain_for(0.25 * double(a.inner)), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) l.moments(a.inner, x + i * a.inner, run_mean + i, run_m2 + i);
  });
  for (int64_t c = 0; c < a.n; ++c) {
    double mu = 0, m = 0;
    for (int64_t o = 0; o < a.outer; ++o) {
      const double d = double(run_mean[o * a.n + c]) - mu;
      mu += d / double(o + 1);
      m += double(run_m2[o * a.n + c]) + d * d * double(a.inner) * double(o) / double(o + 1);
    }
    mean[c] = T(mu);
    m2[c] = T(m);
  }
}

template <class T>
void move_running(const Storage& running, Dtype work, double momentum, const T* batch, T factor) {
  if (!running.defined()) return;
  Storage now = contiguous(cast(running, work));
  if (now.block() == running.block()) {
    // Already a contiguous value of the working dtype: updated where it lies.
    T* r = now.data<T>();
    for (int64_t c = 0; c < now.numel(); ++c) r[c] = T((1 - momentum) * r[c] + momentum * (batch[c] * factor));
  } else {
    T* r = now.data<T>();
    for (int64_t c = 0; c < now.numel(); ++c) r[c] = T((1 - momentum) * r[c] + momentum * (batch[c] * factor));
    Storage to = running;
    copy_into(to, now);
  }
  running.bump_version();
}

}  // namespace

std::array<Storage, 3> native_batch_norm(const OpSchema& op, const Storage& input, const Storage& weight,
                                         const Storage& bias, const Storage& running_mean, const Storage& running_var,
                                         bool training, double momentum, double eps) {
  const Axis a = channels_of(op, input);
  const Dtype result = real_float_dtype(op, input.dtype()), work = dtype_of(compute_type(result));
  const Shape channels{a.n};
  const Storage w = staged_param(op, "weight", weight, channels, work),
                c = staged_param(op, "bias", bias, channels, work);
  const Storage rm = staged_param(op, "running_mean", running_mean, channels, work);
  const Storage rv = staged_param(op, "running_var", running_var, channels, work);
  const int64_t count = a.outer * a.inner;
  if (TP_UNLIKELY(training && count == 1))
    value_error(op.name, ": training needs more than one value per channel; input is ", input.sizes());
  if (TP_UNLIKELY(!training && !(rm.defined() && rv.defined())))
    value_error(op.name, ": evaluation needs running_mean and running_var");
  const Storage x = staged_float(input, result);
  Storage out = empty(input.sizes(), work), mean = empty(channels, work), rstd = empty(channels, work);
  with_float(work, [&]<class T>(T) {
    T *pm = mean.data<T>(), *pr = rstd.data<T>();
    if (training) {
      {
        modes::Unlocked unlocked(x.numel() > 100000);
        batch_moments(a, x.data<T>(), pm, pr);
      }
      if (count > 0) {
        move_running<T>(running_mean, work, momentum, pm, T(1));
        move_running<T>(running_var, work, momentum, pr, T(1) / T(count - 1));
      }
      for (int64_t i = 0; i < a.n; ++i) pr[i] = T(1) / std::sqrt(pr[i] / T(count) + T(eps));
    } else {
      for (int64_t i = 0; i < a.n; ++i) {
        pm[i] = rm.data<T>()[i];
        pr[i] = T(1) / std::sqrt(rv.data<T>()[i] + T(eps));
      }
    }
    const NormLoops<T>& l = norm_loops<T>();
    const T *px = x.data<T>(), *pw = data_or_null<T>(w), *pb = data_or_null<T>(c);
    T* to = out.data<T>();
    Scratch<T> scale(a.n), shift(a.n);
    for (int64_t i = 0; i < a.n; ++i) {
      scale[i] = pr[i] * (pw ? pw[i] : T(1));
      shift[i] = pb ? pb[i] : T(0);
    }
    modes::Unlocked unlocked(x.numel() > 100000);
    if (a.inner == 1) {
      parallel_for(0, a.outer, grain_for(0.15 * double(a.n)), [&](int64_t b, int64_t e) {
        l.columns_affine(a.n, e - b, a.n, px + b * a.n, pm, scale.get(), shift.get(), to + b * a.n);
      });
    } else {
      const bool streamed = streams_rows(a.outer * a.n, a.inner * int64_t(sizeof(T)));
      parallel_for(0, a.outer * a.n, grain_for(0.15 * double(a.inner)), [&](int64_t b, int64_t e) {
        write_rows(to, a.inner, b, e, streamed, {px}, [&](int64_t i, T* row) {
          const int64_t ch = i % a.n;
          l.affine(a.inner, px + i * a.inner, pm[ch], scale[ch], shift[ch], row);
        });
      });
    }
  });
  return {in_dtype(out, result), mean, rstd};
}

std::array<Storage, 3> native_batch_norm_backward(const OpSchema& op, const Storage& g, const Storage& input,
                                                  const Storage& weight, const Storage& mean, const Storage& rstd,
                                                  bool training, bool want_input, bool want_weight, bool want_bias) {
  const Axis a = channels_of(op, input);
  if (TP_UNLIKELY(!(g.sizes() == input.sizes())))
    value_error(op.name, ": g must have sizes ", input.sizes(), "; it is ", g.sizes());
  const Dtype result = real_float_dtype(op, input.dtype()), work = dtype_of(compute_type(result));
  const Shape channels{a.n};
  const Storage sg = staged_float(g, result), x = staged_float(input, result);
  const Storage w = staged_param(op, "weight", weight, channels, work),
                mu = staged_param(op, "mean", mean, channels, work);
  const Storage rs = staged_param(op, "rstd", rstd, channels, work);
  const Storage gx = want_input ? empty(input.sizes(), work) : Storage();
  const Storage gw = want_weight ? empty(channels, work) : Storage(),
                gb = want_bias ? empty(channels, work) : Storage();
  with_float(work, [&]<class T>(T) {
    const NormLoops<T>& l = norm_loops<T>();
    const T *pg = sg.data<T>(), *px = x.data<T>(), *pw = data_or_null<T>(w), *pm = mu.data<T>(), *pr = rs.data<T>();
    T *to = mutable_or_null<T>(gx), *to_w = mutable_or_null<T>(gw), *to_b = mutable_or_null<T>(gb);
    const T count = T(a.outer * a.inner);
    Scratch<T> scratch(5 * a.n);
    T *s = scratch.get(), *sx = s + a.n, *ka = sx + a.n, *kb = ka + a.n, *kc = kb + a.n;
    modes::Unlocked unlocked(x.numel() > 100000);
    const auto factors = [&](int64_t c0, int64_t c1) {
      for (int64_t c = c0; c < c1; ++c) {
        if (to_w) to_w[c] = sx[c] * pr[c];
        if (to_b) to_b[c] = s[c];
        const T k = pr[c] * (pw ? pw[c] : T(1));
        ka[c] = k;
        kb[c] = training ? -k * sx[c] * pr[c] * pr[c] / count : T(0);
        kc[c] = training ? -k * s[c] / count : T(0);
      }
    };
    if (a.inner == 1)
      return over_channels(a, 0.6, [&](int64_t c0, int64_t c1) {
        // Gradient sums and the gradient itself of a channel in one task: its second reading may come from cache.
        l.columns_slope_sums(c1 - c0, a.outer, a.n, pg + c0, px + c0, pm + c0, s + c0, sx + c0);
        factors(c0, c1);
        if (to) l.columns_combine(c1 - c0, a.outer, a.n, pg + c0, px + c0, pm + c0, ka + c0, kb + c0, kc + c0, to + c0);
      });
    const int64_t all = a.outer * a.n;
    const Scratch<T> runs(2 * all);
    T *run_s = runs.get(), *run_sx = run_s + all;
    parallel_for(0, all, grain_for(0.3 * double(a.inner)), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i)
        l.slope_sums(a.inner, pg + i * a.inner, px + i * a.inner, pm[i % a.n], run_s + i, run_sx + i);
    });
    for (int64_t c = 0; c < a.n; ++c) {
      double total = 0, total_x = 0;
      for (int64_t i = c; i < all; i += a.n) {
        total += double(run_s[i]);
        total_x += double(run_sx[i]);
      }
      s[c] = T(total);
      sx[c] = T(total_x);
    }
    factors(0, a.n);
    if (!to) return;
    const bool streamed = streams_rows(all, a.inner * int64_t(sizeof(T)));
    parallel_for(0, all, grain_for(0.3 * double(a.inner)), [&](int64_t b, int64_t e) {
      write_rows(to, a.inner, b, e, streamed, {px, pg}, [&](int64_t i, T* row) {
        const int64_t c = i % a.n;
        l.combine(a.inner, pg + i * a.inner, px + i * a.inner, pm[c], ka[c], kb[c], kc[c], row);
      });
    });
  });
  const auto back = [](const Storage& s, Dtype d) { return s.defined() ? in_dtype(s, d) : s; };
  const Dtype param = weight.defined() ? weight.dtype() : result;
  return {back(gx, result), back(gw, param), back(gb, param)};
}

}  // namespace tp::kernels
