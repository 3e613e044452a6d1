// Normalisation over the trailing dimensions (layer, RMS) and over groups of channels.
#include "kernels/norm.h"

#include <cmath>

#include "kernels/norm_support.h"

namespace tp::kernels {
namespace {

using std::int64_t;

/// A tensor as rows of n elements, where the last dimensions of it are `normalized_shape`.
struct Rows {
  int64_t count, n;
  Shape stat_sizes;
};
Rows rows_of(const OpSchema& op, const Storage& input, const Dims& shape) {
  const int lead = input.dim() - shape.size();
  bool ok = lead >= 0 && shape.size() > 0;
  for (int i = 0; ok && i < shape.size(); ++i) ok = input.size(lead + i) == shape[i];
  if (TP_UNLIKELY(!ok))
    value_error(op.name, ": the last sizes of input must be normalized_shape: input is ", input.sizes(),
                ", normalized_shape is ", shape);
  Rows r{1, product(shape), {}};
  for (int i = 0; i < input.dim(); ++i) {
    r.stat_sizes.push_back(i < lead ? input.size(i) : 1);
    if (i < lead) r.count *= input.size(i);
  }
  return r;
}

void same_sizes(const OpSchema& op, const char* name, const Storage& s, const Shape& sizes) {
  if (TP_UNLIKELY(!(s.sizes() == sizes)))
    value_error(op.name, ": ", name, " must have sizes ", sizes, "; it is ", s.sizes());
}

Dtype work_of(Dtype d) { return dtype_of(compute_type(d)); }

std::array<Storage, 3> trailing_backward(const OpSchema& op, const Storage& g, const Storage& input, const Dims& shape,
                                         const Storage& mean, const Storage& rstd, const Storage& weight, bool centered,
                                         bool want_input, bool want_weight, bool want_bias) {
  const Rows r = rows_of(op, input, shape);
  same_sizes(op, "g", g, input.sizes());
  const Dtype result = real_float_dtype(op, input.dtype()), work = work_of(result);
  const Storage sg = staged_float(g, result), x = staged_float(input, result);
  const Storage w = staged_param(op, "weight", weight, shape, work);
  const Storage mu = centered ? staged_param(op, "mean", mean, r.stat_sizes, work) : Storage();
  const Storage rs = staged_param(op, "rstd", rstd, r.stat_sizes, work);
  const Storage gx = want_input ? empty(input.sizes(), work) : Storage();
  const Storage gw = want_weight ? empty(shape, work) : Storage(), gb = want_bias ? empty(shape, work) : Storage();
  with_float(work, [&]<class T>(T) {
    const NormLoops<T>& l = norm_loops<T>();
    const T *pg = sg.data<T>(), *px = x.data<T>(), *pw = data_or_null<T>(w), *pm = data_or_null<T>(mu),
            *pr = rs.data<T>();
    T* to = mutable_or_null<T>(gx);
    modes::Unlocked unlocked(x.numel() > 100000);
    const bool streamed = to && streams_rows(r.count, r.n * int64_t(sizeof(T)));
    sum_over_rows<T>(r.count, r.n, 0.6 * double(r.n), mutable_or_null<T>(gw), mutable_or_null<T>(gb),
                     [&](int64_t b, int64_t e, T* sum_w, T* sum_b) {
                       write_rows(to, r.n, b, e, streamed, {pg, px}, [&](int64_t i, T* row) {
                         l.row_backward(r.n, pg + i * r.n, px + i * r.n, pm ? pm[i] : T(0), pr[i], pw, centered,
                                        to ? row : nullptr, sum_w, sum_b);
                       });
                     });
  });
  const auto back = [](const Storage& s, Dtype d) { return s.defined() ? in_dtype(s, d) : s; };
  const Dtype param = weight.defined() ? weight.dtype() : result;
  return {back(gx, result), back(gw, param), back(gb, param)};
}

/// [N, groups] rows of n = C / groups * (the rest).
struct Groups {
  int64_t samples, channels, groups, inner;
  int64_t per_group() const { return channels / groups; }
  int64_t n() const { return per_group() * inner; }
};
Groups groups_of(const OpSchema& op, const Storage& input, int64_t num_groups) {
  if (TP_UNLIKELY(input.dim() < 2)) value_error(op.name, ": input needs sizes [N, C, ...]; it is ", input.sizes());
  if (TP_UNLIKELY(num_groups < 1 || input.size(1) % num_groups != 0))
    value_error(op.name, ": num_groups must divide the ", input.size(1), " channels; it is ", num_groups);
  const Axis a = axis_of(input.sizes(), 1);
  return {a.outer, a.n, num_groups, a.inner};
}

}  // namespace

std::array<Storage, 3> native_layer_norm(const OpSchema& op, const Storage& input, const Dims& normalized_shape,
                                         const Storage& weight, const Storage& bias, double eps) {
  const Rows r = rows_of(op, input, normalized_shape);
  const Dtype result = real_float_dtype(op, input.dtype()), work = work_of(result);
  const Storage x = staged_float(input, result);
  const Storage w = staged_param(op, "weight", weight, normalized_shape, work);
  const Storage c = staged_param(op, "bias", bias, normalized_shape, work);
  Storage out = empty(input.sizes(), work), mean = empty(r.stat_sizes, work), rstd = empty(r.stat_sizes, work);
  with_float(work, [&]<class T>(T) {
    const NormLoops<T>& l = norm_loops<T>();
    const T *px = x.data<T>(), *pw = data_or_null<T>(w), *pb = data_or_null<T>(c);
    T *to = out.data<T>(), *pm = mean.data<T>(), *pr = rstd.data<T>();
    modes::Unlocked unlocked(x.numel() > 100000);
    const bool streamed = streams_rows(r.count, r.n * int64_t(sizeof(T)));
    parallel_for(0, r.count, grain_for(0.3 * double(r.n)), [&](int64_t b, int64_t e) {
      write_rows(to, r.n, b, e, streamed, {px}, [&](int64_t i, T* row) {
        T m2;
        l.moments(r.n, px + i * r.n, pm + i, &m2);
        pr[i] = T(1) / std::sqrt(m2 / T(r.n) + T(eps));
        l.normalize(r.n, px + i * r.n, pm[i], pr[i], pw, pb, row);
      });
    });
  });
  return {in_dtype(out, result), mean, rstd};
}

std::array<Storage, 3> native_layer_norm_backward(const OpSchema& op, const Storage& g, const Storage& input,
                                                  const Dims& normalized_shape, const Storage& mean,
                                                  const Storage& rstd, const Storage& weight, bool want_input,
                                                  bool want_weight, bool want_bias) {
  return trailing_backward(op, g, input, normalized_shape, mean, rstd, weight, true, want_input, want_weight,
                           want_bias);
}

std::array<Storage, 2> native_rms_norm(const OpSchema& op, const Storage& input, const Dims& normalized_shape,
                                       const Storage& weight, std::optional<double> eps) {
  const Rows r = rows_of(op, input, normalized_shape);
  const Dtype result = real_float_dtype(op, input.dtype()), work = work_of(result);
  const double machine = result == Dtype::F64 ? 0x1p-52
      : result == Dtype::F32                  ? 0x1p-23
      : result == Dtype::BF16                 ? 0x1p-7
                                              : 0x1p-10;
  const double e0 = eps ? *eps : machine;
  const Storage x = staged_float(input, result);
  const Storage w = staged_param(op, "weight", weight, normalized_shape, work);
  Storage out = empty(input.sizes(), work), rstd = empty(r.stat_sizes, work);
  with_float(work, [&]<class T>(T) {
    const NormLoops<T>& l = norm_loops<T>();
    const T *px = x.data<T>(), *pw = data_or_null<T>(w);
    T *to = out.data<T>(), *pr = rstd.data<T>();
    modes::Unlocked unlocked(x.numel() > 100000);
    parallel_for(0, r.count, grain_for(0.25 * double(r.n)), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        pr[i] = T(1) / std::sqrt(l.sum_squares(r.n, px + i * r.n) / T(r.n) + T(e0));
        l.normalize(r.n, px + i * r.n, T(0), pr[i], pw, nullptr, to + i * r.n);
      }
    });
  });
  return {in_dtype(out, result), rstd};
}

