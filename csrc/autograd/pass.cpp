// The slow half of a pass: hooks, captures, graph mode, leaves. The loop over nodes is in engine.cpp.
#include "autograd/pass.h"

#include <unordered_set>

#include "autograd/dual_level.h"

namespace tp {

thread_local constinit PassBase* running_pass = nullptr;

namespace {

/// Gradients whose memory alone says everything. History does not count: it is followed only with create_graph.
bool plain(const TensorRef& t) { return !t->is_python_subclass() && !t->is_batched() && !t->has_tangent(); }

Storage take_storage(TensorRef t) {
  if (t->use_count() == 1 && !t->host_object) return std::move(t->storage());
  return t->storage();
}

bool shared(const GradSlot& s) {
  // Memory that a recorded graph saved is guarded by its version; another handle on a plain gradient is not.
  if (s.tensor) return s.tensor->use_count() > 1 || (!s.tensor->requires_grad() && !s.tensor->storage().unique());
  return s.value.defined() && !s.value.unique();
}

/// Host code may write into what it is given; nobody else may see that.
void make_private(GradSlot& s) {
  if (!shared(s)) return;
  if (s.tensor)
    s.tensor = engine_ops.clone_graph(s.tensor);
  else
    s.value = engine_ops.clone(s.value);
}

}  // namespace

const TensorRef& as_tensor(GradSlot& slot) {
  if (!slot.tensor && slot.value.defined()) slot.tensor = TensorImpl::make(std::move(slot.value));
  return slot.tensor;
}

PassBase::PassBase(const Engine::Request& request)
    : request_(request),
      create_graph_(request.create_graph),
      keep_graph_(request.keep_graph),
      anomaly_(modes::any(modes::kAnomaly)),
      pruned_(!request.inputs.empty()) {}

GradSlot PassBase::to_slot(TensorRef t) const {
  GradSlot s;
  if (!t) return s;
  if (create_graph_ || !plain(t))
    s.tensor = std::move(t);
  else
    s.value = take_storage(std::move(t));
  return s;
}

GradSlot PassBase::seed(std::size_t i) {
  const Edge& root = request_.roots[i];
  TensorRef given = request_.seeds[i];
  const TensorRef of = request_.root_tensors.empty() ? TensorRef() : request_.root_tensors[i];
  const Storage like = of ? Storage(BlockRef(), of->dtype(), of->sizes()) : root.node->output_like(root.nr);
  const bool known = like.dim() > 0 || like.numel() == 1;
  if (!given) {
    if (!known) runtime_error("backward: output ", i, " does not tell its sizes; give its gradient explicitly");
    if (like.numel() != 1) runtime_error("grad can be implicitly created only for scalar outputs");
    if (is_complex(like.dtype()))
      runtime_error("grad can be implicitly created only for real scalar outputs but got ", dtype_name(like.dtype()));
    Storage ones = ones_storage(like.sizes(), like.dtype());
    return create_graph_ ? to_slot(TensorImpl::make(std::move(ones))) : GradSlot(std::move(ones));
  }
  if (known) {
    if (!(given->sizes() == like.sizes()))
      runtime_error("Mismatch in shape: grad_output[", i, "] has a shape of ", given->sizes(), " and output[", i,
                    "] has a shape of ", like.sizes(), ".");
    if (is_complex(like.dtype()) != is_complex(given->dtype()))
      runtime_error(
          "For complex Tensors, both grad_output and output are required to have the same dtype. "
          "Mismatch in dtype: grad_output[",
          i, "] has a dtype of ", dtype_name(given->dtype()), " and output[", i, "] has a dtype of ",
          dtype_name(like.dtype()), ".");
    if (given->dtype() != like.dtype()) given = engine_ops.cast_graph(given, like.dtype());
  }
  return to_slot(std::move(given));
}

void PassBase::accumulate_into(GradSlot& slot, Storage&& g) {
  if (slot.tensor) {
    slot.tensor = engine_ops.add_graph(slot.tensor, TensorImpl::make(std::move(g)));
    return;
  }
  if (!slot.value.defined()) {
    slot.value = std::move(g);
    return;
  }
  // In place only into memory nobody else holds: a sibling's gradient is often the same block.
  const bool alike = slot.value.dtype() == g.dtype() && slot.value.sizes() == g.sizes();
  const auto own = [](const Storage& s) { return s.unique() && (s.is_contiguous() || s.is_dense()); };
  if (alike && own(slot.value)) {
    engine_ops.add_inplace(slot.value, g);
  } else if (alike && own(g)) {
    engine_ops.add_inplace(g, slot.value);
    slot.value = std::move(g);
  } else {
    slot.value = engine_ops.add(slot.value, g);
  }
}

void PassBase::accumulate_into(GradSlot& slot, GradSlot&& g) {
  if (!g.defined()) return;
  if (!g.tensor) return accumulate_into(slot, std::move(g.value));
  if (!slot.defined()) {
    slot = std::move(g);
    return;
  }
  slot.tensor = engine_ops.add_graph(as_tensor(slot), g.tensor);
}

namespace {

/// What a hook put in place of a gradient has its sizes and dtype, and nothing stands where nothing was.
void check_replaced(const HookRef& hook, const TensorRef& was, const TensorRef& is) {
  if (!is || is == was) return;
  if (!was) runtime_error(hook->name(), ": can't replace a None gradient with a non-None value");
  if (!(is->sizes() == was->sizes())) runtime_error(hook->name(), " has changed the size of value");
  if (is->dtype() != was->dtype()) runtime_error(hook->name(), " has changed the type of value");
}
void check_replaced(const HookRef& hook, const std::vector<TensorRef>& before, const GraphGradVec& after) {
  if (before.size() != after.size())
    runtime_error(hook->name(), " has changed the number of gradients from ", before.size(), " to ", after.size());
  const TensorRef* is = after.begin();
  for (const TensorRef& was : before) check_replaced(hook, was, *is++);
}

void run_prehooks(const NodeMeta& meta, GraphGradVec& outputs) {
  const std::vector<HookRef> hooks = meta.pre_hooks;  // a hook may remove itself
  for (const HookRef& h : hooks) {
    const std::vector<TensorRef> before(outputs.begin(), outputs.end());
    h->on_outputs(outputs);
    check_replaced(h, before, outputs);
  }
}

}  // namespace

void PassBase::tensor_hooks(Node& n, std::span<GradSlot> slots) {
  const std::vector<TensorHook> hooks = n.meta()->tensor_hooks;  // a hook may remove itself
  for (const TensorHook& h : hooks) {
    GradSlot& s = slots[h.output_nr];
    make_private(s);
    const TensorRef before = as_tensor(s);  // null where no gradient arrived: the pass came here all the same
    TensorRef after = h.hook->on_gradient(before);
    check_replaced(h.hook, before, after);
    if (after) s.tensor = std::move(after);
  }
  for (GradSlot& s : slots)
    if (s.tensor) s = to_slot(std::move(s.tensor));
}

void PassBase::retained(Node& n, std::span<GradSlot> slots) {
  const auto list = n.meta()->retain_grad;
  for (const auto& [nr, impl] : list) {
    if (slots[nr].defined()) retain_gradient(TensorRef::share(impl), slots[nr]);
  }
}

void PassBase::capture(Node&, std::span<GradSlot> slots, std::uint32_t flags) {
  for (std::uint32_t at = flags >> kCaptureShift; at; at = captures_[at - 1].next)
    captures_[at - 1].slot = slots[request_.inputs[at - 1].nr];
}

void PassBase::accumulate_leaf(Node& n, GradSlot& slot) {
  NodeMeta* meta = n.meta();
  const bool watched = meta && (!meta->post_hooks.empty() || !meta->accumulated_hooks.empty());
  if (!watched) {
    if (slot.defined()) deferred_.emplace_back(NodeRef::share(&n), std::move(slot));
    return;
  }
  GraphGradVec outputs;
  if (!meta->post_hooks.empty()) {
    GradSlot copy = slot;
    outputs.push_back(as_tensor(copy));
  }
  if (slot.tensor)
    static_cast<AccumulateGrad&>(n).take_gradient(slot.tensor);
  else if (slot.defined())
    n.apply({&slot.value, 1});
  static_cast<AccumulateGrad&>(n).run_accumulated_hooks();
  const std::vector<HookRef> post = meta->post_hooks;
  for (const HookRef& h : post) {
    GraphGradVec none;
    h->on_inputs(none, outputs);
  }
}

void PassBase::validate(Node& n, std::uint64_t wanted, GraphGradVec& grads) {
  const auto like = [&](const Edge& e, std::size_t i) -> Storage {
    if (!e.node || (i < 64 && !(wanted >> i & 1))) return {};
    const TensorRef leaf = leaf_of_edge(e);
    if (leaf && i < grads.size() && grads[i]) {
      const TensorRef& g = grads[i];
      Dtype dtype;
      const bool any = !wanted_dtype(leaf, dtype);
      if (g->sizes() == leaf->sizes() && (any || g->dtype() == dtype)) return {};  // as it should be
      if (any) return Storage(BlockRef(), g->dtype(), leaf->sizes());
    }
    return e.node->output_like(e.nr);
  };
  InlineVec<Storage, 3> expected;
  for (const Edge& e : n.next_edges()) expected.push_back(like(e, expected.size()));
  validate_gradients(n, grads, expected);
}

void PassBase::apply_node(Node& n, std::span<GradSlot> slots, std::uint64_t wanted, SlotVec& grads) {
  NodeMeta* meta = n.meta();
  const bool host = n.is_host();
  const bool pre = meta && !meta->pre_hooks.empty();
  const bool post = meta && !meta->post_hooks.empty();
  if (host || pre)
    for (GradSlot& s : slots) make_private(s);
  bool graph = create_graph_ || host || !n.saved_plain();
  for (const GradSlot& s : slots) graph |= bool(s.tensor);

  GraphGradVec outputs;
  if (graph || pre || post)
    for (GradSlot& s : slots) outputs.push_back(as_tensor(s));
  if (pre) {
    run_prehooks(*meta, outputs);
    for (const TensorRef& t : outputs) graph |= t && !plain(t);
  }
  bool any = host;  // a host function sees absent gradients; a formula is linear in what it gets
  for (const TensorRef& t : outputs) any |= bool(t);
  if (outputs.empty())
    for (const GradSlot& s : slots) any |= s.defined();
  if (any) n.validate_versions();
  wanted_inputs = wanted;
  GraphGradVec inputs;
  if (!any) {
    grads.resize(n.next_edges().size());
    inputs.resize(grads.size());
  } else if (graph) {
    for (GradSlot& s : slots) s.tensor = nullptr;  // the node, not the slot, decides how long they live
    inputs = n.apply_for_graph(outputs);
    buffers_exposed = false;
    if (!post) outputs.clear();
  } else {
    InlineVec<Storage, 3> plain_outputs;
    for (const TensorRef& t : outputs) plain_outputs.push_back(t ? t->storage() : Storage());
    for (GradSlot& s : slots) {
      if (outputs.empty()) plain_outputs.push_back(std::move(s.value));
      s = GradSlot();
    }
    if (!post) outputs.clear();
    for (Storage& value : n.apply(plain_outputs)) grads.emplace_back(std::move(value));
    if (post)
      for (GradSlot& s : grads) inputs.push_back(as_tensor(s));
  }
  if (host) validate(n, wanted, inputs);
  if (post) {
    const std::vector<HookRef> hooks = meta->post_hooks;
    for (const HookRef& h : hooks) {
      const std::vector<TensorRef> before(inputs.begin(), inputs.end());
      h->on_inputs(inputs, outputs);
      check_replaced(h, before, inputs);
    }
  }
  if (graph || post) {
    grads.clear();
    for (TensorRef& t : inputs) grads.push_back(to_slot(std::move(t)));
  }
}

bool PassBase::run_carefully(Node& n, std::span<GradSlot> slots, std::uint64_t wanted, std::uint32_t flags,
                             SlotVec& grads) {
  NodeMeta* meta = n.meta();
  SlotVec absent;
  if (slots.empty()) {
    absent.resize(n.num_outputs());
    slots = absent;
  }
  if (meta && !meta->tensor_hooks.empty()) tensor_hooks(n, slots);
  if (meta && !meta->retain_grad.empty()) retained(n, slots);
  if (flags >> kCaptureShift) capture(n, slots, flags);
  if (pruned_ && !(flags & kNeeded)) return false;
  if (n.is_accumulator()) {
    if (meta && !meta->pre_hooks.empty()) {
      GraphGradVec outputs(1);
      make_private(slots[0]);
      outputs[0] = as_tensor(slots[0]);
      slots[0].tensor = nullptr;
      run_prehooks(*meta, outputs);
      slots[0] = to_slot(std::move(outputs[0]));
    }
    accumulate_leaf(n, slots[0]);
    return false;
  }
  if (TP_UNLIKELY(anomaly_)) {
    try {
      apply_node(n, slots, wanted, grads);
      if (anomaly_check_nan) check_nan(n, grads);
    } catch (...) {
      warn_anomaly(n);
      throw;
    }
  } else {
    apply_node(n, slots, wanted, grads);
  }
  if (!keep_graph_) n.release_saved();
  return true;
}

void PassBase::finish() {
  for (Deferred& d : deferred_) {
    if (d.slot.tensor)
      static_cast<AccumulateGrad&>(*d.node).take_gradient(d.slot.tensor);
    else
      d.node->apply({&d.slot.value, 1});
  }
  if (request_.accumulate && pruned_) {
    for (std::size_t i = 0; i < captures_.size(); ++i) {
      GradSlot& s = captures_[i].slot;
      if (!s.defined() || i >= request_.input_tensors.size() || !request_.input_tensors[i]) continue;
      const AutogradMeta* kept = request_.input_tensors[i]->meta();
      if (kept && kept->retains_grad) continue;  // filled when its node ran
      bool again = false;  // a tensor listed twice gets its gradient once
      for (std::size_t k = 0; k < i && !again; ++k) again = request_.input_tensors[k] == request_.input_tensors[i];
      if (!again) retain_gradient(request_.input_tensors[i], s);
    }
  }
  for (std::size_t i = 0; i < callbacks.size(); ++i) {  // a callback may queue another
    const std::function<void()> f = std::move(callbacks[i]);
    f();
  }
}

std::vector<TensorRef> PassBase::results() {
  std::vector<TensorRef> out;
  out.reserve(captures_.size());
  std::unordered_set<const Block*> seen;  // memory of seeds and earlier results; only results with history ask for it
  const auto fresh = [&](const TensorRef& t) {
    if (seen.empty())
      for (const TensorRef& s : request_.seeds)
        if (s) seen.insert(s->storage().block().get());
    const TensorRef& p = t->is_batched() ? t->meta()->physical : t;
    return seen.insert(p->storage().block().get()).second;
  };
  for (Capture& c : captures_) {
    TensorRef& result = out.emplace_back(std::move(c.slot.tensor));
    if (result) {
      // Shared with values the graph saved is fine (versions guard that); with another result, or the seed, is not.
      if (result->use_count() > 1 || !fresh(result)) result = engine_ops.clone_graph(result);
      fresh(result);
    } else if (Storage& v = c.slot.value; v.defined()) {
      result = TensorImpl::make(v.unique() ? std::move(v) : engine_ops.clone(v));
    }
  }
  return out;
}

void PassBase::look_around() {
  budget_ = 1 << 15;
  const auto now = std::chrono::steady_clock::now();
  if (last_look_.time_since_epoch().count() == 0) last_look_ = now;
  if (now - last_look_ < std::chrono::milliseconds(1)) return;
  modes::check_signals();
  if (modes::host.release_lock) modes::host.acquire_lock(modes::host.release_lock());
  last_look_ = std::chrono::steady_clock::now();
}

}  // namespace tp
