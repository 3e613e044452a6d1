// Losses over class indices. The classes of one sample are a row, or lie apart where further dimensions follow.
#include "kernels/losses.h"

#include <algorithm>
#include <vector>

#include "core/modes.h"
#include "kernels/axis.h"
#include "kernels/scratch.h"
#include "kernels/short_rows.h"
#include "kernels/softmax_table.h"

namespace tp::kernels {
namespace {

using std::int64_t;

enum class Reduction { None, Mean, Sum };
Reduction parse_reduction(const OpSchema& op, std::string_view r) {
  if (r == "mean") return Reduction::Mean;
  if (r == "sum") return Reduction::Sum;
  if (TP_UNLIKELY(r != "none")) value_error(op.name, ": reduction must be 'none', 'mean' or 'sum'; it is '", r, "'");
  return Reduction::None;
}

/// The checked arguments of a loss, staged: classes [outer, n, inner], targets int64 [outer * inner].
struct Problem {
  Axis axis;
  Shape target_sizes;
  Storage target, weight;
  int64_t ignore_index;
  Reduction reduction;
  int64_t samples() const { return axis.outer * axis.inner; }
};

void check_targets(const OpSchema& op, const Problem& p) {
  const int64_t* t = p.target.data<int64_t>();
  for (int64_t i = 0; i < p.samples(); ++i)
    if (TP_UNLIKELY((t[i] < 0 || t[i] >= p.axis.n) && t[i] != p.ignore_index))
      index_error(op.name, ": target ", t[i], " is out of bounds for ", p.axis.n, " classes; expected 0 to ",
                  p.axis.n - 1, ", or ignore_index ", p.ignore_index);
}

Problem make_problem(const OpSchema& op, const Shape& sizes, const Storage& target, const Storage& weight, Dtype work,
                     int64_t ignore_index, std::string_view reduction) {
  Problem p;
  p.ignore_index = ignore_index;
  p.reduction = parse_reduction(op, reduction);
  const int n = sizes.size(), class_dim = n == 1 ? 0 : 1;
  if (TP_UNLIKELY(n == 0)) value_error(op.name, ": input needs a dimension of classes; it is []");
  p.target_sizes = sizes;
  p.target_sizes.erase(class_dim);
  if (TP_UNLIKELY(!(target.sizes() == p.target_sizes)))
    value_error(op.name, ": target must have sizes ", p.target_sizes, " for input ", sizes, "; it is ", target.sizes());
  if (TP_UNLIKELY(!is_integral(target.dtype()) || target.dtype() == Dtype::Bool))
    type_error(op.name, ": target must hold class indices of an integer dtype; it is ", dtype_name(target.dtype()));
  p.axis = axis_of(sizes, class_dim);
  if (TP_UNLIKELY(weight.defined() && (weight.dim() != 1 || weight.size(0) != p.axis.n)))
    value_error(op.name, ": weight must have sizes [", p.axis.n, "]; it is ", weight.sizes());
  p.target = contiguous(cast(target, Dtype::I64));
  if (weight.defined()) p.weight = contiguous(cast(weight, work));
  check_targets(op, p);
  return p;
}

/// What each sample's loss is multiplied by in the gradient: g, divided as the reduction did.
template <class T>
struct Slope {
  const T* each = nullptr;  // reduction none
  T all = 0;
  T at(int64_t i) const { return each ? each[i] : all; }
};
Storage staged_slope(const OpSchema& op, const Problem& p, const Storage& g, Dtype work) {
  const bool none = p.reduction == Reduction::None;
  if (TP_UNLIKELY(none ? !(g.sizes() == p.target_sizes) : g.numel() != 1))
    value_error(op.name, ": g has sizes ", g.sizes(), "; the loss has ", none ? p.target_sizes : Shape());
  return contiguous(cast(g, work));
}
template <class T>
Slope<T> slope(const Problem& p, const Storage& g, const Storage& total) {
  Slope<T> s;
  if (p.reduction == Reduction::None)
    s.each = g.data<T>();
  else
    s.all = p.reduction == Reduction::Mean ? *g.data<T>() / *total.data<T>() : *g.data<T>();
  return s;
}

// Pairwise, in double: one number comes out of very many.
template <class T>
double sum_of(const T* x, int64_t n) {
  if (n > 64) return sum_of(x, n / 2) + sum_of(x + n / 2, n - n / 2);
  double s = 0;
  for (int64_t i = 0; i < n; ++i) s += double(x[i]);
  return s;
}

/// From the losses of the samples (already weighted) to the result; total_weight is what "mean" divides by.
template <class T>
Storage reduced(const Problem& p, const Storage& losses, T total_weight, Dtype work) {
  if (p.reduction == Reduction::None) return losses;
  Storage out = empty({}, work);
  const double s = sum_of(losses.data<T>(), p.samples());
  *out.data<T>() = T(p.reduction == Reduction::Mean ? s / double(total_weight) : s);
  return out;
}

template <class T>
T total_weight(const Problem& p) {
  const int64_t *t = p.target.data<int64_t>(), n = p.samples();
  if (!p.weight.defined()) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += t[i] != p.ignore_index;
    return T(count);
  }
  const T* w = p.weight.data<T>();
  double total = 0;
  for (int64_t i = 0; i < n; ++i)
    if (t[i] != p.ignore_index) total += double(w[t[i]]);
  return T(total);
}

/// f(sample, where the sample's classes begin); they lie a.inner apart.
template <class F>
void each_sample(const Axis& a, F&& f) {
  for (int64_t o = 0, i = 0; o < a.outer; ++o)
    for (int64_t j = 0; j < a.inner; ++j, ++i) f(i, o * a.n * a.inner + j);
}

Storage scalar_storage(Dtype work, double v) {
  Storage s = empty({}, work);
  with_float(work, [&]<class T>(T) { *s.data<T>() = T(v); });
  return s;
}

void check_smoothing(const OpSchema& op, double s) {
  if (TP_UNLIKELY(!(s >= 0 && s <= 1))) value_error(op.name, ": label_smoothing must be between 0 and 1; it is ", s);
}

}  // namespace