std::array<Storage, 2> native_rms_norm_backward(const OpSchema& op, const Storage& g, const Storage& input,
                                                const Dims& normalized_shape, const Storage& rstd,
                                                const Storage& weight, bool want_input, bool want_weight) {
  auto all =
      trailing_backward(op, g, input, normalized_shape, Storage(), rstd, weight, false, want_input, want_weight, false);
  return {std::move(all[0]), std::move(all[1])};
}

std::array<Storage, 3> native_group_norm(const OpSchema& op, const Storage& input, int64_t num_groups,
                                         const Storage& weight, const Storage& bias, double eps) {
  const Groups gr = groups_of(op, input, num_groups);
  const Dtype result = real_float_dtype(op, input.dtype()), work = work_of(result);
  const Storage x = staged_float(input, result);
  const Storage w = staged_param(op, "weight", weight, {gr.channels}, work);
  const Storage c = staged_param(op, "bias", bias, {gr.channels}, work);
  Storage out = empty(input.sizes(), work), mean = empty({gr.samples, gr.groups}, work),
          rstd = empty({gr.samples, gr.groups}, work);
  with_float(work, [&]<class T>(T) {
    const NormLoops<T>& l = norm_loops<T>();
    const T *px = x.data<T>(), *pw = data_or_null<T>(w), *pb = data_or_null<T>(c);
    T *to = out.data<T>(), *pm = mean.data<T>(), *pr = rstd.data<T>();
    const int64_t n = gr.n();
    modes::Unlocked unlocked(x.numel() > 100000);
    parallel_for(0, gr.samples * gr.groups, grain_for(0.3 * double(n)), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        T m2;
        l.moments(n, px + i * n, pm + i, &m2);
        pr[i] = T(1) / std::sqrt(m2 / T(n) + T(eps));
        for (int64_t k = 0; k < gr.per_group(); ++k) {
          const int64_t ch = i % gr.groups * gr.per_group() + k, at = i * n + k * gr.inner;
          l.affine(gr.inner, px + at, pm[i], pr[i] * (pw ? pw[ch] : T(1)), pb ? pb[ch] : T(0), to + at);
        }
      }
    });
  });
  return {in_dtype(out, result), mean, rstd};
}

