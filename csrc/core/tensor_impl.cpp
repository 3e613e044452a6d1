// Lifetimes: iterative destruction of node chains, and the end of a TensorImpl.
#include "core/tensor_impl.h"

namespace tp {

bool (*drop_host_object)(void*) = nullptr;

NodeBase::~NodeBase() = default;

void NodeBase::destroy(NodeBase* n) {
  // Nodes whose count fell to zero wait here while an outer call drains: a chain of any length ends without recursion.
  static thread_local std::vector<NodeBase*>* waiting = nullptr;
  if (waiting) {
    waiting->push_back(n);
    return;
  }
  std::vector<NodeBase*> list{n};
  std::vector<NodeBase*> links;
  waiting = &list;
  while (!list.empty()) {
    NodeBase* dead = list.back();
    list.pop_back();
    links.clear();
    dead->take_links(links);
    dead->dispose();
    for (NodeBase* l : links)
      if (--l->refs_.n == 0) list.push_back(l);
  }
  waiting = nullptr;
}

AutogradMeta::~AutogradMeta() {
  unlink_dual();
  delete view;
}

AutogradMeta& TensorImpl::ensure_meta() {
  if (!meta_) meta_ = new AutogradMeta;
  return *meta_;
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
    if (meta->accumulator) meta->accumulator->leaf_died();
    if (meta->retains_grad && t->grad_fn_) t->grad_fn_->tensor_died(t);
    delete meta;
  }
  t->~TensorImpl();
  memory::small_free(t, sizeof(TensorImpl));
}

}  // namespace tp