std::array<Storage, 2> nll_loss(const OpSchema& op, const Storage& input, const Storage& target, const Storage& weight,
                                int64_t ignore_index, std::string_view reduction) {
  const Dtype result = real_float_dtype(op, input.dtype()), work = dtype_of(compute_type(result));
  const Problem p = make_problem(op, input.sizes(), target, weight, work, ignore_index, reduction);
  const Storage x = staged_float(input, result);
  Storage losses = empty(p.target_sizes, work), out, total;
  with_float(work, [&]<class T>(T) {
    const T *from = x.data<T>(), *w = p.weight.defined() ? p.weight.data<T>() : nullptr;
    const int64_t* t = p.target.data<int64_t>();
    T* to = losses.data<T>();
    const Axis a = p.axis;
    each_sample(a, [&](int64_t i, int64_t at) {
      to[i] = t[i] == ignore_index ? T(0) : -from[at + t[i] * a.inner] * (w ? w[t[i]] : T(1));
    });
    const T sum_w = total_weight<T>(p);
    total = scalar_storage(work, double(sum_w));
    out = reduced<T>(p, losses, sum_w, work);
  });
  return {in_dtype(out, result), total};
}

Storage nll_loss_backward(const OpSchema& op, const Storage& g, const Dims& sizes, const Storage& target,
                          const Storage& weight, const Storage& total_weight, int64_t ignore_index,
                          std::string_view reduction) {
  const Dtype result = real_float_dtype(op, g.dtype()), work = dtype_of(compute_type(result));
  const Problem p = make_problem(op, sizes, target, weight, work, ignore_index, reduction);
  const Storage sg = staged_slope(op, p, g, work), total = in_dtype(total_weight, work);
  Storage gx = zeros_storage(sizes, work);
  with_float(work, [&]<class T>(T) {
    const Slope<T> s = slope<T>(p, sg, total);
    const T* w = p.weight.defined() ? p.weight.data<T>() : nullptr;
    const int64_t* t = p.target.data<int64_t>();
    T* to = gx.data<T>();
    const Axis a = p.axis;
    each_sample(a, [&](int64_t i, int64_t at) {
      if (t[i] != ignore_index) to[at + t[i] * a.inner] = -s.at(i) * (w ? w[t[i]] : T(1));
    });
  });
  return in_dtype(gx, result);
}

