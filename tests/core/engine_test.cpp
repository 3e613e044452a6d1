// The engine on hand-made nodes: values, order, pruning, hooks, errors, reentrance, depth. Exits with the failures.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "toy_ops.h"

using namespace toy;

namespace {

using Values = std::vector<double>;

void first_order() {
  TensorRef x = leaf({2}), y = leaf({3});
  TensorRef z = add(mul(x, y), mul(x, x));
  backward(z);
  check(values(x->grad()) == Values{7} && values(y->grad()) == Values{2}, "d(xy + xx)");
  TensorRef again = mul(x, y);
  TensorRef held = x->grad();
  backward(again);
  check(values(x->grad()) == Values{10} && x->grad() == held, "the second gradient is added in place");
  check(x->grad()->storage().version() == 1, "adding in place bumps the version");

  TensorRef a = leaf({1}), b = leaf({1});
  TensorRef c = add(a, b);
  TensorRef seed = leaf({5}, false);
  backward(c, {}, seed);
  check(values(a->grad()) == Values{5} && values(b->grad()) == Values{5}, "add passes the seed");
  check(!(a->grad()->storage().block() == b->grad()->storage().block()), "two leaves share no gradient memory");
  check(!(a->grad()->storage().block() == seed->storage().block()), "nor a leaf and the seed");

  TensorRef deep = leaf({1});
  TensorRef t = mul(deep, deep);
  t = add(t, t);
  t = add(t, t);
  backward(t);
  check(values(deep->grad()) == Values{8}, "diamonds");
}

void shapes_and_seeds() {
  TensorRef x = leaf({1, 2});
  TensorRef y = mul(x, x);
  check_raises([&] { backward(y); }, "grad can be implicitly created only for scalar outputs");
  check_raises([&] { backward(y, {}, leaf({1, 2, 3}, false)); },
               "Mismatch in shape: grad_output[0] has a shape of [3]");
  check_raises([&] { backward(leaf({1}, false)); },
               "element 0 of tensors does not require grad and does not have a grad_fn");
  backward(y, {}, leaf({1, 10}, false));
  check(values(x->grad()) == Values{2, 40}, "seeded");
}

void freed_and_changed() {
  TensorRef x = leaf({2}), w = leaf({3}, false);
  TensorRef y = mul(x, w);
  backward(y, {true});
  backward(y);
  check(values(x->grad()) == Values{6}, "retain_graph");
  check_raises([&] { backward(y); }, "MulBackward0: Trying to backward through the graph a second time");
  check(values(x->grad()) == Values{6}, "a failed pass accumulates nothing");
  TensorRef s = add(x, x);
  backward(s);
  backward(s);
  check(values(x->grad()) == Values{10}, "a node that saves nothing runs again");

  y = mul(x, w);
  w->storage().data<double>()[0] = 7;
  w->storage().bump_version();
  check_raises([&] { backward(y); },
               "MulBackward0: one of the variables needed for gradient computation has been modified by an inplace "
               "operation: saved 'other' [1] is at version 1; expected version 0 instead; clone it before changing it");
  TensorRef z = mul(x, x);
  backward(z);
  check(values(x->grad()) == Values{14}, "the engine works after an error");
}

void grads() {
  TensorRef x = leaf({2}), y = leaf({3}), u = leaf({1});
  TensorRef m = mul(x, y);
  TensorRef z = mul(m, x);
  auto g = grad({z}, {x, y, m, u, x}, {true});
  check(values(g[0]) == Values{12} && values(g[1]) == Values{4} && values(g[2]) == Values{2}, "grad of several inputs");
  check(!g[3] && values(g[4]) == Values{12}, "unused and listed twice");
  check(!(g[0]->storage().block() == g[4]->storage().block()), "results share no memory");
  check(!x->grad() && !y->grad(), "grad leaves .grad alone");
  g = grad({z}, {z}, {true});
  check(values(g[0]) == Values{1}, "root as input");
  g = grad({z, m}, {x}, {true}, {TensorRef(), leaf({10}, false)});
  check(values(g[0]) == Values{42}, "several roots");
  // Only what leads to the inputs runs.
  TensorRef w = leaf({5}, false);
  TensorRef p = mul(x, w);
  TensorRef q = mul(add(p, y), y);
  w->storage().bump_version();
  g = grad({q}, {y}, {true});
  check(values(g[0]) == Values{16}, "the changed branch is not visited");
}

void higher_order() {
  TensorRef x = leaf({0.5});
  TensorRef y = mul(exp(mul(x, x)), x);
  TensorRef g1 = grad({y}, {x}, {false, true})[0];
  TensorRef g2 = grad({g1}, {x}, {false, true})[0];
  TensorRef g3 = grad({g2}, {x})[0];
  const double t = 0.5, e = std::exp(t * t);
  const auto near = [](const TensorRef& a, double b) { return std::abs(values(a)[0] - b) < 1e-12 * std::abs(b); };
  check(near(g1, e * (1 + 2 * t * t)), "first derivative");
  check(near(g2, e * (6 * t + 4 * t * t * t)), "second derivative");
  check(near(g3, e * (6 + 24 * t * t + 8 * t * t * t * t)), "third derivative");

  TensorRef z = exp(x);
  backward(z, {false, true});
  TensorRef first = x->grad();
  check(first->requires_grad(), "create_graph leaves a gradient with history");
  x->ensure_meta().grad.reset();
  backward(first);
  check(near(x->grad(), std::exp(0.5)), "the saved output comes back with its history");
}

struct Recorder : Hook {
  std::function<TensorRef(const TensorRef&)> gradient;
  std::function<void()> outputs, inputs, accumulated;
  TensorRef on_gradient(const TensorRef& g) override { return gradient ? gradient(g) : TensorRef(); }
  void on_outputs(GraphGradVec&) override {
    if (outputs) outputs();
  }
  void on_inputs(GraphGradVec&, const GraphGradVec&) override {
    if (inputs) inputs();
  }
  void on_accumulated(const TensorRef&) override {
    if (accumulated) accumulated();
  }
};
Ref<Recorder> recorder() { return Ref<Recorder>::adopt(new Recorder); }

void hooks() {
  std::string log;
  TensorRef x = leaf({2}), y = leaf({3});
  TensorRef m = mul(x, y);
  TensorRef z = mul(m, m);
  retain_grad(m);
  Node* fn = grad_fn(m);
  auto tensor = recorder(), node = recorder(), last = recorder();
  tensor->gradient = [&](const TensorRef& g) {
    log += "t";
    return mul(g, leaf({2}, false));
  };
  node->outputs = [&] {
    log += m->grad() ? "g" : "-";
    log += "p";
  };
  node->inputs = [&] { log += "q"; };
  last->gradient = [&](const TensorRef&) {
    log += "l";
    return TensorRef();
  };
  last->accumulated = [&] { log += x->grad() ? "A" : "-"; };
  fn->ensure_meta().tensor_hooks.push_back({0, tensor});
  fn->ensure_meta().pre_hooks.push_back(node);
  fn->ensure_meta().post_hooks.push_back(node);
  AccumulateGrad* leaf_node = accumulator_of(x);
  leaf_node->ensure_meta().tensor_hooks.push_back({0, last});
  leaf_node->ensure_meta().accumulated_hooks.push_back(last);
  backward(z, {true});
  check(log == "tgpqlA", "order of hooks: " + log);
  check(values(m->grad()) == Values{24} && values(x->grad()) == Values{72}, "hooks replace gradients");
  log.clear();
  grad({z}, {m}, {true});
  check(log == "t", "a captured node runs its tensor hooks only: " + log);
  log.clear();
  grad({z}, {x}, {true});
  check(log == "tgpql", "grad runs leaf tensor hooks, nothing after accumulation: " + log);

  auto wrong = recorder();
  wrong->gradient = [&](const TensorRef&) { return leaf({1, 2}, false); };
  fn->ensure_meta().tensor_hooks.push_back({0, wrong});
  check_raises([&] { backward(z, {true}); }, "hook has changed the size of value");
  check(!Engine::running(), "no pass is left behind");
  m.reset();
  check(fn->meta()->retain_grad.empty(), "a tensor that died is no longer retained");
}

void reentrance() {
  TensorRef x = leaf({2});
  TensorRef inner_x = leaf({4});
  TensorRef inner = mul(inner_x, inner_x);
  TensorRef y = mul(x, x);
  TensorRef z = mul(y, y);
  auto nested = recorder();
  int depth = 0;
  nested->gradient = [&](const TensorRef&) {
    // The same graph and another one, from inside a pass over it.
    if (++depth < 3) check(values(grad({z}, {x}, {true})[0]) == Values{32}, "nested pass over the same graph");
    backward(inner, {true});
    return TensorRef();
  };
  grad_fn(y)->ensure_meta().tensor_hooks.push_back({0, nested});
  backward(z, {true});
  check(values(x->grad()) == Values{32}, "outer pass after nested ones");
  check(values(inner_x->grad()) == Values{24}, "nested backward accumulates");
  auto thrower = recorder();
  thrower->gradient = [](const TensorRef&) -> TensorRef { value_error("from a hook"); };
  grad_fn(y)->ensure_meta().tensor_hooks.assign(1, {0, thrower});
  check_raises([&] { backward(z, {true}); }, "from a hook");
  grad_fn(y)->ensure_meta().tensor_hooks.clear();
  int called = 0;
  auto queue = recorder();
  queue->gradient = [&](const TensorRef&) {
    Engine::queue_callback([&] { called += x->grad() && !Engine::current_node() ? 1 : 100; });
    return TensorRef();
  };
  grad_fn(y)->ensure_meta().tensor_hooks.push_back({0, queue});
  x->ensure_meta().grad.reset();
  backward(z);
  check(called == 1, "queued callbacks run once, at the end");
  check_raises([] { Engine::queue_callback([] {}); }, "Final callbacks can only be installed during backward pass");
}

// A lock like the host's: one thread at a time, handed over inside hooks.
std::mutex lock;

void threads() {
  TensorRef x = leaf({2});
  TensorRef y = mul(x, x);
  TensorRef z = mul(y, y);
  std::atomic<int> inside = 0;
  auto meet = recorder();
  meet->gradient = [&](const TensorRef&) {
    // Both passes are in the middle of the same graph before either goes on.
    ++inside;
    lock.unlock();
    while (inside < 2) std::this_thread::yield();
    lock.lock();
    return TensorRef();
  };
  grad_fn(y)->ensure_meta().tensor_hooks.push_back({0, meet});
  Values results[2];
  const auto work = [&](int i) {
    const std::lock_guard<std::mutex> held(lock);
    results[i] = values(grad({z}, {i ? x : y}, {true})[0]);
    backward(z, {true});
  };
  std::thread a(work, 0), b(work, 1);
  a.join();
  b.join();
  check(results[0] == Values{8} && results[1] == Values{32}, "two threads in one graph, each with its own wishes");
  check(values(x->grad()) == Values{64}, "both accumulate");

  // A long pass lets other threads run about every millisecond and looks for signals.
  static int yields = 0, looks = 0;
  modes::host.release_lock = []() -> void* {
    ++yields;
    return nullptr;
  };
  modes::host.acquire_lock = [](void*) {};
  modes::host.check_signals = [] {
    if (++looks == 3) value_error("interrupted");
  };
  TensorRef long_chain = x;
  for (int i = 0; i < 200000; ++i) long_chain = add(long_chain, leaf({0}, false));
  check_raises([&] { backward(long_chain); }, "interrupted");
  check(yields == 2, "yielded between looks");
  modes::host = {};
  check(values(x->grad()) == Values{64}, "an interrupted pass accumulates nothing");
  backward(long_chain);
  check(values(x->grad()) == Values{65}, "and can be run again");
  static int seen = 0;
  modes::host.check_signals = [] { ++seen; };
  const auto start = std::chrono::steady_clock::now();
  backward(long_chain);
  const auto spent = std::chrono::steady_clock::now() - start;
  check(seen > 0 && seen <= spent / std::chrono::milliseconds(1), "a look a millisecond at most");
  seen = 0;
  backward(long_chain, {false, true});
  check(seen > 0, "with a graph too");
  modes::host = {};
}

void lifetimes() {
  TensorRef x = leaf({2});
  TensorRef y = mul(x, x);
  accumulator_of(x);
  x.reset();
  backward(y, {true});  // the leaf is gone: its gradient is dropped
  const Edge dead = grad_fn(y)->next_edges()[0];
  TensorRef none, seed = leaf({1, 2, 3}, false);
  check_raises([&] { Engine::run({.roots = {&dead, 1}, .seeds = {&none, 1}}); }, "does not tell its sizes");
  Engine::run({.roots = {&dead, 1}, .seeds = {&seed, 1}});  // nor does it refuse any
  TensorRef a = leaf({2}), b = leaf({3});
  TensorRef c = mul(a, b);
  a->set_requires_grad(false);
  backward(c);
  check(!a->grad() && values(b->grad()) == Values{2}, "a leaf that no longer requires grad");
}

void deep() {
  constexpr int n = 1000000;
  TensorRef x = leaf({1}), w = leaf({1}, false);
  for (int round = 0; round < 2; ++round) {
    TensorRef y = x;
    for (int i = 0; i < n; ++i) y = mul(y, w);
    const auto t0 = std::chrono::steady_clock::now();
    backward(y);
    const auto t1 = std::chrono::steady_clock::now();
    y.reset();
    const auto t2 = std::chrono::steady_clock::now();
    const auto ns = [](auto d) { return double(std::chrono::duration_cast<std::chrono::nanoseconds>(d).count()) / n; };
    std::printf("chain of 1e6: backward %.0f ns a node, freeing %.0f ns\n", ns(t1 - t0), ns(t2 - t1));
  }
  check(values(x->grad()) == Values{2}, "a million nodes deep");
}

}  // namespace

int main() {
  fill_engine_ops();
  first_order();
  shapes_and_seeds();
  freed_and_changed();
  grads();
  higher_order();
  hooks();
  reentrance();
  threads();
  lifetimes();
  deep();
  if (!failures) std::printf("engine_test: all passed\n");
  return failures;
}
