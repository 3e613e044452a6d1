// Views, in-place histories and forward mode on hand-made nodes. Exits with the failures.
#include "toy_ops.h"

using namespace toy;

namespace {

using Values = std::vector<double>;

// ---- a strided view with history, and the graph forms the wiring needs --------------------------------------------
TensorRef part(const TensorRef& t, const Shape& sizes, const Strides& strides, std::int64_t offset);
TensorRef scatter(const TensorRef& into, const TensorRef& src, const Shape& sizes, const Strides& strides,
                  std::int64_t offset);

void copy_values(const Storage& into, const Storage& from) {
  const Values v = values(from);
  each(into, [&](std::int64_t k, double* p) { *p = v[std::size_t(k)]; });
}
Storage put(Storage whole, const Storage& src, const Shape& sizes, const Strides& strides, std::int64_t offset) {
  copy_values(whole.with_geometry(sizes, strides, offset), src);
  return whole;
}

class PartBackward final : public FuncOp<PartBackward, 1, 0> {
 public:
  static constexpr const char* kName = "PartBackward";
  static constexpr OpSchema schema_v1{"part",
                                      "part(Tensor input, int[] sizes, int[] strides, int offset) -> Tensor out"};
  static constexpr const char* kSavedNames[1] = {""};
  static constexpr std::int8_t kSavedInput[1] = {0};
  Shape sizes;
  Strides strides;
  std::int64_t offset = 0;
  GradVec apply(std::span<Storage> g) override {
    GradVec out(1);
    out[0] = put(zeros_storage(input_shape(0), Dtype::F64), g[0], sizes, strides, offset);
    return out;
  }
  GraphGradVec apply_for_graph(std::span<const TensorRef> g) override {
    GraphGradVec out(1);
    out[0] = scatter(TensorImpl::make(zeros_storage(input_shape(0), Dtype::F64)), g[0], sizes, strides, offset);
    return out;
  }

 protected:
  TP_NODE_DISPOSE(PartBackward)
};

class ScatterBackward final : public FuncOp<ScatterBackward, 2, 0> {
 public:
  static constexpr const char* kName = "ScatterBackward";
  static constexpr OpSchema schema_v1{"scatter", "scatter(Tensor input, Tensor src) -> Tensor out"};
  static constexpr const char* kSavedNames[1] = {""};
  static constexpr std::int8_t kSavedInput[1] = {0};
  Shape sizes;
  Strides strides;
  std::int64_t offset = 0;
  GradVec apply(std::span<Storage> g) override {
    GradVec out(2);
    out[0] = put(make(g[0].sizes(), values(g[0])), zeros_storage(sizes, Dtype::F64), sizes, strides, offset);
    out[1] = make(sizes, values(g[0].with_geometry(sizes, strides, offset + g[0].offset())));
    return out;
  }
  GraphGradVec apply_for_graph(std::span<const TensorRef> g) override {
    GraphGradVec out(2);
    out[0] = scatter(g[0], TensorImpl::make(zeros_storage(sizes, Dtype::F64)), sizes, strides, offset);
    out[1] = part(g[0], sizes, strides, offset + g[0]->storage().offset());
    return out;
  }