std::array<Storage, 3> cross_entropy_index(const OpSchema& op, const Storage& input, const Storage& target,
                                           const Storage& weight, int64_t ignore_index, std::string_view reduction,
                                           double label_smoothing) {
  check_smoothing(op, label_smoothing);
  const Dtype result = real_float_dtype(op, input.dtype()), work = dtype_of(compute_type(result));
  const Problem p = make_problem(op, input.sizes(), target, weight, work, ignore_index, reduction);
  const Storage x = staged_float(input, result);
  Storage losses = empty(p.target_sizes, work), lse = empty(p.target_sizes, work), out, total;
  with_float(work, [&]<class T>(T) {
    const SoftmaxLoops<T>& l = softmax_loops<T>();
    const Axis a = p.axis;
    const T *from = x.data<T>(), *w = p.weight.defined() ? p.weight.data<T>() : nullptr;
    const int64_t* t = p.target.data<int64_t>();
    T *to = losses.data<T>(), *lses = lse.data<T>();
    const T smooth = T(label_smoothing), share = smooth / T(a.n);
    const T all_weights = w ? l.sum(a.n, w) : T(a.n);
    // loss = (1 - s) * w[t] * (lse - x[t]) + s / n * sum over classes of w[c] * (lse - x[c])
    const auto finish_one = [&](int64_t i, int64_t at, int64_t step) {
      if (t[i] == p.ignore_index) {
        to[i] = 0;
        return;
      }
      T v = (T(1) - smooth) * (w ? w[t[i]] : T(1)) * (lses[i] - from[at + t[i] * step]);
      if (smooth != 0) {
        T wx = 0;
        if (step == 1)
          wx = w ? l.dot(a.n, w, from + at) : l.sum(a.n, from + at);
        else
          for (int64_t c = 0; c < a.n; ++c) wx += (w ? w[c] : T(1)) * from[at + c * step];
        v += share * (all_weights * lses[i] - wx);
      }
      to[i] = v;
    };
    modes::Unlocked unlocked(x.numel() > 100000);
    if (a.inner == 1) {
      parallel_for(0, a.outer, grain_for(0.4 * double(a.n)), [&](int64_t b, int64_t e) {
        const bool turned = are_short(a);
        const Scratch<T> columns(turned ? a.n * kSoftmaxWidth : 0);
        for (int64_t i = b; turned && i < e; i += kSoftmaxWidth) {
          const int64_t width = std::min(kSoftmaxWidth, e - i);
          turn(width, a.n, from + i * a.n, a.n, 1, columns.get(), 1, kSoftmaxWidth);
          l.logsumexp_columns(width, a.n, kSoftmaxWidth, columns.get(), lses + i);
        }
        for (int64_t i = b; i < e; ++i) {
          if (!turned) l.logsumexp(1, a.n, from + i * a.n, lses + i);
          finish_one(i, i * a.n, 1);
        }
      });
    } else {
      const int64_t blocks = (a.inner + kSoftmaxWidth - 1) / kSoftmaxWidth;
      parallel_tiles(a.outer * blocks, grain_for(0.4 * double(a.n) * kSoftmaxWidth), [&](int64_t b, int64_t e) {
        for (int64_t q = b; q < e; ++q) {
          const int64_t o = q / blocks, j0 = q % blocks * kSoftmaxWidth;
          const int64_t width = std::min<int64_t>(kSoftmaxWidth, a.inner - j0), base = o * a.n * a.inner + j0;
          const int64_t first = o * a.inner + j0;
          l.logsumexp_columns(width, a.n, a.inner, from + base, lses + first);
          for (int64_t j = 0; j < width; ++j) finish_one(first + j, base + j, a.inner);
        }
      });
    }
  });
  with_float(work, [&]<class T>(T) {
    const T sum_w = total_weight<T>(p);
    total = scalar_storage(work, double(sum_w));
    out = reduced<T>(p, losses, sum_w, work);
  });
  return {in_dtype(out, result), lse, total};
}

