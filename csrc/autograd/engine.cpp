// Engine: the walk over the graph, dependency counts and the ready order. Knows no op and no host.
#include "autograd/engine.h"

#include <algorithm>

#include "autograd/pass.h"

namespace tp {

EngineOps engine_ops;

namespace {

struct Ready {
  std::uint64_t key;
  Node* node;
  bool operator<(const Ready& o) const { return key < o.key; }
};
struct Frame {
  Frame(Node* n, std::span<Edge> e) : node(n), edges(e) {}
  Node* node;
  std::span<Edge> edges;
  std::size_t next = 0;
  std::uint64_t wanted = 0;
  bool needed = false;
};
/// Buffers whose room the owning pass keeps for the next one.
struct Workspace {
  std::vector<Node*> stack;
  std::vector<Frame> frames;
  std::vector<Ready> ready;
  void clear() { stack.clear(), frames.clear(), ready.clear(); }
};

/// States in the nodes: for the one pass that owns the scratch.
class InNode {
 public:
  InNode() : stamp_(++last_stamp), work_(shared_work) {
    taken = true;
    work_.clear();  // a walk that found what it looked for, or failed, left some
  }
  ~InNode() { taken = false; }
  static bool available() { return !taken; }
  PassState& operator()(Node& n) { return PassAccess::state(n); }
  std::uint32_t stamp() const { return stamp_; }
  Workspace& work() { return work_; }

 private:
  static std::uint32_t last_stamp;
  static bool taken;  // guarded by the host's lock
  static Workspace shared_work;
  std::uint32_t stamp_;
  Workspace& work_;
};
std::uint32_t InNode::last_stamp = 0;
bool InNode::taken = false;
Workspace InNode::shared_work;

/// States in a table: for a pass that runs inside a hook of another one, or beside it on another thread.
class InTable {
 public:
  PassState& operator()(Node& n) { return states_[&n]; }
  std::uint32_t stamp() const { return 1; }
  Workspace& work() { return work_; }

 private:
  std::unordered_map<Node*, PassState> states_;
  Workspace work_;
};

template <class States>
class Pass final : public PassBase {
 public:
  explicit Pass(const Engine::Request& request) : PassBase(request) {}

  void run() override {
    try {
      if (pruned_)
        count_wanted();
      else
        count_all();
      plant_seeds();
      drain();
    } catch (...) {
      abandon();
      throw;
    }
    node = nullptr;
    finish();
  }

  GradSlot* slot_of(const Edge& e) override {
    PassState& s = states_(*e.node);
    return s.stamp == states_.stamp() && s.slots ? s.slots + e.nr : nullptr;
  }

 private:
  /// The state of `n`, reset when this pass meets it first.
  PassState& meet(Node& n, bool& first) {
    PassState& s = states_(n);
    first = s.stamp != states_.stamp();
    if (first) s = {.stamp = states_.stamp()};
    return s;
  }

  void count_all() {
    std::vector<Node*>& stack = states_.work().stack;
    bool first;
    for (const Edge& root : request_.roots) {
      meet(*root.node, first);
      if (first) stack.push_back(root.node.get());
    }
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      std::uint64_t wanted = 0, bit = 1;
      for (Edge& e : n->next_edges()) {
        if (Node* child = e.node.get()) {
          wanted |= bit;
          ++meet(*child, first).dependencies;
          if (first && !child->is_accumulator()) stack.push_back(child);
        }
        bit <<= 1;
      }
      states_(*n).wanted = wanted;
    }
  }

  static bool useful(const PassState& s) { return (s.flags & kNeeded) || (s.flags >> kCaptureShift); }

  void enter(Node& n, PassState& s) {
    s.flags |= kWalked;
    if (!n.is_accumulator() && n.sequence_nr() >= lowest_) states_.work().frames.emplace_back(&n, n.next_edges());
  }

