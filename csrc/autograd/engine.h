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
  TensorRef (*as_strided_graph)(const TensorRef& t, const Shape& sizes, const Strides& strides,
                                std::int64_t offset) = nullptr;
  /// A copy of `into` whose elements at that geometry are those of `src`.
  TensorRef (*as_strided_scatter_graph)(const TensorRef& into, const TensorRef& src, const Shape& sizes,
                                        const Strides& strides, std::int64_t offset) = nullptr;
  /// Zeros of a contiguous base with a strided view's gradient added in; overlapping elements add up.
  TensorRef (*as_strided_backward_graph)(const TensorRef& g, const Shape& base, const Shape& sizes,
                                         const Strides& strides, std::int64_t offset) = nullptr;
  void (*copy_graph)(const TensorRef& into, const TensorRef& from) = nullptr;  // in place, recorded
  TensorRef (*view_as_real_graph)(const TensorRef& t) = nullptr;
  TensorRef (*view_as_complex_graph)(const TensorRef& t) = nullptr;
};
extern TP_API EngineOps engine_ops;

class TP_API Engine {
 public:
  struct Request {
    std::span<const Edge> roots;
    std::span<const TensorRef> seeds;       // one per root; null: ones, where the root has one real element
    // For sizes and dtypes of seeds; empty or null entries: the node says.
    std::span<const TensorRef> root_tensors = {};
    std::span<const Edge> inputs;           // empty: accumulate into every reachable leaf
    bool keep_graph = false;
    bool create_graph = false;
    bool accumulate = true;                 // backward(): into .grad; false: capture and return (grad())
    std::span<const TensorRef> input_tensors = {};  // with accumulate: non-leaves among the inputs get their .grad too
  };
  /// With `accumulate` false: one entry per input, null where no gradient arrived. No two results share memory.
  static std::vector<TensorRef> run(const Request& request);

  /// Whether the graph behind `roots` leads to a node as old as `age` or older, or to a leaf.
  static bool reaches_older(std::span<const Edge> roots, std::uint64_t age);

  /// Callbacks at the end of the running pass (queue_callback); raises outside a pass.
  static void queue_callback(std::function<void()> f);
  static bool running();
  static const Node* current_node();
  /// The buffer that collects the gradient of input `i` of the running host node, for adding to it in place; null where
  /// nothing has arrived yet, the buffer is shared, or the pass records (input_grad_buffers).
  static TensorRef input_buffer(std::size_t i);
};

/// Whether anomaly mode looks for nan in what nodes return (detect_anomaly(check_nan=...)).
extern TP_API bool anomaly_check_nan;
/// Set by the host: describes where the forward runs now (a Python traceback), for anomaly mode.
extern TP_API std::string (*forward_location)();

/// Checks count, sizes and dtypes of gradients a host function or a hook returned; reduces and casts where allowed.
TP_API void validate_gradients(const Node& node, GraphGradVec& grads, std::span<const Storage> expected);

}  // namespace tp
