// Hand-made differentiable ops on float64, so that the autograd room can be tested without the catalogue.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "autograd/accumulate_grad.h"
#include "core/errors.h"
#include "ops/wiring.h"

namespace toy {
using namespace tp;

inline int failures = 0;
inline void check(bool ok, const std::string& what) {
  if (ok) return;
  ++failures;
  std::printf("FAILED: %s\n", what.c_str());
}
inline void check_raises(const std::function<void()>& f, const std::string& part) {
  try {
    f();
  } catch (const Error& e) {
    check(std::string(e.what()).find(part) != std::string::npos, std::string("message: ") + e.what());
    return;
  }
  check(false, "nothing raised; expected: " + part);
}

// ---- plain memory ----------------------------------------------------------------------------------------------------
/// Calls f(flat index in order, pointer) for every element.
template <class F>
void each(const Storage& s, F f) {
  std::vector<std::int64_t> at(std::size_t(s.dim()), 0);
  std::int64_t offset = 0;
  for (std::int64_t k = 0; k < s.numel(); ++k) {
    f(k, s.data<double>() + offset);
    for (int d = s.dim() - 1; d >= 0; --d) {
      offset += s.stride(d);
      if (++at[std::size_t(d)] < s.size(d)) break;
      offset -= s.stride(d) * s.size(d);
      at[std::size_t(d)] = 0;
    }
  }
}
inline std::vector<double> values(const Storage& s) {
  std::vector<double> v(std::size_t(s.numel()));
  each(s, [&](std::int64_t k, double* p) { v[std::size_t(k)] = *p; });
  return v;
}
inline std::vector<double> values(const TensorRef& t) { return t ? values(t->storage()) : std::vector<double>(); }
inline Storage make(const Shape& sizes, const std::vector<double>& v) {
  Storage s = empty(sizes, Dtype::F64);
  std::memcpy(s.raw(), v.data(), v.size() * sizeof(double));
  return s;
}
inline TensorRef leaf(const std::vector<double>& v, bool requires_grad = true) {
  TensorRef t = TensorImpl::make(make({std::int64_t(v.size())}, v));
  t->set_requires_grad(requires_grad);
  return t;
}
template <class F>
Storage zip(const Storage& a, const Storage& b, F f) {
  Storage out = empty(a.sizes(), Dtype::F64);
  if (a.is_contiguous() && b.is_contiguous() && a.numel() == b.numel()) {
    const double *x = a.data<double>(), *y = b.data<double>();
    double* o = out.data<double>();
    for (std::int64_t i = 0; i < a.numel(); ++i) o[i] = f(x[i], y[i]);
    return out;
  }
  const std::vector<double> y = values(b);
  each(a, [&](std::int64_t k, double* p) { out.data<double>()[k] = f(*p, y[y.size() == 1 ? 0 : std::size_t(k)]); });
  return out;
}
inline Storage mul(const Storage& a, const Storage& b) {
  return zip(a, b, [](double x, double y) { return x * y; });
}
inline Storage add(const Storage& a, const Storage& b) {
  return zip(a, b, [](double x, double y) { return x + y; });
}

// ---- recorded ops ----------------------------------------------------------------------------------------------------
TensorRef mul(const TensorRef& a, const TensorRef& b);
TensorRef add(const TensorRef& a, const TensorRef& b);
TensorRef exp(const TensorRef& a);

class MulBackward final : public FuncOp<MulBackward, 2, 2> {
 public:
  static constexpr const char* kName = "MulBackward";
  static constexpr OpSchema schema_v1{"mul", "mul(Tensor input, Tensor other) -> Tensor out"};
  static constexpr const char* kSavedNames[2] = {"input", "other"};
  static constexpr std::int8_t kSavedInput[2] = {0, 1};
  template <class V>
  InlineVec<V, 3> formula(const V& g, const V& input, const V& other) {
    InlineVec<V, 3> out(2);
    if (wants(0) && edges_[0].node) out[0] = mul(g, other);
    if (wants(1) && edges_[1].node) out[1] = mul(g, input);
    return out;
  }
  GradVec apply(std::span<Storage> g) override {
    return formula<Storage>(g[0], edges_[1].node ? saved(0) : Storage(), edges_[0].node ? saved(1) : Storage());
  }
  GraphGradVec apply_for_graph(std::span<const TensorRef> g) override {
    return formula<TensorRef>(g[0], edges_[1].node ? saved_tensor(0) : TensorRef(),
                              edges_[0].node ? saved_tensor(1) : TensorRef());
  }

 protected:
  TP_NODE_DISPOSE(MulBackward)
};

class AddBackward final : public FuncOp<AddBackward, 2, 0> {
 public:
  static constexpr const char* kName = "AddBackward";
  static constexpr OpSchema schema_v1{"add", "add(Tensor input, Tensor other) -> Tensor out"};
  static constexpr const char* kSavedNames[1] = {""};
  static constexpr std::int8_t kSavedInput[1] = {0};
  template <class V>
  InlineVec<V, 3> formula(const V& g) {
    InlineVec<V, 3> out(2);
    for (std::size_t i = 0; i < 2; ++i)
      if (wants(i)) out[i] = g;
    return out;
  }
  GradVec apply(std::span<Storage> g) override { return formula<Storage>(g[0]); }
  GraphGradVec apply_for_graph(std::span<const TensorRef> g) override { return formula<TensorRef>(g[0]); }

