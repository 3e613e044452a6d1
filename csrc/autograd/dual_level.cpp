// The open dual level and the chain of tensors that carry a tangent of it.
#include "autograd/dual_level.h"

#include "autograd/engine.h"
#include "core/errors.h"

namespace tp::dual {
namespace {
std::uint32_t g_level = 0;       // guarded by the host's lock, like the tensors it speaks of
std::uint32_t g_last_level = 0;
AutogradMeta* g_duals = nullptr;
}  // namespace

std::uint32_t current_level() { return g_level; }

std::uint32_t enter_level() {
  if (g_level) runtime_error("Nested forward mode AD is not supported at the moment: leave the open dual_level first");
  g_level = ++g_last_level;
  modes::word |= modes::kForward;
  return g_level;
}

void exit_level(std::uint32_t level) {
  if (!g_level) runtime_error("Trying to exit a forward AD level when no level is currently active.");
  if (level != g_level)
    runtime_error("Trying to exit a forward AD level that was not the last one that was created: level ", level,
                  ", open is ", g_level);
  g_level = 0;
  modes::word &= ~std::uint32_t(modes::kForward);
  while (g_duals) {
    AutogradMeta* m = g_duals;
    m->unlink_dual();
    TensorRef gone = std::move(m->tangent);  // freed last: it may be the end of other duals
  }
}

void attach_tangent(const TensorRef& t, TensorRef tangent) {
  AutogradMeta& m = t->ensure_meta();
  TensorRef old = std::move(m.tangent);
  m.tangent = std::move(tangent);
  if (!m.tangent) {
    m.unlink_dual();
  } else if (!m.prev_dual) {
    m.next_dual = g_duals;
    m.prev_dual = &g_duals;
    if (g_duals) g_duals->prev_dual = &m.next_dual;
    g_duals = &m;
  }
}

TensorRef tangent_of(const TensorRef& t) {
  if (!t || !t->has_tangent()) return nullptr;
  if (t->meta()->tangent) return t->meta()->tangent;
  const TensorRef base = t->meta()->view->base;
  const Storage& b = base->storage();
  const Storage& v = t->storage();
  TensorRef whole = base->meta()->tangent;
  if (!(whole->storage().strides() == b.strides())) {  // laid out otherwise: the view's strides mean nothing there
    std::int64_t last = 0;
    for (int i = 0; i < b.dim(); ++i) last += b.size(i) ? (b.size(i) - 1) * b.stride(i) : 0;
    TensorRef flat = TensorImpl::make(zeros_storage({last + 1}, b.dtype()));
    whole = engine_ops.as_strided_scatter_graph(flat, whole, b.sizes(), b.strides(), 0);
  }
  const std::int64_t offset = v.offset() - b.offset() + whole->storage().offset();
  TensorRef part = engine_ops.as_strided_graph(whole, v.sizes(), v.strides(), offset);
  attach_tangent(t, part);
  return part;
}

}  // namespace tp::dual
