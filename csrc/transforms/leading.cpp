// How dimension and size arguments of one sample become those of the physical tensors.
#include "transforms/leading.h"

#include "core/errors.h"
#include "kernels/shape_args.h"
#include "ops/formula.h"

namespace tp::batch {

Leading::Leading(const OpSchema& op, std::initializer_list<Samples::Item> operands) : op_(op) {
  bool first = true;
  const auto each = [&](auto&& f) {
    for (const Samples::Item& item : operands) {
      if (item.one) f(*item.one);
      for (const TensorRef& t : item.list) f(t);
    }
  };
  each([&](const TensorRef& t) {
    if (!t) return;
    levels_ |= levels_of(t);
    if (first) rank_ = t->dim();
    first = false;
  });
  batch_ = count(levels_);
  each([&](const TensorRef& t) { at_.push_back(t ? physical_at(t, levels_) : TensorRef()); });
}

void Leading::lift_scalars() {
  if (rank_) return;
  lifted_ = true;
  for (TensorRef& t : at_)
    if (t && t->dim() == batch_) {
      Shape sizes = t->sizes();
      sizes.push_back(1);
      t = ops::reshape(t, sizes);
    }
}

void Leading::need_rank(int rank, const char* what) const {
  if (rank_ < rank) value_error(op_.name, ": ", what, " needs at least ", rank, " dimensions; one sample has ", rank_);
}

int Leading::normal(std::int64_t d, int rank) const {
  if (rank == 0 && !lifted_) index_error(op_.name, ": dimension ", d, " of a tensor whose samples are 0-d");
  return ops::normal_dim(op_.name, d, rank);
}

Dims Leading::dims(const Dims& d) const {
  Dims out;
  for (std::int64_t v : d) out.push_back(dim(v));
  return out;
}

Dims Leading::all_dims(const Dims& d) const {
  if (!d.empty()) return dims(d);
  Dims out;
  for (int i = 0; i < std::max(rank_, int(lifted_)); ++i) out.push_back(batch_ + i);
  return out;
}

std::optional<std::int64_t> Leading::flat_dim(std::optional<std::int64_t> d) {
  if (d) return dim(*d);
  Shape sizes = sizes_of(levels_);
  std::int64_t n = 1;
  for (int i = batch_; i < at_[0]->dim(); ++i) n *= at_[0]->sizes()[i];
  sizes.push_back(n);
  if (!(at_[0]->sizes() == sizes)) at_[0] = ops::reshape(at_[0], sizes);
  flat_ = true;
  return batch_;
}

Dims Leading::squeezed(const std::optional<Dims>& d) const {
  Dims out;
  if (d) {
    for (std::int64_t v : *d)
      if (const int i = ops::normal_dim(op_.name, v, rank_); rank_) out.push_back(batch_ + i);
    return out;
  }
  for (int i = 0; i < rank_; ++i)
    if (at_[0]->sizes()[batch_ + i] == 1) out.push_back(batch_ + i);
  return out;
}

Dims Leading::permutation(const Dims& d) const {
  if (d.size() != rank_)
    runtime_error(op_.name,
                  ": number of dimensions in the tensor input does not match the length of the desired "
                  "ordering of dimensions i.e. input.dim() = ",
                  rank_, " is not equal to len(dims) = ", d.size());
  Dims out;
  for (int i = 0; i < batch_; ++i) out.push_back(i);
  for (std::int64_t v : d) out.push_back(batch_ + ops::normal_dim(op_.name, v, rank_));
  return out;
}

Dims Leading::sizes(const Dims& s) const {
  Dims out = sizes_of(levels_);
  for (std::int64_t n : s) out.push_back(n);
  return out;
}

Dims Leading::shape(const Dims& s) const {
  std::int64_t n = 1;
  for (int i = batch_; i < at_[0]->dim(); ++i) n *= at_[0]->sizes()[i];
  return sizes(kernels::infer_shape(op_.name, s, n));
}

void Leading::pad_rank(int rank) {
  if (rank <= rank_) return;
  Shape sizes = sizes_of(levels_);
  for (int i = rank_; i < rank; ++i) sizes.push_back(1);
  for (int i = 0; i < rank_; ++i) sizes.push_back(at_[0]->sizes()[batch_ + i]);
  at_[0] = ops::reshape(at_[0], sizes);
}

Dims Leading::expanded(const Dims& s) {
  if (s.size() < rank_)
    runtime_error(op_.name, ": the number of sizes provided (", s.size(),
                  ") must be greater or equal to the number of "
                  "dimensions in the tensor (",
                  rank_, ")");
  for (int i = 0; i < s.size() - rank_; ++i)
    if (s[i] == -1)
      runtime_error(op_.name,
                    ": the expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ", i);
  pad_rank(s.size());
  return sizes(s);
}

Dims Leading::repeats(const Dims& r) {
  if (r.size() < rank_)
    runtime_error(op_.name, ": the number of repeats (", r.size(), ") can't be smaller than the number of dimensions (",
                  rank_, ")");
  pad_rank(r.size());
  Dims out(batch_, 1);
  for (std::int64_t n : r) out.push_back(n);
  return out;
}

Dims Leading::rolled(const Dims& d) {
  if (!d.empty()) return dims(d);
  Dims sample;
  for (int i = 0; i < rank_; ++i) sample.push_back(at_[0]->sizes()[batch_ + i]);
  result_ = sample;
  Dims sizes = sizes_of(levels_);
  sizes.push_back(product(sample));
  at_[0] = ops::reshape(at_[0], sizes);
  return {batch_};
}

Dims Leading::summed(const Dims& s) {
  Dims target = sizes_of(levels_);
  const int rank = std::max(rank_, int(lifted_));
  for (int i = s.size(); i < rank; ++i) target.push_back(1);
  for (std::int64_t n : s) target.push_back(n);
  if (rank > s.size()) result_ = s;
  return target;
}

TensorRef Leading::finish(TensorRef r) const {
  if (TP_LIKELY(!lifted_ && !flat_ && !result_) || !r) return r;
  Shape sizes = sizes_of(levels_);
  if (result_) {
    for (std::int64_t n : *result_) sizes.push_back(n);
  } else if (r->dim() == batch_) {
    return r;
  } else if (flat_) {
    for (int i = 0; i < rank_; ++i) sizes.push_back(1);  // keepdim
  }
  return ops::reshape(r, sizes);
}

Fold::Fold(const OpSchema& op, std::initializer_list<Samples::Item> operands, int rank) : rank_(rank) {
  for (const Samples::Item& item : operands)
    if (*item.one) levels_ |= levels_of(*item.one);
  const TensorRef& first = *operands.begin()->one;
  if (first->dim() != rank && first->dim() != rank - 1)
    value_error(op.name, ": input must have ", rank, " dimensions, or ", rank - 1, " without a batch; one sample is ",
                first->sizes());
  lead_ = sizes_of(levels_);
  if (first->dim() == rank) lead_.push_back(first->sizes()[0]);
  for (const Samples::Item& item : operands) {
    TensorRef t = *item.one;
    if (t) {
      t = physical_at(t, levels_);
      t = ops::reshape(t, sizes(t->sizes()));
    }
    at_.push_back(std::move(t));
  }
}

Dims Fold::sizes(const Dims& s) const {
  Dims out{product(lead_)};
  for (int i = std::max(0, s.size() - rank_ + 1); i < s.size(); ++i) out.push_back(s[i]);
  return out;
}

TensorRef Fold::wrap(TensorRef r) const {
  if (!r) return r;
  Dims sizes = lead_;
  for (int i = 1; i < r->dim(); ++i) sizes.push_back(r->sizes()[i]);
  return batch::wrap(ops::reshape(r, sizes), levels_);
}

}  // namespace tp::batch
