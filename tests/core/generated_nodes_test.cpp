// Walks every generated backward class by its contract: schema, edges, slots, lifecycle; then a few of them with values.
// Exits with the failures.
#include <cctype>
#include <cmath>
#include <set>

#include "node_factories.h"
#include "toy_ops.h"

using namespace toy;

namespace {

using Values = std::vector<double>;

void every_class() {
  std::set<std::string> names;
  for (const ops::NodeFactory& f : ops::kNodeFactories) {
    const std::string cls = f.cls;
    NodeRef node = f.make();
    check(names.insert(cls).second, cls + ": listed once");
    check(!f.schema->name.empty() && f.schema->version >= 1, cls + ": schema_v1 names its op");
    check(f.schema->signature.substr(0, f.schema->name.size()) == f.schema->name,
          cls + ": the signature begins with the name");
    // Overloads are numbered: MulBackward is MulBackward0 in Python, the next one of the same op is ...Backward1.
    const bool numbered = std::isdigit(static_cast<unsigned char>(cls.back()));
    check(node->name() == (numbered ? cls : cls + "0"), cls + ": Python's name is " + node->name());
    check(node->schema() == f.schema, cls + ": the node knows its schema");
    check(node->num_outputs() >= 1, cls + ": has outputs");
    for (Edge& e : node->next_edges()) check(!e.node, cls + ": a fresh node has no edges");
    check(node->edge_mask() == 0, cls + ": nor wants gradients");
    for (std::size_t k = 0; k < node->saved_count(); ++k) {
      const SavedSlot slot = node->saved_at(k);
      check(slot.value && !slot.value->saved() && !slot.value->released(), cls + ": a fresh slot is empty");
      check(slot.name && *slot.name, cls + ": a slot has a name");
    }
    node->validate_versions();
    check(node->saved_plain(), cls + ": nothing saved is plain");

    // Weak leaf, and a slot through its life.
    TensorRef leaf_tensor = leaf({1, 2});
    const std::span<Edge> edges = node->next_edges();
    if (!edges.empty()) {
      node->set_next_edge(0, gradient_edge(leaf_tensor));
      check(node->edge_mask() == 1 && leaf_of_edge(edges[0]) == leaf_tensor, cls + ": an edge to a leaf");
    }
    TensorRef value = leaf({3, 4}, false);
    for (std::size_t k = 0; k < node->saved_count(); ++k) node->saved_at(k).value->save(value);
    node->validate_versions();
    value->storage().bump_version();
    if (node->saved_count())
      check_raises([&] { node->validate_versions(); }, "has been modified by an inplace operation: saved '");
    node->release_saved();
    node->validate_versions();
    for (std::size_t k = 0; k < node->saved_count(); ++k)
      check(node->saved_at(k).value->released() && !node->saved_at(k).value->saved(), cls + ": released");
    check(value->storage().unique(), cls + ": released memory is let go");
    leaf_tensor.reset();
    if (!edges.empty()) check(!leaf_of_edge(edges[0]), cls + ": the leaf is held weakly");
  }
  check(names.size() > 100, "a catalogue of classes");
  std::printf("%zu generated classes\n", names.size());
}

template <class T>
T& node_of(const TensorRef& t) {
  return static_cast<T&>(*grad_fn(t));
}
bool near(const TensorRef& t, const Values& expected) {
  const Values v = values(t);
  if (v.size() != expected.size()) return false;
  for (std::size_t i = 0; i < v.size(); ++i)
    if (std::abs(v[i] - expected[i]) > 1e-12 * (1 + std::abs(expected[i]))) return false;
  return true;
}

void fields() {
  TensorRef x = leaf({0.5, -1}), w = leaf({2, 3});
  TensorRef y = ops::tanh(x);
  auto& tanh = node_of<ops::TanhBackward>(y);
  static_assert(ops::TanhBackward::kNumInputs == 1 && ops::MulBackward::kNumInputs == 2);
  static_assert(ops::TanhBackward::schema_v1.name == "tanh");
  check(tanh.out_shape() == Shape{2} && tanh.input_shape(0) == Shape{2} && tanh.dtype() == Dtype::F64,
        "shapes and dtype");
  check(tanh.device() == Device::CPU && tanh.input_dtype(0) == Dtype::F64, "device and input dtype");
  check(tanh.input_tensor(0) == x && tanh.retainable_inputs().size() == 1, "input_tensors_ finds the leaf");
  check(tanh.saved_slot(0).saved() && tanh.saved_slot(0).get(tanh, "out").same_view(y->storage()),
        "tanh saves its output");
  check(y->use_count() == 1, "and holds the output's tensor weakly");

  TensorRef z = ops::mul(y, w);
  auto& mul = node_of<ops::MulBackward>(z);
  check(mul.saved_slot(0).get(mul, "input").same_view(y->storage()) &&
            mul.saved_slot(1).get(mul, "other").same_view(w->storage()),
        "slot order");
  check(mul.input_tensor(1) == w, "a saved leaf comes back as itself");
  TensorRef scaled = ops::mul(y, leaf({4, 4}, false));
  check(!node_of<ops::MulBackward>(scaled).saved_slot(0).saved(), "what no gradient reads is not saved");

  Storage g = make({2}, {1, 10});
  tanh.validate_versions();
  GradVec grads = tanh.apply({&g, 1});
  check(grads.size() == 1 &&
            near(TensorImpl::make(grads[0]), {1 - std::pow(std::tanh(0.5), 2), 10 * (1 - std::pow(std::tanh(1), 2))}),
        "apply");
  TensorRef gt = TensorImpl::make(g);
  GraphGradVec graph = call_node(tanh, {&gt, 1});
  check(graph[0]->requires_grad() && near(graph[0], values(grads[0])), "apply_for_graph");
  tanh.release_saved();
  check(!tanh.saved_slot(0).saved(), "release_saved");
  check_raises([&] { tanh.apply({&g, 1}); }, "TanhBackward0: Trying to backward through the graph a second time");

  // Broadcast inputs keep their own sizes.
  TensorRef row = leaf({1, 2, 3}), one = leaf({2});
  TensorRef product = ops::mul(row, one);
  check(node_of<ops::MulBackward>(product).input_shape(1) == Shape{1}, "input_shapes_ of a broadcast input");
  check(near(grad({product}, {one}, {}, {leaf({1, 1, 1}, false)})[0], {6}), "and its gradient is summed");
}

void second_order_of_intermediate() {
  // The output of tanh dies at once: its saved value must come back with history.
  TensorRef x = leaf({0.3});
  TensorRef s = ops::sum(ops::tanh(x), {}, false, std::nullopt);
  TensorRef g = grad({s}, {x}, {false, true})[0];
  TensorRef gg = grad({g}, {x})[0];
  const double t = std::tanh(0.3);
  check(near(g, {1 - t * t}) && near(gg, {-2 * t * (1 - t * t)}), "grad of grad through a dead intermediate");
}

void views_and_bases() {
  TensorRef x = leaf({1, 2, 3, 4});
  TensorRef b = ops::mul(x, leaf({1, 1, 1, 1}, false));
  std::vector<TensorRef> parts = ops::unbind(b, 0);
  check(parts.size() == 4 && grad_fn(parts[2])->name() == "UnbindBackward0" && parts[2]->output_nr() == 2, "unbind");
  check(near(grad({parts[2]}, {x}, {true})[0], {0, 0, 1, 0}), "one of several outputs");
  check_raises([&] { ops::mul_(parts[0], leaf({2}, false)); },
               "Output 0 of UnbindBackward0 is a view and is being modified inplace");
  TensorRef part = ops::narrow(b, 0, 1, 2);
  TensorRef w = leaf({5, 7});
  ops::mul_(part, w);
  check(near(b, {1, 10, 21, 4}) && grad_fn(b)->name() == "torch::autograd::CopySlices", "in place through a view");
  TensorRef seed = leaf({1, 10, 100, 1000}, false);
  auto g = grad({b}, {x, w}, {false, true}, {seed});
  check(near(g[0], {1, 50, 700, 1000}) && near(g[1], {20, 300}), "its gradients");
  check(near(grad({g[0]}, {w}, {}, {leaf({1, 1, 1, 1}, false)})[0], {10, 100}), "and second order");
  check_raises([&] { grad_fn(parts[1]); }, "its base or another view of its base has been modified inplace");
}

}  // namespace

int main() {
  every_class();
  fields();
  second_order_of_intermediate();
  views_and_bases();
  if (!failures) std::printf("generated_nodes_test: all passed\n");
  return failures;
}
