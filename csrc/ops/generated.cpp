// The compiled half of generated.h.
#include "ops/generated.h"

#include "kernels/elementwise.h"
#include "kernels/number.h"
#include "kernels/staging.h"

namespace tp::ops {

TensorRef add(const TensorRef& input, const TensorRef& other, const Scalar& alpha);

std::int64_t size(const Shape& s, std::int64_t dim) { return s[normal_dim("size", dim, s.size())]; }

std::int64_t reduced_count(const Shape& s, const std::optional<Dims>& dim) {
  return reduced_count(s, normal_dims("reduction", dim ? *dim : Dims(), s.size()));
}

void missing_item(std::size_t count, std::int64_t i) {
  value_error("the list has ", count, " items; it needs at least ", i + 1);
}

Shapes shapes_of(std::span<const TensorRef> tensors) {
  Shapes shapes;
  shapes.reserve(tensors.size());
  for (const TensorRef& t : tensors) shapes.push_back(t ? t->sizes() : Shape());
  return shapes;
}

PooledVec<Dtype> dtypes_of(std::span<const TensorRef> tensors) {
  PooledVec<Dtype> dtypes;
  dtypes.reserve(tensors.size());
  for (const TensorRef& t : tensors) dtypes.push_back(t ? t->dtype() : Dtype::F32);
  return dtypes;
}

Dims lengths_along(const Shapes& shapes, std::int64_t dim) {
  Dims lengths;
  // An empty vector may stand between tensors of any rank.
  for (const Shape& s : shapes) lengths.push_back(s.size() == 1 && s[0] == 0 ? 0 : size(s, dim));
  return lengths;
}

Dims invert_permutation(const Dims& dims) {
  const int n = dims.size();
  Dims inverse(n, 0);
  for (int i = 0; i < n; ++i) inverse[normal_dim("permute", dims[i], n)] = i;
  return inverse;
}

std::int64_t at(const Dims& dims, std::int64_t i) {
  const std::int64_t k = i < 0 ? i + dims.size() : i;
  if (k < 0 || k >= dims.size()) index_error("index ", i, " is outside ", dims);
  return dims[int(k)];
}

double at(const std::vector<double>& values, std::int64_t i) {
  if (i < 0 || std::size_t(i) >= values.size()) missing_item(values.size(), i);
  return values[std::size_t(i)];
}

Dims concat(const Dims& a, const Dims& b) {
  Dims both = a;
  for (std::int64_t v : b) both.push_back(v);
  return both;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) value_error("division by zero in a size: ", a, " // 0");
  const std::int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a - floor_div(a, b) * b; }

Storage full_storage(const Shape& sizes, const Scalar& value, Dtype dtype) {
  kernels::check_held("", value, dtype);
  Storage s = empty(sizes, dtype);
  kernels::fill(s, value);
  return s;
}

void refuse_dtype(const OpSchema& schema, Dtype got, std::uint32_t allowed) {
  std::string takes;
  for (int d = 0; d < kNumDtypes; ++d)
    if (allowed & dtype_bit(Dtype(d))) takes += (takes.empty() ? "" : ", ") + std::string(dtype_name(Dtype(d)));
  type_error(schema.name, ": does not take ", dtype_name(got), "; it takes ", takes);
}

Storage raised(const Storage& operand, const Scalar& s) {
  const bool from_float = is_float(operand.dtype());
  return kernels::cast(operand, s.is_complex() && from_float ? complex_dtype(operand.dtype()) : s.dtype());
}
void refuse_outranked(const OpSchema& schema, const char* argument, const Scalar& s,
                      std::initializer_list<const Storage*> operands) {
  if (!outranks(s, operands)) return;
  type_error(schema.name, ": ", argument, " is ", s.is_complex() ? "complex" : "a float", ", the tensors are ",
             dtype_name((*operands.begin())->dtype()),
             ": the result does not fit into their memory; convert them first");
}

std::vector<Storage> unsaved_storages(Node& node, std::span<const SavedValue> saved, const char* name) {
  std::vector<Storage> out;
  for (const SavedValue& s : saved) out.push_back(s.saved() || s.released() ? s.get(node, name) : Storage());
  return out;
}
std::vector<TensorRef> unsaved_tensors(Node& node, std::span<const SavedValue> saved, const char* name,
                                       int first_edge) {
  std::vector<TensorRef> out;
  for (const SavedValue& s : saved) {
    const Edge edge = first_edge < 0 ? Edge() : node.next_edges()[std::size_t(first_edge) + out.size()];
    out.push_back(s.saved() || s.released() ? s.tensor(node, name, edge) : TensorRef());
  }
  return out;
}

namespace {

bool followed(const TensorRef& t) {
  return t->is_batched() || t->is_python_subclass() || (t->requires_grad() && modes::grad_enabled());
}

}  // namespace

TensorRef fused(const ElementwiseSpec& spec, const LoopSet& loops, std::initializer_list<const TensorRef*> operands,
                std::initializer_list<Scalar> params) {
  if (modes::any(modes::kForward)) return {};
  InlineVec<const Storage*, 4> memory;
  for (const TensorRef* t : operands) {
    if (followed(*t)) return {};
    memory.push_back(&(*t)->storage());
  }
  return wiring::wrap(
      kernels::elementwise(spec, loops, {memory.data(), memory.size()}, {params.begin(), params.size()}));
}

TensorRef plus(TensorRef a, TensorRef b) {
  if (!a) return b;
  if (!b) return a;
  const Storage &into = a->storage(), &value = b->storage();
  if (!modes::any(modes::kForward) && a->use_count() == 1 && into.unique() && into.is_contiguous() &&
      into.sizes() == value.sizes() && into.dtype() == value.dtype() && !followed(a) && !followed(b)) {
    engine_ops.add_inplace(a->storage(), value);
    return a;
  }
  return add(a, b, Scalar(1));
}

TensorRef as_tangent(TensorRef t, const TensorRef& primal) {
  if (!t) return t;
  if (!(t->sizes() == primal->sizes())) t = expand(t, primal->sizes());
  if (t->dtype() == primal->dtype()) return t;  // moved: nobody else holds it
  return fit(t, primal->sizes(), primal->dtype());
}

PooledVec<Storage> storages_of(std::span<const TensorRef> tensors) {
  PooledVec<Storage> out;
  out.reserve(tensors.size());
  for (const TensorRef& t : tensors) {
    if (t)
      out.push_back(t->storage());
    else
      out.emplace_back();
  }
  return out;
}

void settle_view(const TensorRef& t, const TensorRef& base, const char* op, ViewKind kind) {
  if (t->storage().block() == base->storage().block())
    wiring::mark_view(t, base, op, kind);
  else if (TP_UNLIKELY(modes::any(modes::kInference)))
    t->set_inference(true);
}

void missing_derivative(const OpSchema& schema, const char* argument, const char* why) {
  not_implemented(schema.name, ": the derivative of '", argument, "' is not implemented: ", why);
}

std::vector<TensorRef> tensors_of(std::span<const Storage> list) {
  std::vector<TensorRef> out;
  for (const Storage& s : list) out.push_back(tensors_of(s));
  return out;
}
std::vector<Storage> memory_from(const std::vector<TensorRef>& list) {
  std::vector<Storage> out;
  for (const TensorRef& t : list) out.push_back(memory_from(t));
  return out;
}

}  // namespace tp::ops
