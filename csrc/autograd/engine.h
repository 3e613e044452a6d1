// Engine: the reverse-mode driver. Iterative; one pass owns the nodes' scratch, others use side tables.
#pragma once
#include <functional>

#include "autograd/node.h"

namespace tp {

/// The few ops the engine itself needs, filled at load by ops/ (which lies above autograd).
struct EngineOps {
  Storage (*add)(const Storage& a, const Storage& b) = nullptr;
  void (*add_inplace)(Storage& into, const Storage& value) = nullptr;  // same sizes; into is dense and unshared
  Storage (*sum_to)(const Storage& g, const Shape& sizes) = nullptr;
  Storage (*cast)(const Storage& g, Dtype dtype) = nullptr;
  Storage (*clone)(const Storage& g) = nullptr;                        // contiguous copy
  TensorRef (*add_graph)(const TensorRef& a, const TensorRef& b) = nullptr;
  TensorRef (*sum_to_graph)(const TensorRef& g, const Shape& sizes) = nullptr;
  TensorRef (*cast_graph)(const TensorRef& g, Dtype dtype) = nullptr;
  TensorRef (*clone_graph)(const TensorRef& g) = nullptr;
};
extern TP_API EngineOps engine_ops;

class TP_API Engine {
 public:
  struct Request {
    std::span<const Edge> roots;
    std::span<const TensorRef> seeds;       // one per root; null: absent
    std::span<const Edge> inputs;           // empty: accumulate into every reachable leaf
    bool keep_graph = false;
    bool create_graph = false;
    bool accumulate = true;                 // backward(): into .grad; false: capture and return (grad())
  };
  /// With `accumulate` false: one entry per input, null where no gradient arrived.
  static std::vector<TensorRef> run(const Request& request);

  /// Callbacks at the end of the running pass (queue_callback); raises outside a pass.
  static void queue_callback(std::function<void()> f);
  static bool running();
  static const Node* current_node();
};

/// Checks count, sizes and dtypes of gradients a host function or a hook returned; reduces and casts where allowed.
TP_API void validate_gradients(const Node& node, GraphGradVec& grads, std::span<const Storage> expected);

}  // namespace tp
