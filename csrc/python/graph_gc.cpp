// What the cycle collector may see of the C++ graph: links with a single owner, walked iteratively.
#include "python/graph_objects.h"
#include "python/tensor_type.h"

#include <typeinfo>

namespace tp::python {
namespace {

class Walk {
 public:
  Walk(visitproc visit, void* arg) : visit_(visit), arg_(arg) {}

  // Everything below has exactly one owner, and that owner is on the way from the object being traversed.
  int tensor(TensorImpl* t) {
    if (t->owns_host_object)
      if (int r = visit(static_cast<PyObject*>(t->host_object))) return r;
    node_link(static_cast<Node*>(t->grad_fn_raw()));
    if (AutogradMeta* m = t->meta()) {
      node_link(static_cast<Node*>(m->accumulator.get()));
      tensor_link(m->grad.get());
      for (const Tangent* d = m->tangents; d; d = d->outer) tensor_link(d->value.get());
    }
    if (t->is_view()) tensor_link(t->view().base.get());
    return 0;
  }
  int node(Node* n) {
    if (NodeMeta* m = n->meta()) {
      for (const TensorHook& h : m->tensor_hooks)
        if (int r = hook(h.hook.get())) return r;
      for (const std::vector<HookRef>* list : {&m->pre_hooks, &m->post_hooks, &m->accumulated_hooks})
        for (const HookRef& h : *list)
          if (int r = hook(h.get())) return r;
      if (m->host_metadata)
        if (int r = visit(static_cast<PyObject*>(m->host_metadata))) return r;
    }
    for (const Edge& e : n->next_edges()) node_link(e.node.get());
    return 0;
  }
  int drain() {
    while (!nodes_.empty() || !tensors_.empty()) {
      int r = 0;
      if (!nodes_.empty()) {
        Node* n = nodes_.back();
        nodes_.pop_back();
        // A Function's node is an object of its own: its traversal goes on from there.
        PyObject* own = python_node_object(n);
        r = own ? visit(own) : node(n);
      } else {
        TensorImpl* t = tensors_.back();
        tensors_.pop_back();
        r = tensor(t);
      }
      if (r) return r;
    }
    return 0;
  }

 private:
  int visit(PyObject* o) { return o ? visit_(o, arg_) : 0; }
  int hook(Hook* h) { return visit(hook_callable(h)); }
  void node_link(Node* n) {
    if (n && n->use_count() == 1) nodes_.push_back(n);
  }
  void tensor_link(TensorImpl* t) {
    // With an object of its own that owns it, the tensor has that second owner and is not ours alone.
    if (t && t->use_count() == 1) tensors_.push_back(t);
  }

  visitproc visit_;
  void* arg_;
  std::vector<Node*> nodes_;
  std::vector<TensorImpl*> tensors_;
};

}  // namespace

int visit_tensor(TensorImpl* t, visitproc visit, void* arg) {
  if (!t->grad_fn_raw() && !t->is_special()) return 0;
  Walk walk(visit, arg);
  if (int r = walk.tensor(t)) return r;
  return walk.drain();
}

int visit_node(Node* n, visitproc visit, void* arg) {
  Walk walk(visit, arg);
  if (int r = walk.node(n)) return r;
  return walk.drain();
}

}  // namespace tp::python