std::array<Storage, 3> native_group_norm_backward(const OpSchema& op, const Storage& g, const Storage& input,
                                                  int64_t num_groups, const Storage& mean, const Storage& rstd,
                                                  const Storage& weight, bool want_input, bool want_weight,
                                                  bool want_bias) {
  const Groups gr = groups_of(op, input, num_groups);
  same_sizes(op, "g", g, input.sizes());
  const Dtype result = real_float_dtype(op, input.dtype()), work = work_of(result);
  const Storage sg = staged_float(g, result), x = staged_float(input, result);
  const Storage w = staged_param(op, "weight", weight, {gr.channels}, work);
  const Storage mu = staged_param(op, "mean", mean, {gr.samples, gr.groups}, work);
  const Storage rs = staged_param(op, "rstd", rstd, {gr.samples, gr.groups}, work);
  const Storage gx = want_input ? empty(input.sizes(), work) : Storage();
  const Storage gw = want_weight ? empty({gr.channels}, work) : Storage();
  const Storage gb = want_bias ? empty({gr.channels}, work) : Storage();
  with_float(work, [&]<class T>(T) {
    const NormLoops<T>& l = norm_loops<T>();
    const T *pg = sg.data<T>(), *px = x.data<T>(), *pw = data_or_null<T>(w), *pm = mu.data<T>(), *pr = rs.data<T>();
    T* to = mutable_or_null<T>(gx);
    const int64_t n = gr.n(), each = gr.per_group();
    modes::Unlocked unlocked(x.numel() > 100000);
    sum_over_rows<T>(gr.samples, gr.channels, 0.6 * double(gr.channels * gr.inner), mutable_or_null<T>(gw),
                     mutable_or_null<T>(gb), [&](int64_t b, int64_t e, T* sum_w, T* sum_b) {
                       for (int64_t i = b * gr.groups; i < e * gr.groups; ++i) {
                         const int64_t first = i % gr.groups * each;
                         T s = 0, sx = 0;
                         for (int64_t k = 0; k < each; ++k) {
                           const int64_t at = i * n + k * gr.inner, ch = first + k;
                           T a, q;
                           l.slope_sums(gr.inner, pg + at, px + at, pm[i], &a, &q);
                           if (sum_b) sum_b[ch] += a;
                           if (sum_w) sum_w[ch] += q * pr[i];
                           s += a * (pw ? pw[ch] : T(1));
                           sx += q * (pw ? pw[ch] : T(1));
                         }
                         if (!to) continue;
                         const T along_x = -sx * pr[i] * pr[i] * pr[i] / T(n), level = -s * pr[i] / T(n);
                         for (int64_t k = 0; k < each; ++k) {
                           const int64_t at = i * n + k * gr.inner;
                           l.combine(gr.inner, pg + at, px + at, pm[i], pr[i] * (pw ? pw[first + k] : T(1)), along_x,
                                     level, to + at);
                         }
                       }
                     });
  });
  const auto back = [](const Storage& s, Dtype d) { return s.defined() ? in_dtype(s, d) : s; };
  const Dtype param = weight.defined() ? weight.dtype() : result;
  return {back(gx, result), back(gw, param), back(gb, param)};
}

}  // namespace tp::kernels
