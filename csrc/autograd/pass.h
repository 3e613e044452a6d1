// Pass: one backward walk. Internal to the engine: requests and results are in engine.h.
#pragma once
#include <chrono>
#include <unordered_map>

#include "autograd/accumulate_grad.h"
#include "autograd/engine.h"
#include "core/errors.h"

namespace tp {

struct PassAccess {
  static PassState& state(Node& n) { return n.scratch_; }
};

/// Owns the slots of one node while it runs, so that they go back to the pool on every exit.
class TakenSlots {
 public:
  TakenSlots(GradSlot* slots, std::uint32_t n) : slots_(slots), n_(n) {}
  TakenSlots(const TakenSlots&) = delete;
  ~TakenSlots() { free(); }
  void free() {
    if (slots_) give(slots_, n_);
    slots_ = nullptr;
  }
  std::span<GradSlot> all() const { return {slots_, slots_ ? n_ : 0}; }

  static GradSlot* take(std::uint32_t n) {
    GradSlot* p = static_cast<GradSlot*>(room(n));
    for (std::uint32_t i = 0; i < n; ++i) new (p + i) GradSlot();
    return p;
  }
  static GradSlot* take_one(Storage&& value) {
    return new (memory::small_alloc(sizeof(GradSlot))) GradSlot(std::move(value));
  }
  static void give(GradSlot* p, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) p[i].~GradSlot();
    const std::size_t bytes = n * sizeof(GradSlot);
    if (bytes <= memory::kSmallMax)
      memory::small_free(p, bytes);
    else
      ::operator delete(p);
  }

 private:
  static void* room(std::uint32_t n) {
    const std::size_t bytes = n * sizeof(GradSlot);
    return bytes <= memory::kSmallMax ? memory::small_alloc(bytes) : ::operator new(bytes);
  }
  GradSlot* slots_;
  std::uint32_t n_;
};

using SlotVec = InlineVec<GradSlot, 3>;

/// Everything of a pass that does not depend on where node states live.
class PassBase {
 public:
  explicit PassBase(const Engine::Request& request);
  PassBase(const PassBase&) = delete;
  virtual ~PassBase() = default;

  virtual void run() = 0;
  /// The slot that collects gradients for `e`, or null while nothing arrived.
  virtual GradSlot* slot_of(const Edge& e) = 0;
  std::vector<TensorRef> results();

  Node* node = nullptr;       // running now
  bool buffers_exposed = false;
  std::vector<std::function<void()>> callbacks;
  bool create_graph() const { return create_graph_; }
  bool anomaly() const { return anomaly_; }

 protected:
  enum Flag : std::uint32_t { kQueued = 1, kNeeded = 2, kWalked = 4, kCaptureShift = 8 };
  struct Capture {
    std::uint32_t next = 0;  // 1 + index of the next capture of the same node
    GradSlot slot;
  };
  struct Deferred {
    Deferred() = default;
    Deferred(NodeRef n, GradSlot s) : node(std::move(n)), slot(std::move(s)) {}
    NodeRef node;
    GradSlot slot;
  };

  /// A node with hooks, captures, several outputs, or in graph mode. False: nothing to hand on.
  bool run_carefully(Node& n, std::span<GradSlot> slots, std::uint64_t wanted, std::uint32_t flags, SlotVec& grads);
  void accumulate_into(GradSlot& slot, GradSlot&& g);
  void accumulate_into(GradSlot& slot, Storage&& g);
  GradSlot seed(std::size_t i);
  void finish();
  void look_around();  // about every millisecond: signals, other threads

  /// Counts work done; cheap enough for every node.
  void tick(std::int64_t elements) {
    budget_ -= 48 + elements;
    if (TP_UNLIKELY(budget_ < 0)) look_around();
  }

  const Engine::Request& request_;
  const bool create_graph_;
  const bool keep_graph_;
  const bool anomaly_;
  const bool pruned_;
  PooledVec<Capture> captures_;   // one per input
  InlineVec<Deferred, 2> deferred_;  // leaves are updated when the whole walk has succeeded

 private:
  void tensor_hooks(Node& n, std::span<GradSlot> slots);
  void retained(Node& n, std::span<GradSlot> slots);
  void capture(Node& n, std::span<GradSlot> slots, std::uint32_t flags);
  void accumulate_leaf(Node& n, GradSlot& slot);
  void apply_node(Node& n, std::span<GradSlot> slots, std::uint64_t wanted, SlotVec& grads);
  void validate(Node& n, std::uint64_t wanted, GraphGradVec& grads);
  GradSlot to_slot(TensorRef t) const;

  std::int64_t budget_ = 1 << 14;
  std::chrono::steady_clock::time_point last_look_ = {};
};

/// The tensor a slot holds; a plain value becomes one (and stays in the slot as such).
const TensorRef& as_tensor(GradSlot& slot);
/// Adds a gradient that goes on elsewhere into `.grad` of a tensor that retains it (accumulate_grad.cpp).
void retain_gradient(const TensorRef& t, const GradSlot& slot);
/// Raises where a gradient contains nan; anomaly mode.
void check_nan(const Node& n, std::span<const GradSlot> grads);
/// Tells where the forward of `n` ran, as a warning.
void warn_anomaly(const Node& n);

extern thread_local constinit PassBase* running_pass;

}  // namespace tp
