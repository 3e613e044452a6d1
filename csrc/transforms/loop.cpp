// Taking samples apart and putting results together.
#include "transforms/loop.h"

#include <string>
#include <unordered_set>

#include "core/errors.h"
#include "ops/formula.h"

namespace tp {
namespace ops {

TensorRef select(const TensorRef& input, std::int64_t dim, std::int64_t index);
TensorRef stack(std::span<const TensorRef> tensors, std::int64_t dim);

}  // namespace ops

namespace batch {

bool warn_of_loops = true;

namespace {
thread_local std::string_view looping;  // for messages: a loop inside a loop is over the same op
}

void warn_loop(const OpSchema& op) {
  static std::unordered_set<std::string> told;  // guarded by the host's lock
  if (!warn_of_loops || !told.emplace(op.name).second) return;
  modes::warn(
      (std::string(op.name) + ": has no batching rule for these operands, so vmap runs it once per sample").c_str());
}

Samples::Samples(const OpSchema& op, std::initializer_list<Item> operands, bool inplace) {
  Levels levels = 0;
  const auto look = [&](const TensorRef& t) {
    if (t) levels |= levels_of(t);
    all_.push_back(t);
  };
  for (const Item& item : operands) {
    if (item.one) look(*item.one);
    for (const TensorRef& t : item.list) look(t);
  }
  warn_loop(op);
  looping = op.name;
  level_ = std::bit_width(levels);
  size_ = batch::level(level_).size;
  const Levels bit = Levels(1) << (level_ - 1);
  if (inplace && !(levels_of(all_[0]) & bit)) refuse_inplace(op);
  now_ = all_;
  for (TensorRef& t : all_) {
    mapped_.push_back(t && (levels_of(t) & bit));
    if (mapped_.back()) t = peel(t, bit);
  }
}

void Samples::go(std::int64_t i) {
  for (std::size_t k = 0; k < all_.size(); ++k) {
    if (!mapped_[k]) continue;
    if (size_) {
      now_[k] = ops::select(all_[k], 0, i);
    } else {
      Shape sizes = all_[k]->sizes();
      sizes.erase(0);
      now_[k] = ops::zeros<TensorRef>(sizes, all_[k]->dtype());
    }
  }
}

TensorRef Samples::stacked(std::span<const TensorRef> results) const {
  if (!results[0]) return TensorRef();
  for (const TensorRef& r : results)
    if (!(r->sizes() == results[0]->sizes()))
      runtime_error(looping, ": vmap: the results of two samples have sizes ", results[0]->sizes(), " and ", r->sizes(),
                    "; what depends on values (a mask, nonzero) can't be mapped: use tensorplay.where, or pad");
  const Levels bit = Levels(1) << (level_ - 1);
  if (size_) return cover(ops::stack(results, 0), bit);
  Shape one = results[0]->sizes();
  one.insert(0, 1);
  Shape none = one;
  none[0] = 0;
  return cover(ops::expand(ops::reshape(results[0], one), none), bit);
}

namespace {

std::size_t width(const TensorRef&) { return 1; }
std::size_t width(const std::vector<TensorRef>& v) { return v.size(); }
template <std::size_t N>
std::size_t width(const std::array<TensorRef, N>&) {
  return N;
}
TensorRef& item(TensorRef& t, std::size_t) { return t; }
TensorRef& item(std::vector<TensorRef>& v, std::size_t i) { return v[i]; }
template <std::size_t N>
TensorRef& item(std::array<TensorRef, N>& a, std::size_t i) {
  return a[i];
}

}  // namespace

template <class Result>
Result loop_of(Samples& samples, FunctionRef<Result(const Samples&)> f) {
  std::vector<Result> results;
  const std::int64_t n = samples.size();
  for (std::int64_t i = 0; i < (n ? n : 1); ++i) {
    samples.go(i);
    results.push_back(f(samples));
  }
  Result whole = results[0];
  std::vector<TensorRef> one(results.size());
  for (std::size_t k = 0; k < width(whole); ++k) {
    for (std::size_t i = 0; i < results.size(); ++i) one[i] = item(results[i], k);
    item(whole, k) = samples.stacked(one);
  }
  return whole;
}

#define TP_LOOP_OF(...) template TP_API __VA_ARGS__ loop_of(Samples&, FunctionRef<__VA_ARGS__(const Samples&)>);
TP_LOOP_OF(TensorRef)
TP_LOOP_OF(std::vector<TensorRef>)
TP_LOOP_OF(std::array<TensorRef, 2>)
TP_LOOP_OF(std::array<TensorRef, 3>)
TP_LOOP_OF(std::array<TensorRef, 4>)
TP_LOOP_OF(std::array<TensorRef, 5>)
#undef TP_LOOP_OF

}  // namespace batch
}  // namespace tp
