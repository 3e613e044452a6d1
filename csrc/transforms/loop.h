// The rule of ops that have none: once per sample, results stacked. Correct for everything, and told to the user once an op.
#pragma once
#include "core/function_ref.h"
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

/// f(samples) for each sample; `Result` is a TensorRef, an array or a vector of them.
template <class Result>
Result loop_of(Samples& samples, FunctionRef<Result(const Samples&)> f);

template <class F>
auto loop(Samples samples, F&& f) {
  using Result = std::decay_t<decltype(f(samples))>;
  return loop_of<Result>(samples, f);
}

/// Told of an op that is about to run once per sample. Set by the host; null: nobody listens.
TP_API void warn_loop(const OpSchema& op);
/// Whether warn_loop warns (it does so once an op).
extern TP_API bool warn_of_loops;

}  // namespace tp::batch
