// The open levels of a thread, and how tensors get in and out of them.
#include "transforms/batched.h"

#include <vector>

#include "core/errors.h"
#include "ops/formula.h"
#include "ops/wiring.h"
#include "transforms/basis.h"

namespace tp {
namespace ops {

TensorRef permute(const TensorRef& input, const Dims& dims);
TensorRef movedim(const TensorRef& input, const Dims& source, const Dims& destination);

}  // namespace ops

namespace batch {
namespace {

constexpr int kMaxLevels = 31;

thread_local std::vector<Level> open;
std::uint64_t last_id = 0;  // guarded by the host's lock

/// What stands behind every batched tensor's storage: it has no elements of its own, and nobody may take it for a sample.
const BlockRef& poison() {
  static const BlockRef block = [] {
    BlockRef b = make_block(64);
    std::fill_n(b->data, 64, char(-1));
    return b;
  }();
  return block;
}

Storage logical(const Storage& s, int skip) {
  Shape sizes;
  Strides strides;
  for (int i = skip; i < s.dim(); ++i) {
    sizes.push_back(s.size(i));
    strides.push_back(s.stride(i));
  }
  // Strides and offset are those of the first sample: views of tangents and as_strided count by them.
  return Storage(poison(), s.dtype(), std::move(sizes), std::move(strides), s.offset());
}

constexpr Levels bit_of(int level) { return Levels(1) << (level - 1); }
/// How many of `levels` are further out than `level`.
int place_of(Levels levels, int level) { return count(levels & (bit_of(level) - 1)); }

[[noreturn]] void ended() {
  runtime_error(
      "vmap: a batched tensor was used after the vmap that made it had ended; return it from the mapped function "
      "instead of keeping it");
}

void check_open(const char* what, int level) {
  if (level < 1 || level > depth()) runtime_error(what, ": level ", level, " is not open; ", depth(), " levels are");
}

}  // namespace

int enter(std::int64_t size, Randomness randomness) {
  if (size < 0) value_error("vmap: the batch size must not be negative, got ", size);
  if (depth() == kMaxLevels) runtime_error("vmap: more than ", kMaxLevels, " levels deep");
  open.push_back({++last_id, size, randomness});
  modes::open_transforms = std::uint32_t(open.size());
  modes::word |= modes::kTransform;
  return depth();
}

void exit(int level) {
  check_open("vmap", level);
  open.resize(std::size_t(level) - 1);  // inner ones that an error left open go with it
  modes::open_transforms = std::uint32_t(open.size());
  if (open.empty() && !batched_alive) modes::word &= ~std::uint32_t(modes::kTransform);
}

thread_local constinit Levels basis_levels = 0;

int depth() { return int(modes::open_transforms); }
const Level& level(int number) { return open[std::size_t(number) - 1]; }

Dims sizes_of(Levels levels) {
  Dims sizes;
  for (int l = 1; levels >> (l - 1); ++l)
    if (levels & bit_of(l)) sizes.push_back(level(l).size);
  return sizes;
}

Levels levels_of(const TensorRef& t) {
  if (!t->is_batched()) return 0;
  const AutogradMeta& m = *t->meta();
  const std::size_t innermost = std::size_t(std::bit_width(m.levels));
  if (TP_UNLIKELY(innermost > open.size() || open[innermost - 1].id != m.level_id)) ended();
  return m.levels;
}

TensorRef wrap(TensorRef physical, Levels levels) {
  if (!levels || !physical) return physical;
  TensorRef t = TensorImpl::make(logical(physical->storage(), count(levels)));
  t->set_batched(std::move(physical), levels, open[std::size_t(std::bit_width(levels)) - 1].id);
  return t;
}

void replace(const TensorRef& t, TensorRef physical) {
  const AutogradMeta& m = *t->meta();
  t->set_storage(logical(physical->storage(), count(m.levels)));
  t->set_batched(std::move(physical), m.levels, m.level_id);
}

namespace {

/// `t`, whose tangents differ from sample to sample where it does not itself: the same with every dimension in place.
TensorRef with_tangents_at(const TensorRef& t, Levels levels) {
  const Levels own = levels_of(t);
  const TensorRef& p = physical(t);
  TensorRef whole = physical_at(wrap(wiring::primal(p, 1), own), levels);
  dual::LevelList of;
  dual::collect_levels(p, of);
  for (std::uint32_t level : of)
    dual::attach_tangent(whole, peel(cover(dual::tangent_of(p, level), own), levels), level);
  return whole;
}

}  // namespace

bool tangents_vary(const TensorRef& t, Levels levels) {
  if (!levels || !t->has_tangent()) return false;
  const TensorRef& p = physical(t);
  dual::LevelList of;
  dual::collect_levels(p, of);
  for (std::uint32_t level : of) {
    const TensorRef tangent = dual::tangent_of(p, level);
    if ((levels_of(tangent) & levels) || tangents_vary(tangent, levels)) return true;
  }
  return false;
}

TensorRef physical_at(const TensorRef& t, Levels levels) {
  const Levels own = levels_of(t);
  const TensorRef& p = physical(t);
  if (own == levels) return p;
  if (TP_UNLIKELY(tangents_vary(t, levels & ~own))) return with_tangents_at(t, levels);
  Shape ones, full;
  for (int l = 1, k = 0; levels >> (l - 1); ++l) {
    if (!(levels & bit_of(l))) continue;
    const bool has = own & bit_of(l);
    ones.push_back(has ? p->sizes()[k++] : 1);
    full.push_back(level(l).size);
  }
  for (std::int64_t n : t->sizes()) {
    ones.push_back(n);
    full.push_back(n);
  }
  return ops::expand(own ? ops::reshape(p, ones) : p, full);
}

TensorRef peel(const TensorRef& t, Levels levels) {
  if (!levels) return t;
  const Levels own = levels_of(t), all = own | levels, rest = own & ~levels;
  TensorRef p = physical_at(t, all);
  // Levels that stay come first; those that go follow, as the leading logical dimensions.
  Dims order;
  for (const Levels part : {rest, levels})
    for (int l = 1; part >> (l - 1); ++l)
      if (part & bit_of(l)) order.push_back(place_of(all, l));
  bool moved = false;
  for (int i = 0; i < order.size(); ++i) moved |= order[i] != i;
  if (moved) {
    for (int i = order.size(); i < p->dim(); ++i) order.push_back(i);
    p = ops::permute(p, order);
  }
  return wrap(std::move(p), rest);
}

TensorRef cover(const TensorRef& t, Levels levels) {
  if (!levels || !t) return t;
  const Levels own = levels_of(t), all = own | levels;
  TensorRef p = physical(t);
  Dims order;
  for (int l = 1; all >> (l - 1); ++l)
    if (all & bit_of(l)) order.push_back(own & bit_of(l) ? place_of(own, l) : count(own) + place_of(levels, l));
  bool moved = false;
  for (int i = 0; i < order.size(); ++i) moved |= order[i] != i;
  if (moved) {
    for (int i = order.size(); i < p->dim(); ++i) order.push_back(i);
    p = ops::permute(p, order);
  }
  return wrap(std::move(p), all);
}

TensorRef add_dim(const TensorRef& t, std::int64_t dim, int number) {
  check_open("vmap", number);
  if (t->dim() == 0) value_error("vmap: a 0-d tensor has no dimension ", dim, " to map over");
  if (dim < -t->dim() || dim >= t->dim())
    value_error("vmap: dimension ", dim, " to map over is out of range for a tensor of sizes ", t->sizes());
  const int from = int(dim < 0 ? dim + t->dim() : dim);
  if (t->sizes()[from] != level(number).size)
    value_error("vmap: dimension ", dim, " to map over has length ", t->sizes()[from], " in a tensor of sizes ",
                t->sizes(), ", the batch size is ", level(number).size);
  if (levels_of(t) & bit_of(number)) runtime_error("vmap: the tensor is batched at level ", number, " already");
  return cover(from == 0 ? t : ops::movedim(t, {from}, {0}), bit_of(number));
}

TensorRef remove_dim(const TensorRef& t, int number, std::int64_t size, std::int64_t dim) {
  check_open("vmap", number);
  const int room = t->dim() + 1;
  if (dim < -room || dim >= room)
    value_error("vmap: out_dims ", dim, " is out of range for a result of sizes ", t->sizes());
  const int to = int(dim < 0 ? dim + room : dim);
  TensorRef leading;
  if (levels_of(t) & bit_of(number)) {
    leading = peel(t, bit_of(number));
  } else {
    Shape sizes{size};
    for (std::int64_t n : t->sizes()) sizes.push_back(n);
    leading = ops::expand(t, sizes);
  }
  return to == 0 ? leading : ops::movedim(leading, {0}, {to});
}

TensorRef expand_to_levels(const TensorRef& t) {
  const Levels all = open_levels();
  return wrap(physical_at(t, all), all);
}

}  // namespace batch
}  // namespace tp