 protected:
  TP_NODE_DISPOSE(ScatterBackward)
};

TensorRef part(const TensorRef& t, const Shape& sizes, const Strides& strides, std::int64_t offset) {
  TensorRef out = wiring::make_view(t, t->storage().with_geometry(sizes, strides, offset), "part");
  if (wiring::records(t)) {
    auto node = make_node<PartBackward>();
    node->set_output(out->storage());
    node->set_input(0, t);
    node->sizes = sizes;
    node->strides = strides;
    node->offset = offset - t->storage().offset();
    wiring::attach(out, node);
  }
  if (t->has_tangent()) wiring::set_tangent(out, part(wiring::tangent(t), sizes, strides, offset));
  return out;
}
TensorRef scatter(const TensorRef& into, const TensorRef& src, const Shape& sizes, const Strides& strides,
                  std::int64_t offset) {
  TensorRef out = wiring::wrap(put(make(into->sizes(), values(into)), src->storage(), sizes, strides, offset));
  if (wiring::records(into, src)) {
    auto node = make_node<ScatterBackward>();
    node->set_output(out->storage());
    node->set_input(0, into);
    node->set_input(1, src);
    node->sizes = sizes;
    node->strides = strides;
    node->offset = offset;
    wiring::attach(out, node);
  }
  return out;
}

void fill_view_ops() {
  fill_engine_ops();
  if (engine_ops.as_strided_graph) return;
  engine_ops.as_strided_graph = part;
  engine_ops.as_strided_scatter_graph = scatter;
  engine_ops.copy_graph = [](const TensorRef& into, const TensorRef& from) {
    copy_values(into->storage(), from->storage());
    wiring::finish_inplace(into, nullptr);
  };
}

TensorRef one(double v) { return leaf({v}, false); }
TensorRef half(const TensorRef& t, std::int64_t offset) { return part(t, {2}, {1}, offset); }
TensorRef ones(std::int64_t n) { return TensorImpl::make(ones_storage({n}, Dtype::F64)); }
/// Gradient of the sum of y.
TensorRef sum_grad(const TensorRef& y, const TensorRef& x, Options o = {}) {
  return grad({y}, {x}, o, {ones(y->numel())})[0];
}

// ---- in place -------------------------------------------------------------------------------------------------------
void base_in_place() {
  TensorRef x = leaf({1, 2, 3, 4});
  TensorRef b = mul(x, one(2));
  TensorRef v = half(b, 1);
  check(grad_fn(v)->name() == "PartBackward0", "a fresh view keeps its own history");
  mul_(b, one(3));
  check(b->storage().version() == 1 && v->storage().version() == 1, "base and view share the version");
  check(grad_fn(v)->name() == "AsStridedBackward0", "the view's history is made anew");
  check(values(sum_grad(v, x, {true})) == Values{0, 6, 6, 0}, "through the view, after the base changed");
  check(values(sum_grad(b, x)) == Values{6, 6, 6, 6}, "through the base");
}

void view_in_place() {
  TensorRef x = leaf({1, 2, 3, 4}), w = leaf({5, 7});
  TensorRef b = mul(x, one(2));
  TensorRef other = half(b, 2);
  TensorRef v = half(b, 1);
  retain_grad(v);
  mul_(v, w);
  check(grad_fn(b)->name() == "torch::autograd::CopySlices" && grad_fn(v)->name() == "AsStridedBackward0",
        "histories moved");
  check(values(b) == Values{2, 20, 42, 8}, "values");
  check(values(sum_grad(b, x, {true})) == Values{2, 10, 14, 2}, "d base / d x");
  check(values(sum_grad(b, w, {true})) == Values{4, 6}, "d base / d w");
  check(values(sum_grad(v, x, {true})) == Values{0, 10, 14, 0}, "d view / d x");
  check(values(sum_grad(other, w, {true})) == Values{0, 6}, "another view sees it");
  TensorRef g = grad({b}, {x}, {false, true}, {ones(4)})[0];
  check(values(g) == Values{2, 10, 14, 2} && values(sum_grad(g, w, {true})) == Values{2, 2},
        "second order through CopySlices");
  backward(b, {}, ones(4));
  check(v->meta()->retains_grad, "retain_grad follows the view");

  // A view of a view, a base without history before.
  TensorRef plain = leaf({1, 2, 3, 4}, false);
  TensorRef vv = part(half(plain, 1), {1}, {1}, 2);
  mul_(vv, leaf({10}));
  check(plain->requires_grad() && grad_fn(plain)->name() == "torch::autograd::CopySlices", "a plain base gets history");
  check(vv->view().base == plain, "views of views know the root");

  // A base that is not contiguous.
  TensorRef y = leaf({1, 2, 3, 4, 5, 6});
  TensorRef m = mul(y, one(1));
  TensorRef turned = TensorImpl::make(m->storage().with_geometry({3, 2}, {1, 3}, 0));
  TensorRef row = part(turned, {2}, {3}, 1);
  TensorRef k = leaf({2, 4});
  mul_(row, k);
  check(values(turned) == Values{1, 4, 4, 20, 3, 6}, "strided values");
  const TensorRef seed = TensorImpl::make(make({3, 2}, {1, 10, 100, 1000, 1, 1}));
  check(values(grad({turned}, {k}, {true}, {seed})[0]) == Values{200, 5000}, "strided base");
  TensorRef gk = grad({turned}, {k}, {false, true}, {seed})[0];
  check(values(gk) == Values{200, 5000}, "strided base in graph mode");
}

void broadcast_view() {
  TensorRef x = leaf({3});
  TensorRef b = mul(x, one(1));
  TensorRef wide = part(b, {4}, {0}, 0);
  mul_(b, one(2));
  const bool sums = bool(engine_ops.sum_to);
  if (!sums)
    engine_ops.sum_to = [](const Storage& g, const Shape& sizes) {
      double s = 0;
      each(g, [&](std::int64_t, double* p) { s += *p; });
      return make(sizes, {s});
    };
  check(values(sum_grad(wide, x)) == Values{8}, "a broadcast view adds its gradients");
}

void refusals() {
  TensorRef x = leaf({1, 2});
  check_raises([&] { mul_(x, one(2)); }, "a leaf Variable that requires grad is being used in an in-place operation");
  TensorRef v = half(x, 0);
  check_raises([&] { mul_(v, one(2)); }, "a view of a leaf Variable that requires grad");
  {
    modes::NoGrad off;
    mul_(x, one(2));
    TensorRef silent = half(x, 0);
    check(!silent->requires_grad() && silent->view().kind == ViewKind::NoGradMode, "view under no_grad");
    v = silent;
  }
  check(values(x) == Values{2, 4}, "an update without recording");
  TensorRef w = leaf({3});
  check_raises([&] { mul_(v, w); },
               "A view was created in no_grad mode and is being modified inplace with grad mode enabled");
  TensorRef b = mul(x, one(1));
  TensorRef multi = wiring::make_view(b, Storage(b->storage()), "unbind", ViewKind::MultiOutput);
  wiring::attach(multi, mul_node(b, one(1), multi->storage()));
  check_raises([&] { mul_(multi, w); },
               "Output 0 of MulBackward0 is a view and is being modified inplace. This view is the "
               "output of a function that returns multiple views");
  mul_(b, one(2));
  check_raises([&] { grad_fn(multi); }, "is a view and its base or another view of its base has been modified inplace");
  TensorRef wide = part(leaf({1}, false), {3}, {0}, 0);
  check_raises([&] { mul_(wide, one(2)); }, "more than one element of the written-to tensor");
  TensorRef made;
  {
    modes::Guard inference(modes::kInference, 0);
    made = mul(one(1), one(2));
  }
  check_raises([&] { mul_(made, one(2)); }, "Inplace update to inference tensor outside InferenceMode");
  check_raises([&] { mul(made, w); }, "Inference tensors cannot be saved for backward");
}

void reused_values() {
  TensorRef x = leaf({2});
  TensorRef y = exp(x);
  TensorRef z = mul(y, y);
  mul_(y, one(2));
  check_raises([&] { backward(z); },
               "MulBackward0: one of the variables needed for gradient computation has been modified");
  check_raises([&] { backward(y); }, "ExpBackward0: one of the variables");
}

// ---- forward mode ---------------------------------------------------------------------------------------------------
/// The tangent of a product as generated code makes it.
TensorRef dual_mul(const TensorRef& a, const TensorRef& b) {
  TensorRef out = mul(a, b);
  if (wiring::has_tangents({&a, &b})) {
    const TensorRef pa = wiring::primal(a), pb = wiring::primal(b);
    wiring::set_tangent(out, add(mul(wiring::tangent_or_zeros(a), pb), mul(wiring::tangent_or_zeros(b), pa)));
  }
  return out;
}

void forward_mode() {
  check_raises([] { wiring::set_tangent(one(1), one(1)); }, "outside of a dual level");
  const std::uint32_t level = dual::enter_level(true);
  check_raises([] { dual::enter_level(true); }, "Nested forward mode AD");
  TensorRef x = leaf({3});
  TensorRef d = wiring::make_view(x, Storage(x->storage()), "make_dual");
  wiring::attach(d, mul_node(x, one(1), d->storage()));
  wiring::set_tangent(d, one(2));
  check(!x->has_tangent() && d->has_tangent(), "the dual carries the tangent, not its primal");
  TensorRef y = dual_mul(d, d);
  check(values(wiring::tangent(y)) == Values{12}, "tangent of a square");
  check(values(sum_grad(wiring::tangent(y), x, {true})) == Values{4}, "reverse over forward");
  check(values(sum_grad(y, x, {true})) == Values{6}, "the dual keeps its history");

  // A base and its views show one tangent.
  TensorRef b = leaf({1, 2, 3, 4}, false);
  TensorRef early = half(b, 1), late = half(b, 2);
  const auto scale = [](const TensorRef& t, const TensorRef& by) {
    TensorRef tangent = wiring::tangent(dual_mul(t, by));
    mul_(t, by);
    if (tangent) wiring::set_tangent(t, tangent);
  };
  TensorRef two = leaf({2, 2}, false);
  wiring::set_tangent(two, leaf({1, 1}, false));
  scale(early, two);
  check(values(b) == Values{1, 4, 6, 4}, "values in place");
  check(b->has_tangent() && values(wiring::tangent(b)) == Values{0, 2, 3, 0}, "the base's tangent");
  check(values(wiring::tangent(late)) == Values{3, 0}, "another view's tangent");
  TensorRef three = leaf({3, 3, 3, 3}, false);
  wiring::set_tangent(three, leaf({0, 0, 0, 0}, false));
  scale(b, three);
  check(values(wiring::tangent(early)) == Values{6, 9}, "the base in place updates its views");

  TensorRef a = leaf({2}), t = leaf({5});
  const auto vjp = [&](const TensorRef& u) {
    GraphGradVec w(1);
    w[0] = mul(u, mul(a, a));  // the vjp of a**3 / 3
    return w;
  };
  TensorRef jt = wiring::tangent_by_transpose(a, vjp, {&t, 1});
  check(values(jt) == Values{20}, "tangent by transposing the vjp");
  check(values(sum_grad(jt, t, {true})) == Values{4} && values(sum_grad(jt, a, {true})) == Values{20},
        "and differentiable");
  {
    modes::NoGrad off;
    jt = wiring::tangent_by_transpose(a, vjp, {&t, 1});
    check(values(jt) == Values{20} && !jt->requires_grad(), "under no_grad it leaves no history");
  }
  dual::exit_level(level);
  check(!d->has_tangent() && !b->has_tangent() && !early->has_tangent(), "leaving the level clears tangents");
  check_raises([&] { dual::exit_level(level); }, "no level is currently active");
}

}  // namespace

int main() {
  fill_view_ops();
  base_in_place();
  view_in_place();
  broadcast_view();
  refusals();
  reused_values();
  forward_mode();
  if (!failures) std::printf("wiring_test: all passed\n");
  return failures;
}