  /// Marks the nodes on a way from the roots to the inputs; only they run. Children before parents, without recursion.
  void count_wanted() {
    bool first;
    captures_.resize(request_.inputs.size());
    for (std::size_t i = 0; i < request_.inputs.size(); ++i) {
      Node* n = request_.inputs[i].node.get();
      if (!n) continue;
      PassState& s = meet(*n, first);
      if (request_.accumulate && n->is_accumulator()) {
        s.flags |= kNeeded;
      } else {
        captures_[i].next = s.flags >> kCaptureShift;
        s.flags = (s.flags & ((1u << kCaptureShift) - 1)) | std::uint32_t(i + 1) << kCaptureShift;
        // backward(inputs=) runs the node of a non-leaf, with its hooks, though nothing goes on from there; grad() does not.
        if (request_.accumulate) s.flags |= kNeeded;
      }
      // A node is younger than what it points to, so nothing older than the oldest input leads to one. Leaves have no age.
      lowest_ = std::min(lowest_, n->is_accumulator() ? 0 : n->sequence_nr());
    }
    std::vector<Frame>& frames = states_.work().frames;
    for (const Edge& root : request_.roots) {
      PassState& r = meet(*root.node, first);
      if (!(r.flags & kWalked)) enter(*root.node, r);
      while (!frames.empty()) {
        Frame& f = frames.back();
        if (f.next == f.edges.size()) {
          PassState& s = states_(*f.node);
          s.wanted = f.wanted;
          if (f.needed) s.flags |= kNeeded;
          frames.pop_back();
          continue;
        }
        Node* child = f.edges[f.next].node.get();
        if (!child) {
          ++f.next;
          continue;
        }
        PassState& c = meet(*child, first);
        if (!(c.flags & kWalked)) {
          enter(*child, c);  // this edge is looked at again when the child is done
          continue;
        }
        if (useful(c)) {
          ++c.dependencies;
          if (f.next < 64) f.wanted |= std::uint64_t(1) << f.next;
          f.needed = true;
        }
        ++f.next;
      }
    }
  }

  void plant_seeds() {
    for (std::size_t i = 0; i < request_.roots.size(); ++i) {
      const Edge& root = request_.roots[i];
      PassState& s = states_(*root.node);
      GradSlot g = seed(i);
      if (pruned_ && !useful(s)) continue;
      if (!s.slots) s.slots = TakenSlots::take(root.node->num_outputs());
      accumulate_into(s.slots[root.nr], std::move(g));
    }
    for (const Edge& root : request_.roots) {
      PassState& s = states_(*root.node);
      if (s.dependencies || (s.flags & kQueued) || (pruned_ && !useful(s))) continue;
      s.flags |= kQueued;
      make_ready(root.node.get());
    }
  }

  void make_ready(Node* n) {
    if (!best_) {
      best_ = n;
      return;
    }
    if (n->sequence_nr() > best_->sequence_nr()) std::swap(n, best_);
    std::vector<Ready>& heap = states_.work().ready;
    heap.push_back({n->sequence_nr(), n});
    std::push_heap(heap.begin(), heap.end());
  }

  /// The youngest ready node; in a chain the heap is never touched.
  Node* next_ready() {
    std::vector<Ready>& heap = states_.work().ready;
    if (TP_LIKELY(heap.empty())) return std::exchange(best_, nullptr);
    if (best_ && best_->sequence_nr() >= heap.front().key) return std::exchange(best_, nullptr);
    Node* n = heap.front().node;
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
    return n;
  }

  void drain() {
    while (Node* n = next_ready()) {
      node = n;
      execute(*n);
    }
  }

  void execute(Node& n) {
    PassState& s = states_(n);
    const std::uint32_t outputs = n.num_outputs();
    TakenSlots taken(std::exchange(s.slots, nullptr), outputs);
    const std::span<GradSlot> slots = taken.all();
    const bool simple =
        !n.meta() && !(s.flags >> kCaptureShift) && slots.size() == 1 && !slots[0].tensor && !create_graph_;
    if (TP_LIKELY(simple)) {
      tick(slots[0].value.numel());
      if (n.is_accumulator()) {
        deferred_.emplace_back(NodeRef::share(&n), std::move(slots[0]));
        return;
      }
      if (TP_LIKELY(n.saved_plain() && !anomaly_ && !n.is_host())) {
        n.validate_versions();
        wanted_inputs = s.wanted;
        GradVec grads = n.apply({&slots[0].value, 1});
        taken.free();  // before the gradients go on: what the node passed through is then held once
        if (!keep_graph_) n.release_saved();
        hand_on(n, s.wanted, grads);
        return;
      }
    } else {
      tick(0);
    }
    SlotVec grads;
    const std::uint64_t wanted = s.wanted;
    const bool more = run_carefully(n, slots, wanted, s.flags, grads);
    taken.free();
    if (more) hand_on(n, wanted, grads);
  }

  template <class Grads>
  void hand_on(Node& n, std::uint64_t wanted, Grads& grads) {
    const std::span<Edge> edges = n.next_edges();
    for (std::size_t i = 0; i < edges.size(); ++i) {
      Node* child = edges[i].node.get();
      if (!child || (i < 64 && !(wanted >> i & 1))) continue;
      PassState& c = states_(*child);
      if (TP_UNLIKELY(pruned_ && i >= 64) && (c.stamp != states_.stamp() || !useful(c))) continue;
      if (i < grads.size()) put(*child, c, edges[i].nr, std::move(grads[i]));
      if (--c.dependencies == 0) make_ready(child);
    }
  }

