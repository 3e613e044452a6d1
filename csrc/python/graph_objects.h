// Layouts of the Python objects of the graph: nodes, hooks, handles. Their types are in node_type, hooks, function.cpp.
#pragma once
#include "autograd/engine.h"
#include "autograd/saved.h"
#include "python/values.h"

namespace tp::python {

/// Common head of every Python node. For a C++ node the object owns a count; a Function's context is the node itself.
struct NodeObject {
  PyObject_HEAD
  Node* node;
  PyObject* dict;
  PyObject* weak;
};
extern PyTypeObject NodeType;

inline bool is_node(PyObject* o) { return PyObject_TypeCheck(o, &NodeType); }
/// A counted reference; takes care of a context whose node nothing else holds. Null where forward has not run yet.
NodeRef node_of(PyObject* o);
/// The context object of a Function's node, null for a C++ node; borrowed.
PyObject* python_node_object(Node* n);

/// A Python callable on a node. Owned by the node; handles refer to it weakly through its cell.
class PythonHook;
struct HookCell {
  RefCount refs;
  PythonHook* hook = nullptr;
  static void retain(HookCell* c) { ++c->refs.n; }
  static void release(HookCell* c) {
    if (--c->refs.n == 0) delete c;
  }
};
enum class HookKind : std::uint8_t { Tensor, Pre, Post, Accumulated };
class PythonHook final : public Hook {
 public:
  PythonHook(PyObject* callable, HookKind kind);
  ~PythonHook() override;
  TensorRef on_gradient(const TensorRef& grad) override;
  void on_outputs(GraphGradVec& grads) override;
  void on_inputs(GraphGradVec& grad_inputs, const GraphGradVec& grad_outputs) override;
  void on_accumulated(const TensorRef& leaf) override;
  std::string name() const override;

  PyObject* callable;  // null once removed
  // Registered on a batched tensor: its levels, and the innermost one's id. What arrives is a gradient of all samples.
  std::uint32_t levels = 0;
  std::uint64_t level_id = 0;
  HookKind kind;
  Ref<HookCell> cell;
};
/// Borrowed; null where removed.
PyObject* hook_callable(Hook* h);

/// Registers `callable`, returns its RemovableHandle. `node` gets the hook in the list `kind` names; `batched`, where given,
/// is the batched tensor whose gradient a tensor hook is to see.
PyObject* add_hook(Node& node, HookKind kind, std::uint32_t output_nr, PyObject* callable,
                   const TensorImpl* batched = nullptr);

}  // namespace tp::python
