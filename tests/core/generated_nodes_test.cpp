// Walks every generated backward class by its contract: schema, edges, slots, lifecycle; then a few of them with values.
// Exits with the failures.
#include <cctype>
#include <cmath>
#include <set>

#include "all_ops.h"
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

// The words of formulas about sizes, as an author of an op calls them.
void words() {
  using namespace ops;
  using List = std::vector<double>;
  check(normal_dims("op", {2, -3}, 3) == Dims{0, 2} && normal_dims("op", {}, 2) == Dims{0, 1}, "dims in order");
  check(normal_dims("op", {-1}, 0) == Dims(), "a number has no dims");
  check_raises([] { normal_dims("op", {0, 1, -3}, 3); }, "op: dim 0 appears multiple times");
  check_raises([] { normal_dims("op", {0, 3}, 3); }, "expected to be in range of [-3, 2], but got 3");
  check_raises([] { normal_dim("op", -4, 3); }, "but got -4");
  check(keepdim_shape({2, 3, 4}, {0, -1}) == Shape{1, 3, 1} && keepdim_shape({2, 3}, {}) == Shape{1, 1}, "keepdim");
  check(reduced_count(Shape{2, 3, 4}, Dims{0, 2}) == 8 && reduced_count(Shape{2, 3}, std::nullopt) == 6 &&
            reduced_count(Shape(), Dims{0}) == 1,
        "reduced_count");
  check(flatten_shape({2, 3, 4, 5}, 1, 2) == Shape{2, 12, 5} && flatten_shape({2, 3}, 0, -1) == Shape{6} &&
            flatten_shape({2, 3, 4}, 1, 1) == Shape{2, 3, 4} && flatten_shape({}, 0, 0) == Shape{1},
        "flatten_shape");
  check_raises([] { flatten_shape({2, 3}, 1, 0); }, "start_dim 1 comes after end_dim 0");
  check(tile_shape({3}, {2, 4}) == Shape{2, 1, 4, 3} && tile_dims({3}, {2, 4}) == Dims{0, 1, 2}, "tiles");
  check(trailing_pads({2, 3}, {4, 4}) == Dims{0, 1, 0, 2}, "trailing_pads");
  check(along_shape({2, 1, 4}, {1, 3, 9}, 2) == Shape{2, 3, 4} && along_shape({2, 3}, {5, 1}, 0) == Shape{2, 3},
        "along_shape");
  check_raises([] { along_shape({2, 3}, {5, 2}, 0); }, "do not broadcast in dimension 1");
  check(class_shape({2, 3, 4}) == Shape{1, 3, 1} && class_shape({5}) == Shape{5} && class_shape({}) == Shape(),
        "class_shape");
  check(last_dims(2) == Dims{-2, -1} && other_dims(3) == Dims{0, 2} && channel_sizes(4, 2) == Shape{4, 1, 1},
        "lists of dims");
  check(broadcast_shape({2, 1, 3}, {4, 1}) == Shape{2, 4, 3} && broadcast_shape({3}, {2, 1}) == Shape{2, 3} &&
            broadcast_shape({1}, {0}) == Shape{0},
        "broadcast_shape");
  check_raises([] { broadcast_shape({2, 3}, {2}); }, "sizes [2, 3] and [2] do not broadcast together");
  check(fft_dims(std::nullopt, Dims{8}, 3) == Dims{2} && fft_dims(std::nullopt, std::nullopt, 2) == Dims{0, 1} &&
            fft_dims(std::nullopt, Dims(), 2) == Dims{0, 1} && fft_dims(Dims{0}, Dims{8}, 3) == Dims{0},
        "fft_dims");
  check(fft_sizes({2, 3, 4}, {0, -1}, Dims{-1, 8}) == Dims{2, 8} && fft_sizes({2, 3}, {1}, std::nullopt) == Dims{3} &&
            fft_sizes({2, 3, 4}, {1, 2}, Dims{7}) == Dims{7, 4},
        "fft_sizes");
  check(flip_norm("ortho") == "ortho" && flip_norm("forward") == "backward" && flip_norm(std::nullopt) == "forward",
        "flip_norm");
  check(first_sizes({2, 3, 4}, 1) == Dims{2} && first_sizes({2, 3, 4}, -1) == Dims{2, 3} &&
            first_sizes({2, 3}, 5) == Dims{2, 3} && first_sizes({2, 3}, 0) == Dims(),
        "sizes[:n]");
  check(last_sizes({2, 3, 4}, 1) == Dims{3, 4} && last_sizes({2, 3, 4}, -1) == Dims{4} &&
            last_sizes({2, 3}, 0) == Dims{2, 3} && last_sizes({2, 3}, -5) == Dims{2, 3} && last_sizes({2}, 1) == Dims(),
        "sizes[n:]");
  check(without_dims(3, Dims{1, -1}) == Dims{0} && without_dims(2, Dims{0}) == Dims{1} &&
            without_dims(2, std::nullopt) == Dims{0, 1},
        "without_dims");
  check(first_of_size({2, 3, 3}, 3) == 1 && first_of_size({2}, 3) == 1 && within_sizes({1, 2}, 1) &&
            !within_sizes({1, 0}, 1),
        "sizes found and bounded");
  check(wrap_dim(-2, 2) == 0 && wrap_dim(1, 2) == 1 && wrap_dim(-1, 0) == 0, "wrap_dim");
  check_raises([] { wrap_dim(2, 2); }, "dimension 2 is out of range for 2 dimensions");
  check_raises([] { wrap_dim(-3, 2); }, "dimension -3 is out of range for 2 dimensions");
  check(per_dim({7}, 3) == Dims{7, 7, 7} && per_dim({1, 2}, 2) == Dims{1, 2}, "per_dim");
  check_raises([] { per_dim({1, 2}, 3); }, "[1, 2] has 2 numbers for 3 dimensions");
  check(starts({2, 3}) == Dims{0, 2, 5} && starts({}) == Dims{0}, "starts");
  check(kept_sizes({kOwnSize}, {4, 5}) == Dims{4, 5} && kept_sizes({9, kOwnSize}, {4, 5}) == Dims{9, 5}, "kept_sizes");
  check(resized({4, 6}, Dims{3}, std::nullopt) == Dims{3, 3} &&
            resized({4, 6}, std::nullopt, List{0.5}) == Dims{2, 3} &&
            resized({4, 6}, std::nullopt, List{1.5, 0.34}) == Dims{6, 2},
        "resized");
  check(kept_scales(2, List{3}, false) == List{3, 3} && kept_scales(2, List{3, 4}, false) == List{3, 4} &&
            kept_scales(2, List{3}, true).empty() && kept_scales(2, std::nullopt, false).empty(),
        "kept_scales");
  check(unpool_sizes({4, 6}, {2, 2}, Dims{1, 5, 7}) == Dims{5, 7} && unpool_sizes({4}, {2}, Dims{3}) == Dims{3},
        "unpool_sizes");
  check_raises([] { unpool_sizes({4}, {2}, Dims{2}); }, "2 is not between 2 and 6");
  check_raises([] { unpool_sizes({4}, {2}, Dims{6}); }, "6 is not between 2 and 6");
  check_raises([] { unpool_sizes({4, 4}, {2, 2}, Dims{5}); }, "names fewer than 2 sizes");
  check(lengths_along({{2, 3}, {0}, {4, 3}}, 0) == Dims{2, 0, 4} && invert_permutation({2, 0, -2}) == Dims{1, 2, 0},
        "lengths and permutations");
  check(at(Dims{5, 6}, -1) == 6 && at(Dims{5, 6}, 0) == 5 && at(List{1, 2}, 1) == 2, "items");
  check_raises([] { at(Dims{5, 6}, 2); }, "index 2 is outside [5, 6]");
  check_raises([] { at(Dims{5, 6}, -3); }, "index -3 is outside [5, 6]");
  check_raises([] { at(List{1, 2}, 2); }, "the list has 2 items; it needs at least 3");
  check_raises([] { at(List{1, 2}, -1); }, "the list has 2 items");
  check(floor_div(7, 2) == 3 && floor_div(-7, 2) == -4 && floor_div(7, -2) == -4 && floor_div(-7, -2) == 3 &&
            floor_div(-8, 2) == -4 && floor_mod(-7, 2) == 1 && floor_div(0, -3) == 0,
        "floor_div");
  check_raises([] { floor_div(3, 0); }, "3 // 0");
}

