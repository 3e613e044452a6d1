// Lifetimes: iterative destruction of node chains, and the end of a TensorImpl.
#include "core/tensor_impl.h"

#include <memory>

namespace tp {

bool (*drop_host_object)(void*) = nullptr;
std::uint64_t batched_alive = 0;

NodeBase::~NodeBase() = default;

namespace {

/// Nodes whose count fell to zero wait here while an outer call drains: a chain of any length ends without recursion.
struct Waiting {
  std::vector<NodeBase*> dead;
  std::vector<NodeBase*> links;
  bool draining = false;
};
thread_local constinit Waiting* waiting = nullptr;  // read without the guard of an object that is destroyed
thread_local constinit bool waiting_gone = false;  // nodes may still end after the thread's objects did
struct Owner {
  std::unique_ptr<Waiting> own = std::make_unique<Waiting>();
  ~Owner() {
    waiting = nullptr;
    waiting_gone = true;
  }
};
Waiting* waiting_here() {
  static thread_local Owner owner;
  return waiting = owner.own.get();
}

}  // namespace

void NodeBase::drain(std::vector<NodeBase*>& dead, std::vector<NodeBase*>& links) {
  while (!dead.empty()) {
    NodeBase* n = dead.back();
    dead.pop_back();
    links.clear();
    n->take_links(links);
    for (NodeBase* l : links)
      if (--l->refs_.n == 0) dead.push_back(l);
    n->dispose();  // what this releases (hooks, host objects) may end more nodes: they join `dead`
  }
}

void NodeBase::destroy(NodeBase* n) {
  Waiting* w = waiting;
  if (TP_UNLIKELY(!w)) {
    if (waiting_gone) {
      std::vector<NodeBase*> dead{n}, links;
      return drain(dead, links);
    }
    w = waiting_here();
  }
  w->dead.push_back(n);
  if (w->draining) return;
  w->draining = true;
  drain(w->dead, w->links);
  w->draining = false;
  if (w->dead.capacity() > 4096) w->dead = {};
}

AutogradMeta::~AutogradMeta() {
  while (tangents) {
    Tangent* t = tangents;
    tangents = t->outer;
    *t->prev = t->next;
    if (t->next) t->next->prev = t->prev;
    delete t;
  }
}

AutogradMeta& TensorImpl::ensure_meta() {
  if (!meta_) meta_ = new AutogradMeta;
  return *meta_;
}

void TensorImpl::set_batched(TensorRef physical, std::uint32_t levels, std::uint64_t level_id) {
  AutogradMeta& m = ensure_meta();
  if (!batched_) ++batched_alive;
  batched_ = true;
  m.physical = std::move(physical);
  m.levels = levels;
  m.level_id = level_id;
}

TensorImpl::~TensorImpl() = default;

void TensorImpl::destroy(TensorImpl* t) {
  if (TP_UNLIKELY(t->owns_host_object)) {
    void* object = t->host_object;
    t->owns_host_object = false;
    t->host_object = nullptr;
    if (drop_host_object(object)) return;
  }
  AutogradMeta* meta = t->meta_;
  t->meta_ = nullptr;
  if (TP_UNLIKELY(meta != nullptr)) {
    // The last value that outlived its vmap: operands need not be looked at any more.
    if (t->batched_ && --batched_alive == 0 && !modes::open_transforms)
      modes::word &= ~std::uint32_t(modes::kTransform);
    if (meta->accumulator) meta->accumulator->leaf_died();
    if (meta->retains_grad && t->grad_fn_) t->grad_fn_->tensor_died(t);
    delete meta;
  }
  delete t;
}

}  // namespace tp
