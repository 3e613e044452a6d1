// The open forward levels of a thread, each with the chain of its tangents.
#include "autograd/dual_level.h"

#include <algorithm>
#include <utility>

#include "autograd/engine.h"
#include "autograd/layout.h"
#include "core/errors.h"

namespace tp::dual {
namespace {

struct Open {
  std::uint32_t number;
  bool exclusive;
  bool enabled_outside;
  std::unique_ptr<Tangent*> first;  // at an address of its own: the chain points back to it
};
/// Those of one thread. Tensors may be shared: a level of another thread is not open here.
struct Levels {
  std::vector<Open> open;
  // A thread that ends with a level open leaves duals behind, whose chain must not lose its head.
  ~Levels() {
    for (Open& o : open) static_cast<void>(o.first.release());
  }
};
std::vector<Open>& levels_here() {
  thread_local Levels levels;
  return levels.open;
}
bool alike(const Storage& a, const Storage& b) {
  for (int i = 0; i < a.dim(); ++i)
    if (a.size(i) > 1 && a.stride(i) != b.stride(i)) return false;
  return true;
}

/// The tensor's own list; those of its base are the base's.
const Tangent* own_tangents(const TensorRef& t) { return t->meta() ? t->meta()->tangents : nullptr; }

/// `tangent` in new memory laid out as `s`.
TensorRef relaid(const Storage& s, const TensorRef& tangent) {
  const TensorRef flat = zeros_under(s, tangent->dtype());
  const TensorRef whole = engine_ops.as_strided_scatter_graph(flat, tangent, s.sizes(), s.strides(), 0);
  return engine_ops.as_strided_graph(whole, s.sizes(), s.strides(), 0);
}

/// The tangent in memory laid out as its tensor's: what is a view of one is then a view of the other, and writing through
/// it reaches both.
TensorRef laid_out_as(const TensorRef& t, TensorRef tangent) {
  if (t->is_batched() || tangent->is_batched() || !(t->sizes() == tangent->sizes())) return tangent;
  const Storage& s = t->storage();
  if (alike(s, tangent->storage()) || may_repeat(s.sizes(), s.strides()) || s.numel() == 0) return tangent;
  return relaid(s, tangent);
}

std::uint32_t g_last_level = 0;  // of all threads; guarded by the host's lock
thread_local constinit bool switched_on = true;

/// Whether ops compute tangents: the bit is all that they ask.
void tell_ops() {
  const bool on = enabled() && !levels_here().empty();
  modes::word = (modes::word & ~std::uint32_t(modes::kForward)) | (on ? std::uint32_t(modes::kForward) : 0u);
}

Open* find(std::uint32_t level) {
  std::vector<Open>& open = levels_here();
  for (std::size_t i = open.size(); i-- > 0;)
    if (open[i].number == level) return &open[i];
  return nullptr;
}

void unlink(Tangent* t) {
  *t->prev = t->next;
  if (t->next) t->next->prev = t->prev;
  for (Tangent** at = &t->owner->tangents; *at; at = &(*at)->outer) {
    if (*at != t) continue;
    *at = t->outer;
    break;
  }
}

}  // namespace

std::uint32_t current_level() {
  const std::vector<Open>& open = levels_here();
  return open.empty() ? 0 : open.back().number;
}
bool enabled() {
  // A transform asks for tangents itself, whatever is off around it.
  const std::vector<Open>& open = levels_here();
  return switched_on && !(modes::any(modes::kInference) && (open.empty() || open.back().exclusive));
}
bool set_enabled(bool on) {
  const bool before = std::exchange(switched_on, on);
  tell_ops();
  return before;
}
std::uint32_t exclusive_level() {
  const std::vector<Open>& open = levels_here();
  const auto at = std::find_if(open.begin(), open.end(), [](const Open& o) { return o.exclusive; });
  return at == open.end() ? 0 : at->number;
}

std::uint32_t enter_level(bool exclusive) {
  std::vector<Open>& open = levels_here();
  if (exclusive && exclusive_level())
    runtime_error(
        "Nested forward mode AD is not supported at the moment: leave the open dual_level first, or use func.jvp, "
        "which nests");
  open.push_back({++g_last_level, exclusive, switched_on, std::make_unique<Tangent*>(nullptr)});
  if (!exclusive) switched_on = true;
  tell_ops();
  return g_last_level;
}

void exit_level(std::uint32_t level) {
  std::vector<Open>& open = levels_here();
  if (open.empty()) runtime_error("Trying to exit a forward AD level when no level is currently active.");
  if (level != open.back().number)
    runtime_error("Trying to exit a forward AD level that was not the last one that was created: level ", level,
                  ", open is ", open.back().number);
  const Open gone = std::move(open.back());
  open.pop_back();
  if (!gone.exclusive) switched_on = gone.enabled_outside;
  tell_ops();
  while (Tangent* t = *gone.first) {
    unlink(t);
    const TensorRef value = std::move(t->value);  // freed last: it may be the end of other duals
    delete t;
  }
}

void attach_tangent(const TensorRef& t, TensorRef tangent, std::uint32_t level) {
  if (tangent) tangent = laid_out_as(t, std::move(tangent));
  AutogradMeta& m = t->ensure_meta();
  Tangent** at = &m.tangents;
  while (*at && (*at)->level > level) at = &(*at)->outer;
  if (*at && (*at)->level == level) {
    Tangent* old = *at;
    if (tangent) {
      std::swap(old->value, tangent);  // what was there ends with the argument
    } else {
      unlink(old);
      delete old;  // what it holds may end other duals: the lists are whole again
    }
    return;
  }
  Open* open = tangent ? find(level) : nullptr;
  if (!open) return;
  Tangent** first = open->first.get();
  auto* fresh = new Tangent{std::move(tangent), level, &m, *at, *first, first};
  if (*first) (*first)->prev = &fresh->next;
  *first = fresh;
  *at = fresh;
}

TensorRef tangent_of(const TensorRef& t, std::uint32_t level) {
  if (!t || !t->has_tangent()) return nullptr;
  for (const Tangent* d = own_tangents(t); d && d->level >= level; d = d->outer)
    if (d->level == level) return d->value;
  if (!t->is_view()) return nullptr;
  const TensorRef base = t->view().base;
  TensorRef whole = tangent_of(base, level);
  if (!whole) return nullptr;
  const Storage& b = base->storage();
  const Storage& v = t->storage();
  if (!(whole->storage().strides() == b.strides())) {  // laid out otherwise: the view's strides mean nothing there
    whole = relaid(b, whole);
    // The base shows the same memory from now on: what is written into the view's part is part of its tangent.
    attach_tangent(base, whole, level);
  }
  const std::int64_t offset = v.offset() - b.offset() + whole->storage().offset();
  return engine_ops.as_strided_graph(whole, v.sizes(), v.strides(), offset);
}

void collect_levels(const TensorRef& t, LevelList& levels) {
  if (!t || !t->has_tangent()) return;
  for (const Tangent* d = own_tangents(t); d; d = d->outer)
    if (std::find(levels.begin(), levels.end(), d->level) == levels.end()) levels.push_back(d->level);
  std::sort(levels.begin(), levels.end());
  if (t->is_view()) collect_levels(t->view().base, levels);
}

void share_tangents(const TensorRef& to, const TensorRef& from, std::uint32_t below) {
  if (!from || !from->has_tangent()) return;
  if (TP_LIKELY(!from->is_view())) {
    for (const Tangent* d = own_tangents(from); d; d = d->outer)
      if (d->level < below) attach_tangent(to, d->value, d->level);
    return;
  }
  LevelList levels;
  collect_levels(from, levels);
  for (std::uint32_t level : levels)
    if (level < below) attach_tangent(to, tangent_of(from, level), level);
}

}  // namespace tp::dual