  static void put_first(Node& child, PassState& c) { c.slots = TakenSlots::take(child.num_outputs()); }
  void put(Node& child, PassState& c, std::uint32_t nr, Storage&& g) {
    if (!g.defined()) return;
    if (!c.slots) {
      if (TP_LIKELY(child.num_outputs() == 1)) {
        c.slots = TakenSlots::take_one(std::move(g));
        return;
      }
      put_first(child, c);
    }
    accumulate_into(c.slots[nr], std::move(g));
  }
  void put(Node& child, PassState& c, std::uint32_t nr, GradSlot&& g) {
    if (!g.tensor) return put(child, c, nr, std::move(g.value));
    if (!c.slots) put_first(child, c);
    accumulate_into(c.slots[nr], std::move(g));
  }

  /// After an error: the slots of every node that never ran go back. All of them are reachable from the roots.
  void abandon() {
    std::vector<Node*>& stack = states_.work().stack;
    const auto leave = [&](Node* n) {
      PassState& s = states_(*n);
      if (s.stamp != states_.stamp()) return;
      s.stamp = 0;
      if (s.slots) TakenSlots::give(std::exchange(s.slots, nullptr), n->num_outputs());
      stack.push_back(n);
    };
    for (const Edge& root : request_.roots)
      if (root.node) leave(root.node.get());
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (Edge& e : n->next_edges())
        if (e.node) leave(e.node.get());
    }
  }

  States states_;
  Node* best_ = nullptr;
  std::uint64_t lowest_ = ~std::uint64_t(0);  // of a pruned pass: nothing older is walked
};

template <class States>
std::vector<TensorRef> run_pass(const Engine::Request& request) {
  // The caller's tensors may die in a hook; the graph must not.
  InlineVec<NodeRef, 2> alive;
  for (const Edge& e : request.roots) alive.push_back(e.node);
  Pass<States> pass(request);
  struct Scope {
    explicit Scope(PassBase* p) : before(running_pass), wanted(wanted_inputs) { running_pass = p; }
    ~Scope() {
      running_pass = before;
      wanted_inputs = wanted;
    }
    PassBase* before;
    std::uint64_t wanted;
  } scope(&pass);
  modes::GradMode mode(request.create_graph);
  pass.run();
  if (request.accumulate) return {};
  return pass.results();
}

}  // namespace

std::vector<TensorRef> Engine::run(const Request& request) {
  for (std::size_t i = 0; const Edge& root : request.roots) {
    if (!root.node) runtime_error("element ", i, " of tensors does not require grad and does not have a grad_fn");
    ++i;
  }
  if (running_pass && running_pass->buffers_exposed)
    runtime_error(
        "backward: a nested backward() or grad() cannot run after input_grad_buffers was read; run it before");
  if (InNode::available()) return run_pass<InNode>(request);
  return run_pass<InTable>(request);
}

namespace {

template <class States>
bool leads_to_older(std::span<const Edge> roots, std::uint64_t age) {
  States states;
  std::vector<Node*>& stack = states.work().stack;
  // True where the node is older; a younger one is walked once.
  const auto meet = [&](const Edge& e) {
    if (!e.node) return false;
    if (e.node->sequence_nr() <= age || e.node->is_accumulator()) return true;
    PassState& s = states(*e.node);
    if (s.stamp != states.stamp()) {
      s.stamp = states.stamp();
      stack.push_back(e.node.get());
    }
    return false;
  };
  for (const Edge& root : roots)
    if (meet(root)) return true;
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    for (const Edge& e : n->next_edges())
      if (meet(e)) return true;
  }
  return false;
}

}  // namespace

bool Engine::reaches_older(std::span<const Edge> roots, std::uint64_t age) {
  return InNode::available() ? leads_to_older<InNode>(roots, age) : leads_to_older<InTable>(roots, age);
}

void Engine::queue_callback(std::function<void()> f) {
  if (!running_pass) runtime_error("Final callbacks can only be installed during backward pass.");
  running_pass->callbacks.push_back(std::move(f));
}

bool Engine::running() { return running_pass != nullptr; }

const Node* Engine::current_node() { return running_pass ? running_pass->node : nullptr; }

TensorRef Engine::input_buffer(std::size_t i) {
  PassBase* pass = running_pass;
  if (!pass || !pass->node) runtime_error("input_grad_buffers: only available while a backward is running");
  if (pass->create_graph()) runtime_error("input_grad_buffers: not available with create_graph=True");
  if (pass->anomaly()) runtime_error("input_grad_buffers: not available in anomaly mode");
  if (pass->node->meta() && !pass->node->meta()->post_hooks.empty())
    runtime_error("input_grad_buffers: not available on a node with a post-hook");
  const std::span<Edge> edges = pass->node->next_edges();
  if (i >= edges.size() || !edges[i].node) return nullptr;
  GradSlot* slot = pass->slot_of(edges[i]);
  if (!slot || slot->tensor || !slot->value.defined() || !slot->value.unique() || !slot->value.is_dense())
    return nullptr;
  pass->buffers_exposed = true;
  return TensorImpl::make(slot->value);
}

}  // namespace tp
