// How operands are aligned: which get dimensions of size 1, which are expanded, which are cast.
#include "transforms/operands.h"

#include "core/errors.h"
#include "ops/formula.h"
#include "ops/wiring.h"
#include "transforms/basis.h"

namespace tp {
namespace ops {

TensorRef cast(const TensorRef& input, Dtype dtype);
TensorRef clone(const TensorRef& input);
TensorRef copy_(const TensorRef& input, const TensorRef& src);

}  // namespace ops

namespace batch {
namespace {

/// `t` with a dimension for each of `levels` (1 where it has none) and its logical ones brought to `rank`.
TensorRef aligned(const TensorRef& t, Levels levels, int rank) {
  const Levels own = levels_of(t);
  if (TP_UNLIKELY(tangents_vary(t, levels & ~own))) return aligned(wrap(physical_at(t, levels), levels), levels, rank);
  if (!own) return t;  // broadcasting aligns at the right
  const TensorRef& p = physical(t);
  const int batch_dims = count(own);
  if (TP_LIKELY(own == levels && t->dim() == rank)) return p;
  Shape sizes;
  for (int l = 0, k = 0; levels >> l; ++l)
    if (levels >> l & 1) sizes.push_back(own >> l & 1 ? p->sizes()[k++] : 1);
  for (int i = t->dim(); i < rank; ++i) sizes.push_back(1);
  for (int i = 0; i < t->dim(); ++i) sizes.push_back(p->sizes()[batch_dims + i]);
  // Broadcasting puts back the levels further out than all of its own: whoever has the outermost brings every dimension. Its
  // own stay, of length 1 too, since it may be the only one to have them.
  const int ones = count(levels & ((own & (~own + 1)) - 1));
  if (sizes.size() - ones == p->dim()) {
    bool same = true;
    for (int i = 0; i < p->dim(); ++i) same &= sizes[ones + i] == p->sizes()[i];
    if (same) return p;
  }
  return ops::reshape(p, sizes);
}

}  // namespace

Broadcast::Broadcast(std::initializer_list<const TensorRef*> operands, std::uint32_t masks) {
  bring({operands.begin(), operands.size()}, masks);
}

void Broadcast::bring(std::span<const TensorRef* const> operands, std::uint32_t masks) {
  int rank = 0;
  std::optional<Dtype> first;
  bool mixed = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const TensorRef& t = *operands[i];
    if (!t) continue;
    levels_ |= levels_of(t);
    rank = std::max(rank, t->dim());
    if (masks >> i & 1) continue;
    mixed |= first && *first != t->dtype();
    if (!first) first = t->dtype();
  }
  for (const TensorRef* t : operands) at_.push_back(*t ? aligned(*t, levels_, rank) : TensorRef());
  if (TP_LIKELY(!mixed)) return;
  // A 0-d sample yields in promotion; the vector of samples would not.
  Promotion of_samples, of_batches;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const TensorRef& t = *operands[i];
    if (!t || masks >> i & 1) continue;
    const bool number = !t->is_batched() && t->storage().wrapped_number();
    of_samples.add(t->dtype(), t->dim() == 0, number);
    of_batches.add(t->dtype(), at_[i]->dim() == 0, number);
  }
  const Dtype wanted = of_samples.result();
  if (wanted == of_batches.result()) return;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (at_[i] && !(masks >> i & 1) && !at_[i]->storage().wrapped_number() && at_[i]->dtype() != wanted)
      at_[i] = ops::cast(at_[i], wanted);
}

void refuse_inplace(const OpSchema& op) {
  runtime_error(
      op.name,
      "_: vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
      "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` not "
      "being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic: `",
      op.name, "` instead of `", op.name, "_`.");
}

void check_target(const OpSchema& op, const TensorRef& target, std::span<const TensorRef* const> operands) {
  const Levels own = levels_of(target);
  for (const TensorRef* t : operands)
    if (*t && (levels_of(*t) & ~own)) refuse_inplace(op);
}

InPlace::InPlace(const OpSchema& op, std::initializer_list<const TensorRef*> operands, std::uint32_t masks) {
  const std::span<const TensorRef* const> all(operands.begin(), operands.size());
  check_target(op, *all[0], all);
  for (const TensorRef* t : operands)
    if (*t && (*t)->dim() > (*all[0])->dim())
      runtime_error(op.name, "_: output with shape ", (*all[0])->sizes(), " doesn't match the broadcast shape of ",
                    (*t)->sizes());
  const Dtype own = (*all[0])->dtype();
  bring(all, masks);
  const TensorRef& target = physical(*all[0]);
  // Promotion may not touch the target: the value is cast into its dtype when it is written.
  at_[0] = target;
  if (target->dtype() != own) runtime_error(op.name, "_: the target can't change its dtype");
}

TensorRef copied(const TensorRef& t) { return ops::clone(t); }
TensorRef kept(const TensorRef& target) {
  return modes::grad_enabled() && target->requires_grad() ? copied(target) : target;
}

TensorRef assign(const OpSchema& op, const TensorRef& target, const TensorRef& result) {
  const TensorRef* const operands[] = {&target, &result};
  check_target(op, target, operands);
  ops::copy_(target, result);
  return target;
}

TensorRef show(const TensorRef& target, const TensorRef& result) {
  replace(target, physical_at(result, levels_of(target)));
  return target;
}

TensorRef assign_out(const OpSchema& op, const TensorRef& out, const TensorRef& result) {
  const TensorRef* const operands[] = {&out, &result};
  check_target(op, out, operands);
  if (!(out->sizes() == result->sizes()))
    runtime_error(op.name, ": out= has sizes ", out->sizes(), ", the result ", result->sizes(),
                  "; inside vmap it can't be resized");
  ops::copy_(out, result);
  return out;
}

}  // namespace batch
}  // namespace tp