// A value that a hook keeps: unpacked as memory with the version it has then.
struct Held : PackedValue {
  explicit Held(TensorRef t) : value(std::move(t)) {}
  TensorRef unpack() override { return value; }
  TensorRef value;
};

void direct_calls() {
  TensorRef x = leaf({2, 3}), w = leaf({5, 7});
  TensorRef y = ops::mul(x, w);
  auto& mul = node_of<ops::MulBackward>(y);
  TensorRef other = leaf({10, 100}, false);
  other->storage().bump_version();
  mul.saved_slot(1).pack(std::make_unique<Held>(other));
  check(!mul.saved_plain(), "a packed value is not plain");
  Storage g = make({2}, {1, 1});
  for (int round = 0; round < 2; ++round) {
    mul.validate_versions();
    Storage given = g;
    check(near(TensorImpl::make(mul.apply({&given, 1})[0]), {10, 100}), "apply reads what was unpacked");
  }
  other->storage().bump_version();
  check_raises([&] { mul.validate_versions(); }, "is at version 2; expected version 1");
  mul.saved_slot(1).pack(std::make_unique<Held>(nullptr));
  check_raises([&] { mul.apply({&g, 1}); }, "the unpack hook of saved 'other' returned no tensor");

  // Edges can be set together.
  TensorRef a = leaf({1, 1}), b = leaf({1, 1});
  NodeRef node = make_node<ops::MulBackward>();
  Edge edges[] = {gradient_edge(a), gradient_edge(b), gradient_edge(x)};
  node->set_next_edges({edges, 1});
  check(leaf_of_edge(node->next_edges()[0]) == a && !node->next_edges()[1].node, "one edge");
  node->set_next_edges({edges, 2});
  check(leaf_of_edge(node->next_edges()[1]) == b && node->edge_mask() == 3, "all edges");
  check_raises([&] { node->set_next_edges(edges); }, "set_next_edges got 3 edges for 2 inputs");
}

}  // namespace

int main() {
  every_class();
  fields();
  second_order_of_intermediate();
  views_and_bases();
  words();
  direct_calls();
  if (!failures) std::printf("generated_nodes_test: all passed\n");
  return failures;
}
