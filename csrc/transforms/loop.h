// The rule of ops that have none: once per sample, results stacked. Correct for everything, and told to the user once an op.
#pragma once
#include <functional>

#include "transforms/operands.h"

namespace tp::batch {

/// The samples of one level: the innermost that an operand has. Operands of other levels stay batched at those.
class TP_API Samples {
 public:
  struct Item {
    Item(const TensorRef& t) : one(&t) {}
    Item(std::span<const TensorRef> ts) : list(ts) {}
    Item(const std::vector<TensorRef>& ts) : list(ts) {}
    const TensorRef* one = nullptr;
    std::span<const TensorRef> list;
  };
  Samples(const OpSchema& op, std::initializer_list<Item> operands, bool inplace = false);

  std::int64_t size() const { return size_; }
  /// Moves on to sample `i`; of an empty batch, to one made of zeros.
  void go(std::int64_t i);
  /// Tensor operand `k`, counted over all operands and the items of lists.
  const TensorRef& operator[](std::size_t k) const { return now_[k]; }
  std::span<const TensorRef> list(std::size_t from, std::size_t n) const { return {now_.data() + from, n}; }

  /// One result of all samples; null where the op gave none.
  TensorRef stacked(std::span<const TensorRef> results) const;

 private:
  int level_ = 0;
  std::int64_t size_ = 0;
  std::vector<TensorRef> all_;  // the level's dimension leads
  std::vector<bool> mapped_;
  std::vector<TensorRef> now_;
};

namespace detail {
inline std::size_t width(const TensorRef&) { return 1; }
inline std::size_t width(const std::vector<TensorRef>& v) { return v.size(); }
template <std::size_t N>
std::size_t width(const std::array<TensorRef, N>&) {
  return N;
}
inline TensorRef& item(TensorRef& t, std::size_t) { return t; }
inline TensorRef& item(std::vector<TensorRef>& v, std::size_t i) { return v[i]; }
template <std::size_t N>
TensorRef& item(std::array<TensorRef, N>& a, std::size_t i) {
  return a[i];
}
}  // namespace detail

/// f(samples) for each sample; a TensorRef, an array or a vector of them.
template <class F>
auto loop(Samples samples, F&& f) {
  using Result = std::decay_t<decltype(f(samples))>;
  std::vector<Result> results;
  const std::int64_t n = samples.size();
  for (std::int64_t i = 0; i < (n ? n : 1); ++i) {
    samples.go(i);
    results.push_back(f(samples));
  }
  Result whole = results[0];
  std::vector<TensorRef> one(results.size());
  for (std::size_t k = 0; k < detail::width(whole); ++k) {
    for (std::size_t i = 0; i < results.size(); ++i) one[i] = detail::item(results[i], k);
    detail::item(whole, k) = samples.stacked(one);
  }
  return whole;
}

/// Told of an op that is about to run once per sample. Set by the host; null: nobody listens.
TP_API void warn_loop(const OpSchema& op);
/// Whether warn_loop warns (it does so once an op).
extern TP_API bool warn_of_loops;

}  // namespace tp::batch