Storage cross_entropy_index_backward(const OpSchema& op, const Storage& g, const Storage& input, const Storage& target,
                                     const Storage& weight, const Storage& logsumexp, const Storage& total_weight,
                                     int64_t ignore_index, std::string_view reduction, double label_smoothing) {
  check_smoothing(op, label_smoothing);
  const Dtype result = real_float_dtype(op, input.dtype()), work = dtype_of(compute_type(result));
  const Problem p = make_problem(op, input.sizes(), target, weight, work, ignore_index, reduction);
  if (TP_UNLIKELY(!(logsumexp.sizes() == p.target_sizes)))
    value_error(op.name, ": logsumexp must have sizes ", p.target_sizes, "; it is ", logsumexp.sizes());
  const Storage x = staged_float(input, result), lse = contiguous(cast(logsumexp, work));
  const Storage sg = staged_slope(op, p, g, work), total = in_dtype(total_weight, work);
  Storage gx = empty(input.sizes(), work);
  with_float(work, [&]<class T>(T) {
    const SoftmaxLoops<T>& l = softmax_loops<T>();
    const Axis a = p.axis;
    const Slope<T> s = slope<T>(p, sg, total);
    const T *from = x.data<T>(), *w = p.weight.defined() ? p.weight.data<T>() : nullptr, *lses = lse.data<T>();
    const int64_t* t = p.target.data<int64_t>();
    T* to = gx.data<T>();
    const T smooth = T(label_smoothing), share = smooth / T(a.n);
    const T all_weights = w ? l.sum(a.n, w) : T(a.n);
    // gx[c] = g * ((1 - s) * w[t] * (p[c] - [c == t]) + s / n * (sum(w) * p[c] - w[c])), p = exp(x - lse)
    struct One {
      T scale, shift, hit;
    };
    const auto one = [&](int64_t i) -> One {
      if (t[i] == p.ignore_index) return {0, 0, 0};
      const T f = s.at(i), hit = f * (T(1) - smooth) * (w ? w[t[i]] : T(1));
      return {hit + f * share * all_weights, f * share, hit};
    };
    modes::Unlocked unlocked(x.numel() > 100000);
    if (a.inner == 1) {
      parallel_for(0, a.outer, grain_for(0.5 * double(a.n)), [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          T* row = to + i * a.n;
          if (t[i] == p.ignore_index) {
            std::fill_n(row, a.n, T(0));
            continue;
          }
          const One v = one(i);
          l.scaled_softmax(a.n, from + i * a.n, lses[i], v.scale, v.shift, smooth != 0 ? w : nullptr, row);
          row[t[i]] -= v.hit;
        }
      });
    } else {
      parallel_tiles(a.outer, grain_for(1.0 * double(a.n * a.inner)), [&](int64_t b, int64_t e) {
        Scratch<T> scales(a.inner), shifts(a.inner);
        for (int64_t o = b; o < e; ++o) {
          for (int64_t j = 0; j < a.inner; ++j) {
            const One v = one(o * a.inner + j);
            scales[j] = v.scale;
            shifts[j] = v.shift;
          }
          l.scaled_softmax_columns(a.inner, a.n, from + o * a.n * a.inner, lses + o * a.inner, scales.get(),
                                   shifts.get(), w, to + o * a.n * a.inner);
          for (int64_t j = 0; j < a.inner; ++j) {
            const int64_t i = o * a.inner + j;
            if (t[i] != p.ignore_index) to[(o * a.n + t[i]) * a.inner + j] -= one(i).hit;
          }
        }
      });
    }
  });
  return in_dtype(gx, result);
}

}  // namespace tp::kernels
