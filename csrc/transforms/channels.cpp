// Named rules of convolutions and normalisations: where the batch joins the channels.
#include "core/errors.h"
#include "ops/formula.h"
#include "transforms/ops_used.h"
#include "transforms/rules.h"

namespace tp::batch::rules {

Channels::Channels(std::initializer_list<const TensorRef*> operands) {
  for (const TensorRef* t : operands)
    if (*t) levels_ |= levels_of(*t);
  size_ = product(sizes_of(levels_));
}

TensorRef Channels::image(const TensorRef& t, int rank) const {
  const int batch_dims = count(levels_);
  TensorRef p = physical_at(t, levels_);
  Shape sizes;
  if (t->dim() == rank) {
    // [batch..., N, C, ...] -> [N, batch..., C, ...]
    p = ops::movedim(p, {batch_dims}, {0});
    sizes.push_back(p->sizes()[0]);
  }
  const int channel = batch_dims + (t->dim() == rank);
  sizes.push_back(size_ * p->sizes()[channel]);
  for (int i = channel + 1; i < p->dim(); ++i) sizes.push_back(p->sizes()[i]);
  return ops::reshape(p, sizes);
}

TensorRef Channels::weight(const TensorRef& t) const {
  const int batch_dims = count(levels_);
  const TensorRef p = physical_at(t, levels_);
  Shape sizes{size_ * p->sizes()[batch_dims]};
  for (int i = batch_dims + 1; i < p->dim(); ++i) sizes.push_back(p->sizes()[i]);
  return ops::reshape(p, sizes);
}

TensorRef Channels::wrap_image(const TensorRef& t, bool has_n) const {
  const int channel = has_n;
  Shape sizes;
  if (has_n) sizes.push_back(t->sizes()[0]);
  for (std::int64_t n : sizes_of(levels_)) sizes.push_back(n);
  sizes.push_back(size_ ? t->sizes()[channel] / size_ : 0);
  for (int i = channel + 1; i < t->dim(); ++i) sizes.push_back(t->sizes()[i]);
  TensorRef p = ops::reshape(t, sizes);
  return wrap(has_n ? ops::movedim(p, {0}, {count(levels_)}) : p, levels_);
}

TensorRef Channels::wrap_weight(const TensorRef& t) const {
  Shape sizes = sizes_of(levels_);
  sizes.push_back(size_ ? t->sizes()[0] / size_ : 0);
  for (int i = 1; i < t->dim(); ++i) sizes.push_back(t->sizes()[i]);
  return wrap(ops::reshape(t, sizes), levels_);
}

Dims Channels::image_sizes(const Dims& s, int rank) const {
  Dims out = s;
  out[s.size() == rank] *= size_;
  return out;
}
Dims Channels::weight_sizes(const Dims& s) const {
  Dims out = s;
  out[0] *= size_;
  return out;
}

TensorRef run_conv(const TensorRef& input, const TensorRef& weight, const TensorRef& bias, const Dims& stride,
                   const Dims& padding, const Dims& dilation, std::int64_t groups) {
  return ops::convolution(input, weight, bias, stride, padding, dilation, groups);
}
TensorRef run_conv(const TensorRef& input, const TensorRef& weight, const TensorRef& bias, const Dims& stride,
                   std::string_view padding, const Dims& dilation, std::int64_t groups) {
  return ops::convolution_mode(input, weight, bias, stride, padding, dilation, groups);
}
TensorRef run_conv_input(const TensorRef& grad, const TensorRef& weight, const Dims& size, const Dims& stride,
                         const Dims& padding, const Dims& dilation, std::int64_t groups) {
  return ops::convolution_input_backward(grad, weight, size, stride, padding, dilation, groups);
}
TensorRef run_conv_input(const TensorRef& grad, const TensorRef& weight, const Dims& size, const Dims& stride,
                         std::string_view padding, const Dims& dilation, std::int64_t groups) {
  return ops::convolution_mode_input_backward(grad, weight, size, stride, padding, dilation, groups);
}
TensorRef run_conv_weight(const TensorRef& grad, const TensorRef& input, const Dims& size, const Dims& stride,
                          const Dims& padding, const Dims& dilation, std::int64_t groups) {
  return ops::convolution_weight_backward(grad, input, size, stride, padding, dilation, groups);
}
TensorRef run_conv_weight(const TensorRef& grad, const TensorRef& input, const Dims& size, const Dims& stride,
                          std::string_view padding, const Dims& dilation, std::int64_t groups) {
  return ops::convolution_mode_weight_backward(grad, input, size, stride, padding, dilation, groups);
}

TensorRef weighted(const TensorRef& x, const TensorRef& weight, const TensorRef& bias, int channel) {
  const auto shaped = [&](const TensorRef& w) {
    if (channel < 0) return w;
    Shape sizes = w->sizes();
    for (int i = channel + 1; i < x->dim(); ++i) sizes.push_back(1);
    return ops::reshape(w, sizes);
  };
  TensorRef out = x;
  if (weight) out = ops::mul(out, shaped(weight));
  return bias ? ops::add(out, shaped(bias), Scalar(1)) : out;
}

std::array<TensorRef, 3> batch_normed(const OpSchema& op, const TensorRef& input, const TensorRef& weight,
                                      const TensorRef& bias, const TensorRef& mean, const TensorRef& var, bool training,
                                      double momentum, double eps) {
  const Channels in({&input});
  const Levels levels = levels_of(input);
  if (!levels) {
    std::array<TensorRef, 3> r =
        ops::native_batch_norm(input, TensorRef(), TensorRef(), mean, var, training, momentum, eps);
    r[0] = weighted(r[0], weight, bias, 1);
    return r;
  }
  const auto statistic = [&](const TensorRef& t) -> TensorRef {
    if (!t) return t;
    if (levels_of(t) != levels)
      runtime_error(
          op.name,
          ": Batch norm got a batched tensor as input while the running_mean or running_var, which will be "
          "updated in place, were not batched. Call it in evaluation mode, without running statistics, or with a copy "
          "of them for each sample");
    return in.weight(t);
  };
  std::array<TensorRef, 3> r = ops::native_batch_norm(in.image(input, input->dim()), TensorRef(), TensorRef(),
                                                      statistic(mean), statistic(var), training, momentum, eps);
  r[0] = weighted(in.wrap_image(r[0], true), weight, bias, 1);
  r[1] = in.wrap_weight(r[1]);
  r[2] = in.wrap_weight(r[2]);
  return r;
}

// ---- losses ----------------------------------------------------------------------------------------------------------
std::array<TensorRef, 3> index_loss(const OpSchema&, const TensorRef& input, const TensorRef& target,
                                    const TensorRef& weight, std::int64_t ignore, std::string_view reduction,
                                    std::optional<double> smoothing) {
  const Levels levels = levels_of(input) | levels_of(target);
  const Dims batch = sizes_of(levels);
  const bool has_n = input->dim() > 1;  // one sample is [C], or [N, C, ...]
  const auto rows = [&](const TensorRef& t) {
    const TensorRef p = physical_at(t, levels);
    Shape sizes{product(batch) * (has_n ? t->sizes()[0] : 1)};
    for (int i = batch.size() + has_n; i < p->dim(); ++i) sizes.push_back(p->sizes()[i]);
    return ops::reshape(p, sizes);
  };
  const auto samples = [&](const TensorRef& t) {
    Shape sizes = batch;
    if (has_n) sizes.push_back(input->sizes()[0]);
    for (int i = 1; i < t->dim(); ++i) sizes.push_back(t->sizes()[i]);
    return wrap(ops::reshape(t, sizes), levels);
  };
  TensorRef loss, logsumexp;
  if (smoothing) {
    std::array<TensorRef, 3> r =
        ops::cross_entropy_index(rows(input), rows(target), weight, ignore, "none", *smoothing);
    loss = samples(r[0]);
    logsumexp = samples(r[1]);
  } else {
    loss = samples(ops::nll_loss_forward(rows(input), rows(target), weight, ignore, "none")[0]);
  }
  // What the mean divides by: the weights of the classes that count.
  const TensorRef counts = ops::ne(target, ops::number<TensorRef>(Scalar(ignore)));
  TensorRef weights = ops::cast(counts, loss->dtype());
  if (weight) {
    const TensorRef safe = ops::where(counts, target, ops::number<TensorRef>(Scalar(std::int64_t(0))));
    weights = ops::mul(weights, ops::index(weight, std::span<const TensorRef>(&safe, 1)));
  }
  const TensorRef total = ops::sum(weights, Dims(), false, std::nullopt);
  if (reduction == "sum" || reduction == "mean") loss = ops::sum(loss, Dims(), false, std::nullopt);
  if (reduction == "mean") loss = ops::div(loss, total);
  return {loss, logsumexp, total};
}

}  // namespace tp::batch::rules
