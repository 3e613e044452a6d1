// Checks of gradients that came from outside generated code: count, sizes, dtypes.
#include <algorithm>

#include "autograd/engine.h"
#include "core/errors.h"

namespace tp {
namespace {

/// Whether a value of sizes `from` could broadcast... to a gradient of sizes `grad`, so that summing brings it back.
bool expandable(const Shape& from, const Shape& grad) {
  return grad.size() >= from.size() &&
      std::equal(from.begin(), from.end(), grad.end() - from.size(),
                 [](std::int64_t n, std::int64_t g) { return n == 1 || n == g; });
}

}  // namespace

void validate_gradients(const Node& node, GraphGradVec& grads, std::span<const Storage> expected) {
  if (grads.size() != expected.size())
    runtime_error("Function ", node.name(), " returned an incorrect number of gradients (expected ", expected.size(),
                  ", got ", grads.size(), ")");
  for (std::size_t i = 0; i < grads.size(); ++i) {
    TensorRef& g = grads[i];
    const Storage& like = expected[i];
    if (!g || (like.dim() == 0 && like.numel() != 1)) continue;  // absent, or nothing known of the input
    if (!(g->sizes() == like.sizes())) {
      if (!expandable(like.sizes(), g->sizes()))
        runtime_error("Function ", node.name(), " returned an invalid gradient at index ", i, " - got ", g->sizes(),
                      " but expected shape compatible with ", like.sizes());
      g = engine_ops.sum_to_graph(g, like.sizes());
    }
    if (is_complex(g->dtype()) && !is_complex(like.dtype()))
      runtime_error("Function ", node.name(), " returned an invalid gradient at index ", i, " - got ",
                    dtype_name(g->dtype()), " for an input of ", dtype_name(like.dtype()), "; give its real part");
    if (g->dtype() != like.dtype()) g = engine_ops.cast_graph(g, like.dtype());
  }
}

}  // namespace tp
