// The context object of autograd.Function and its node, which lives inside it. Knows neither engine nor ops.
#pragma once
#include "python/graph_objects.h"

namespace tp::python {

struct FunctionObject;

/// What an argument position of forward was.
struct ArgInfo {
  bool tensor = false;
  bool requires_grad = false;
};
/// Where a saved value came from: an output of the node itself, or a tensor with a history of its own.
struct SavedFrom {
  Edge edge;
  int output = -1;  // not kept as an edge: it would be a cycle
};
/// Sizes and gradient dtype of one output, for zeros.
struct OutputInfo {
  Shape sizes;
  Dtype dtype = Dtype::F32;
  bool tensor = false;
  bool any_dtype = false;  // its gradient comes as it is
};

/// The node of a Function. A nonzero count on it stands for exactly one reference to the context object around it.
class PythonNode final : public Node {
 public:
  explicit PythonNode(FunctionObject* self) : Node(0), self(self) {}
  std::string name() const override;
  bool is_host() const override { return true; }
  bool saved_plain() const override { return false; }
  GradVec apply(std::span<Storage> grad_outputs) override;
  GraphGradVec apply_for_graph(std::span<const TensorRef> grad_outputs) override;
  std::span<Edge> next_edges() override { return edges; }
  Storage output_like(std::uint32_t nr) const override;
  void release_saved() override;
  std::size_t saved_count() const override { return saved.size(); }
  SavedSlot saved_at(std::size_t k) override;
  void set_num_outputs(std::uint32_t n) { num_outputs_ = n; }

  FunctionObject* self;
  InlineVec<Edge, 2> edges;         // one per tensor argument
  InlineVec<SavedValue, 2> saved;
  InlineVec<SavedFrom, 2> saved_from;
  InlineVec<OutputInfo, 1> outputs; // one per returned value

 protected:
  void take_links(std::vector<NodeBase*>& out) override;
  void dispose() override;
};

struct FunctionObject {
  NodeObject base;  // base.node: the node in `room` once made
  PyObject* to_save;
  PyObject* saved_for_forward;
  PyObject* dirty;
  PyObject* non_differentiable;
  PyObject* output_grad_dtypes;
  std::vector<ArgInfo>* arguments;
  bool materialize;
  bool saved_read;  // clear_saved_tensors_on_access: read once
  bool in_jvp;
  alignas(PythonNode) unsigned char room[sizeof(PythonNode)];

  PythonNode* node() { return reinterpret_cast<PythonNode*>(base.node); }
};
extern PyTypeObject FunctionBaseType;

inline FunctionObject* as_function(PyObject* o) { return reinterpret_cast<FunctionObject*>(o); }
inline bool is_function(PyObject* o) { return PyObject_TypeCheck(o, &FunctionBaseType); }

// function.cpp: forward side.
PyObject* apply_function(PyObject* cls, PyObject* const* args, Py_ssize_t n, PyObject* kwnames);
// function_context.cpp: what forward tells the context, what backward reads from it.
PyObject* new_context(PyTypeObject* type);
void init_function_context(PyObject* module);

}  // namespace tp::python
