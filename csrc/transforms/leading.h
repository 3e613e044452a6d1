// Operands of structured ops: batch dimensions in front of all of them, dimension and size arguments moved behind those.
// Generated rules are made of this. Knows no op but views.
#pragma once
#include "transforms/loop.h"

namespace tp::batch {

class TP_API Leading : public Operands {
 public:
  /// Each operand expanded to the levels of all; `reference` (the first by default) is whose dimensions arguments count.
  Leading(const OpSchema& op, std::initializer_list<Samples::Item> operands);

  const OpSchema& op() const { return op_; }
  /// Dimensions of one sample of the first operand.
  int rank() const { return rank_; }
  /// The items of a list operand.
  std::span<const TensorRef> list(std::size_t from, std::size_t n) const { return {&at_[from], n}; }

  /// A 0-d sample has dimensions 0 and -1 for reductions and their kin: it becomes a vector of one element, and so the
  /// result loses its last dimension.
  void lift_scalars();
  /// Raises where the first operand has fewer dimensions than the op works on: with the batch it would seem to have enough.
  void need_rank(int rank, const char* what) const;

  // Arguments. `rank`: dimensions of what they count in one sample.
  std::int64_t dim(std::int64_t d) const { return dim(d, rank_); }
  std::int64_t dim(std::int64_t d, int rank) const { return normal(d, rank) + batch_; }
  /// A dimension that the result has and the operand has not.
  std::int64_t new_dim(std::int64_t d) const { return dim(d, rank_ + 1); }
  Dims dims(const Dims& d) const;
  /// Empty or absent means all dimensions of a sample.
  Dims all_dims(const Dims& d) const;
  Dims all_dims(const std::optional<Dims>& d) const { return all_dims(d.value_or(Dims())); }
  /// Absent means all of them flattened into one.
  std::optional<std::int64_t> flat_dim(std::optional<std::int64_t> d);
  /// The dimensions of size 1 where none are named.
  Dims squeezed(const std::optional<Dims>& d) const;
  Dims permutation(const Dims& d) const;
  /// Sizes of a result: the batch in front.
  Dims sizes(const Dims& s) const;
  /// The same where -1 stands for what is left of one sample.
  Dims shape(const Dims& s) const;
  /// Sizes to expand to; the first operand gets the leading dimensions it lacks.
  Dims expanded(const Dims& s);
  Dims repeats(const Dims& r);
  /// Dimensions to shift along; none: the sample is flattened, and the result gets its sizes back.
  Dims rolled(const Dims& d);
  /// Sizes to sum to; the result then has the dimensions of the first operand.
  Dims summed(const Dims& s);

  template <class R>
  auto wrap(R&& result) const {
    return Operands::wrap(finish(std::forward<R>(result)));
  }

 private:
  int normal(std::int64_t d, int rank) const;
  void pad_rank(int rank);
  TensorRef finish(TensorRef r) const;
  std::vector<TensorRef> finish(std::vector<TensorRef> rs) const {
    for (TensorRef& r : rs) r = finish(std::move(r));
    return rs;
  }
  template <std::size_t N>
  std::array<TensorRef, N> finish(std::array<TensorRef, N> rs) const {
    for (TensorRef& r : rs) r = finish(std::move(r));
    return rs;
  }

  const OpSchema& op_;
  int rank_ = 0;
  int batch_ = 0;
  bool lifted_ = false;
  bool flat_ = false;
  std::optional<Dims> result_;  // sizes of one sample that the result is brought to
};

/// Ops on [N, ...] of `rank` dimensions, N optional: the batch and N become one dimension.
class TP_API Fold : public Operands {
 public:
  Fold(const OpSchema& op, std::initializer_list<Samples::Item> operands, int rank);
  Dims sizes(const Dims& s) const;
  TensorRef wrap(TensorRef r) const;
  template <std::size_t N>
  std::array<TensorRef, N> wrap(std::array<TensorRef, N> rs) const {
    for (TensorRef& r : rs) r = wrap(std::move(r));
    return rs;
  }

 private:
  Dims lead_;  // the dimensions that became one
  int rank_;
};

}  // namespace tp::batch
