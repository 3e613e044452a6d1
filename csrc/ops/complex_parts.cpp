// Views on the parts of complex memory, their backward, their tangent.
#include "ops/complex_parts.h"

#include "core/errors.h"
#include "core/scalar.h"
#include "ops/formula.h"

namespace tp {

namespace ops {
Storage mul(const Storage& input, const Storage& other);
TensorRef mul(const TensorRef& input, const TensorRef& other);
TensorRef real(const TensorRef& input);
TensorRef imag(const TensorRef& input);
}  // namespace ops

namespace {

Storage part_of(const Storage& s, ComplexPart part) {
  Strides strides = s.strides();
  for (std::int64_t& step : strides) step *= 2;
  return Storage(s.block(), real_dtype(s.dtype()), s.sizes(), std::move(strides),
                 2 * s.offset() + (part == ComplexPart::Imag));
}

/// The gradient of a part is real: it comes back as g, or as g * 1j.
class ComplexPartBackward final : public Node {
 public:
  ComplexPartBackward(const TensorRef& t, ComplexPart part)
      : Node(1), edge_(gradient_edge(t)), sizes_(t->sizes()), dtype_(t->dtype()), part_(part) {}

  std::string name() const override { return part_ == ComplexPart::Real ? "RealBackward0" : "ImagBackward0"; }
  std::span<Edge> next_edges() override { return {&edge_, 1}; }
  Storage output_like(std::uint32_t) const override { return Storage(BlockRef(), real_dtype(dtype_), sizes_); }

  GradVec apply(std::span<Storage> grad_outputs) override {
    GradVec grads(1);
    if (grad_outputs[0].defined()) grads[0] = turned(engine_ops.cast(grad_outputs[0], dtype_));
    return grads;
  }
  GraphGradVec apply_for_graph(std::span<const TensorRef> grad_outputs) override {
    GraphGradVec grads(1);
    if (grad_outputs[0]) grads[0] = turned(engine_ops.cast_graph(grad_outputs[0], dtype_));
    return grads;
  }

 protected:
  TP_NODE_DISPOSE(ComplexPartBackward)

 private:
  template <class V>
  V turned(V g) const {
    return part_ == ComplexPart::Real ? g : ops::mul(g, ops::number<V>(Scalar(0.0, 1.0)));
  }
  Edge edge_;
  Shape sizes_;
  Dtype dtype_;
  ComplexPart part_;
};

}  // namespace

TensorRef complex_part(const TensorRef& t, ComplexPart part) {
  const char* name = part == ComplexPart::Real ? "real" : "imag";
  if (!is_complex(t->dtype())) runtime_error(name, ": expected a complex tensor, this one is ", dtype_name(t->dtype()));
  if (TP_UNLIKELY(t->is_batched())) return part == ComplexPart::Real ? ops::real(t) : ops::imag(t);
  TensorRef out = wiring::make_view(t, part_of(t->storage(), part), name);
  if (wiring::records(t)) {
    auto node = make_node<ComplexPartBackward>(t, part);
    wiring::attach(out, std::move(node));
  }
  if (TP_UNLIKELY(modes::any(modes::kForward)) && t->has_tangent())
    wiring::each_level({&t}, {}, [&] { wiring::set_tangent(out, complex_part(wiring::tangent(t), part)); });
  return out;
}

}  // namespace tp