 protected:
  TP_NODE_DISPOSE(AddBackward)
};

class ExpBackward final : public FuncOp<ExpBackward, 1, 1> {
 public:
  static constexpr const char* kName = "ExpBackward";
  static constexpr OpSchema schema_v1{"exp", "exp(Tensor input) -> Tensor out"};
  static constexpr const char* kSavedNames[1] = {"out"};
  static constexpr std::int8_t kSavedInput[1] = {-1};
  GradVec apply(std::span<Storage> g) override {
    GradVec out(1);
    out[0] = mul(g[0], saved(0));
    return out;
  }
  GraphGradVec apply_for_graph(std::span<const TensorRef> g) override {
    GraphGradVec out(1);
    out[0] = mul(g[0], saved_tensor(0));
    return out;
  }

 protected:
  TP_NODE_DISPOSE(ExpBackward)
};

inline Ref<MulBackward> mul_node(const TensorRef& a, const TensorRef& b, const Storage& out) {
  auto node = make_node<MulBackward>();
  node->set_output(out);
  node->set_input(0, a);
  node->set_input(1, b);
  if (b->requires_grad()) node->save(0, a);
  if (a->requires_grad()) node->save(1, b);
  return node;
}
inline TensorRef mul(const TensorRef& a, const TensorRef& b) {
  TensorRef out = wiring::wrap(mul(a->storage(), b->storage()));
  if (wiring::records(a, b)) wiring::attach(out, mul_node(a, b, out->storage()));
  return out;
}
inline const TensorRef& mul_(const TensorRef& a, const TensorRef& b) {
  const bool record = wiring::records(a, b);
  wiring::check_inplace(MulBackward::schema_v1, a, record);
  NodeRef node;
  if (record) {
    // The old value has to be kept apart: the memory is about to change.
    auto mine = make_node<MulBackward>();
    mine->set_output(a->storage());
    mine->set_input(0, a);
    mine->set_input(1, b);
    if (b->requires_grad()) mine->saved_slot(0).save(mul(a->storage(), make({}, {1})));
    if (a->requires_grad()) mine->save(1, b);
    node = mine;
  }
  const std::vector<double> y = values(b);
  each(a->storage(), [&](std::int64_t k, double* p) { *p *= y[y.size() == 1 ? 0 : std::size_t(k)]; });
  wiring::finish_inplace(a, node);
  return a;
}
inline TensorRef add(const TensorRef& a, const TensorRef& b) {
  TensorRef out = wiring::wrap(add(a->storage(), b->storage()));
  if (wiring::records(a, b)) {
    auto node = make_node<AddBackward>();
    node->set_output(out->storage());
    node->set_input(0, a);
    node->set_input(1, b);
    wiring::attach(out, node);
  }
  return out;
}
inline TensorRef exp(const TensorRef& a) {
  TensorRef out = wiring::wrap(zip(a->storage(), a->storage(), [](double x, double) { return std::exp(x); }));
  if (wiring::records(a)) {
    auto node = make_node<ExpBackward>();
    node->set_output(out->storage());
    node->set_input(0, a);
    node->save(0, out);
    wiring::attach(out, node);
  }
  return out;
}

/// The engine's ops, for programs that link nothing that fills the table.
inline void fill_engine_ops() {
  if (engine_ops.add) return;
  engine_ops.add = [](const Storage& a, const Storage& b) { return add(a, b); };
  engine_ops.add_inplace = [](Storage& into, const Storage& v) {
    const std::vector<double> y = values(v);
    each(into, [&](std::int64_t k, double* p) { *p += y[std::size_t(k)]; });
  };
  engine_ops.clone = [](const Storage& s) { return make(s.sizes(), values(s)); };
  engine_ops.cast = [](const Storage& s, Dtype) { return s; };
  engine_ops.add_graph = [](const TensorRef& a, const TensorRef& b) { return add(a, b); };
  engine_ops.clone_graph = [](const TensorRef& a) { return mul(a, TensorImpl::make(make({}, {1}))); };
  engine_ops.cast_graph = [](const TensorRef& a, Dtype) { return a; };
}

// ---- backward and grad as a binding calls them -----------------------------------------------------------------------
struct Options {
  bool keep = false, create = false;
};
inline void backward(const TensorRef& y, Options o = {}, TensorRef seed = {}) {
  const Edge root = gradient_edge(y);
  Engine::Request r;
  r.roots = {&root, 1};
  r.seeds = {&seed, 1};
  r.keep_graph = o.keep || o.create;
  r.create_graph = o.create;
  Engine::run(r);
}
inline std::vector<TensorRef> grad(const std::vector<TensorRef>& ys, const std::vector<TensorRef>& xs, Options o = {},
                                   std::vector<TensorRef> seeds = {}) {
  std::vector<Edge> roots, inputs;
  for (const TensorRef& y : ys) roots.push_back(gradient_edge(y));
  for (const TensorRef& x : xs) inputs.push_back(gradient_edge(x));
  seeds.resize(ys.size());
  Engine::Request r;
  r.roots = roots;
  r.seeds = seeds;
  r.inputs = inputs;
  r.keep_graph = o.keep || o.create;
  r.create_graph = o.create;
  r.accumulate = false;
  return Engine::run(r);
}

}  // namespace toy
