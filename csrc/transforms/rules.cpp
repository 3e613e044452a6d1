// Named rules of products, views, indexing and random numbers, over the ops they are made of.
#include "transforms/rules.h"

#include "core/errors.h"
#include "ops/formula.h"
#include "transforms/ops_used.h"

namespace tp::batch::rules {

// ---- products --------------------------------------------------------------------------------------------------------
namespace {

void check_ranks(const OpSchema& op, const TensorRef& a, const TensorRef& b) {
  struct Ranks {
    std::string_view op;
    int a, b;
  };
  static constexpr Ranks known[] = {{"mm", 2, 2},    {"bmm", 3, 3},   {"mv", 2, 1},      {"dot", 1, 1},
                                    {"addmm", 2, 2}, {"addmv", 2, 1}, {"baddbmm", 3, 3}, {"addbmm", 3, 3}};
  for (const Ranks& r : known)
    if (r.op == op.name && (a->dim() != r.a || b->dim() != r.b))
      runtime_error(op.name, ": expected operands of ", r.a, " and ", r.b, " dimensions, got sizes ", a->sizes(),
                    " and ", b->sizes());
}

TensorRef number(double v) { return ops::number<TensorRef>(Scalar(v)); }
bool is(const Scalar& s, double v) { return s.to_double() == v && s.imag() == 0; }

}  // namespace

TensorRef product(const OpSchema& op, const TensorRef& a, const TensorRef& b) {
  check_ranks(op, a, b);
  if (a->dim() == 0 || b->dim() == 0)
    runtime_error(op.name, ": both arguments need to be at least 1-d, but they are ", a->dim(), "-d and ", b->dim(),
                  "-d");
  if (a->dim() == 1 && b->dim() == 1 && a->sizes() == b->sizes() && a->dtype() == b->dtype())
    return ops::sum(ops::mul(a, b), Dims{0}, false, std::nullopt);
  // One product over all samples where the other operand is one matrix or vector.
  if (!b->is_batched() && b->dim() <= 2) return wrap(ops::matmul(physical(a), b), levels_of(a));
  if (!a->is_batched() && b->dim() == 1 && a->dim() <= 2)
    return wrap(ops::matmul(physical(b), a->dim() == 2 ? ops::transpose(a, 0, 1) : a), levels_of(b));
  const TensorRef left = a->dim() == 1 ? ops::unsqueeze(a, 0) : a;
  const TensorRef right = b->dim() == 1 ? ops::unsqueeze(b, 1) : b;
  const Broadcast in({&left, &right});
  TensorRef out = in.wrap(ops::matmul(in[0], in[1]));
  if (b->dim() == 1) out = ops::select(out, -1, 0);
  if (a->dim() == 1) out = ops::select(out, b->dim() == 1 ? -1 : -2, 0);
  return out;
}

TensorRef affine(const TensorRef& input, const TensorRef& product, const Scalar& beta, const Scalar& alpha) {
  if (is(beta, 0)) return is(alpha, 1) ? product : ops::mul(product, ops::number<TensorRef>(alpha));
  return ops::add(is(beta, 1) ? input : ops::mul(input, ops::number<TensorRef>(beta)), product, alpha);
}

TensorRef as_column(const TensorRef& t) { return ops::unsqueeze(t, -1); }
TensorRef as_vector(const TensorRef& column) { return ops::select(column, -1, 0); }

TensorRef linear_of(const TensorRef& input, const TensorRef& weight, const TensorRef& bias) {
  static constexpr OpSchema matmul{"linear", ""};
  TensorRef out = product(matmul, input, weight->dim() == 1 ? weight : ops::transpose(weight, 0, 1));
  return bias ? ops::add(out, bias, Scalar(1)) : out;
}

TensorRef outer_of(const TensorRef& a, const TensorRef& b) {
  return ops::mul(ops::unsqueeze(a, 1), ops::unsqueeze(b, 0));
}

TensorRef summed_product(const OpSchema& op, const TensorRef& a, const TensorRef& b) {
  return ops::sum(product(op, a, b), Dims{0}, false, std::nullopt);
}

// ---- views -----------------------------------------------------------------------------------------------------------
TensorRef transposed(const OpSchema& op, const TensorRef& input) {
  if (input->dim() > 2)
    runtime_error(op.name, ": expects a tensor with <= 2 dimensions, but self is ", input->dim(), "-d");
  return input->dim() < 2 ? ops::expand(input, input->sizes()) : ops::transpose(input, 0, 1);
}

TensorRef strided(const TensorRef& input, const Dims& size, const Dims& stride, std::optional<std::int64_t> offset) {
  const Levels levels = levels_of(input);
  const TensorRef& p = physical(input);
  Dims sizes, strides;
  for (int i = 0; i < count(levels); ++i) {
    sizes.push_back(p->sizes()[i]);
    strides.push_back(p->storage().stride(i));
  }
  for (std::int64_t n : size) sizes.push_back(n);
  for (std::int64_t n : stride) strides.push_back(n);
  return wrap(ops::as_strided(p, sizes, strides, offset.value_or(p->storage().offset())), levels);
}

TensorRef strided_put(const TensorRef& input, const TensorRef& src, const Dims& size, const Dims& stride,
                      std::optional<std::int64_t> offset) {
  const Levels levels = levels_of(input) | levels_of(src);
  // What all samples share is repeated, since each of them is written to.
  const TensorRef into = levels_of(input) == levels ? physical(input) : ops::clone(physical_at(input, levels));
  Dims sizes = sizes_of(levels), strides;
  for (int i = 0; i < sizes.size(); ++i) strides.push_back(into->storage().stride(i));
  for (std::int64_t n : size) sizes.push_back(n);
  for (std::int64_t n : stride) strides.push_back(n);
  return wrap(ops::as_strided_scatter(into, physical_at(src, levels), sizes, strides,
                                      offset.value_or(into->storage().offset())),
              levels);
}

// ---- indexing --------------------------------------------------------------------------------------------------------
bool plain_indices(std::span<const TensorRef> indices) {
  for (const TensorRef& t : indices)
    if (t && is_float(t->dtype())) return false;
  for (const TensorRef& t : indices)
    if (t && (t->dtype() == Dtype::Bool || t->dtype() == Dtype::U8)) return false;
  return true;
}

namespace {

/// How an expression x[..., i, ..., j, ...] lays out its result: the broadcast dimensions of the indices stand where the
/// first index stood if the indices are neighbours, else in front.
struct Places {
  int rank = 0;         // of the broadcast indices
  int first = -1, last = -1;
  bool neighbours = true;
  Shape sizes;          // of the broadcast indices, in one sample
  int at() const { return neighbours ? first : 0; }
};

Places places(std::span<const TensorRef> indices) {
  Places p;
  for (int i = 0; i < int(indices.size()); ++i) {
    if (!indices[std::size_t(i)]) continue;
    if (p.first < 0) p.first = i;
    if (p.last >= 0 && p.last != i - 1) p.neighbours = false;
    p.last = i;
    p.sizes = p.first == i ? indices[std::size_t(i)]->sizes()
                           : ops::broadcast_shape(p.sizes, indices[std::size_t(i)]->sizes());
  }
  p.rank = p.sizes.size();
  return p;
}

/// The batch dimensions of a physical tensor as one.
TensorRef merged(const TensorRef& p, int batch_dims, std::int64_t size) {
  if (batch_dims == 1) return p;
  Shape sizes{size};
  for (int i = batch_dims; i < p->dim(); ++i) sizes.push_back(p->sizes()[i]);
  return ops::reshape(p, sizes);
}
TensorRef parted(const TensorRef& t, const Dims& batch) {
  if (batch.size() == 1) return t;
  Shape sizes = batch;
  for (int i = 1; i < t->dim(); ++i) sizes.push_back(t->sizes()[i]);
  return ops::reshape(t, sizes);
}
/// `n` dimensions from `from` on moved to `to`.
TensorRef moved(const TensorRef& t, int from, int to, int n) {
  if (from == to || n == 0) return t;
  Dims source, target;
  for (int i = 0; i < n; ++i) {
    source.push_back(from + i);
    target.push_back(to + i);
  }
  return ops::movedim(t, source, target);
}

/// The indices with the batch as one leading dimension, and in front the number of the sample where `numbered`.
std::vector<TensorRef> batched_indices(std::span<const TensorRef> indices, Levels levels, std::int64_t size, int rank,
                                       bool numbered) {
  std::vector<TensorRef> out;
  if (numbered) {
    Shape sizes(rank + 1, 1);
    sizes[0] = size;
    out.push_back(ops::reshape(ops::arange(Scalar(size), Dtype::I64), sizes));
  }
  for (const TensorRef& t : indices) {
    if (!t || !t->is_batched()) {
      out.push_back(t);
      continue;
    }
    Shape sizes{size};
    for (int i = t->dim(); i < rank; ++i) sizes.push_back(1);
    for (std::int64_t n : t->sizes()) sizes.push_back(n);
    out.push_back(ops::reshape(physical_at(t, levels), sizes));
  }
  return out;
}

}  // namespace

TensorRef taken(const TensorRef& input, std::span<const TensorRef> indices) {
  if (int(indices.size()) > input->dim())
    index_error("index: too many indices for tensor of dimension ", input->dim(), " (got ", indices.size(), ")");
  const Places p = places(indices);
  Levels levels = levels_of(input);
  const bool index_batched = is_batched(indices);
  if (!index_batched) {  // the same places of every sample
    const int n = count(levels);
    std::vector<TensorRef> all(static_cast<std::size_t>(n));
    all.insert(all.end(), indices.begin(), indices.end());
    TensorRef out = ops::index(physical(input), all);
    return wrap(p.neighbours ? out : moved(out, p.rank, 0, n), levels);
  }
  const bool numbered = levels != 0;
  for (const TensorRef& t : indices)
    if (t) levels |= levels_of(t);
  const Dims batch = sizes_of(levels);
  const std::int64_t size = product(batch);
  const std::vector<TensorRef> all = batched_indices(indices, levels, size, p.rank, numbered);
  TensorRef out;
  if (numbered) {
    out = ops::index(merged(physical_at(input, levels), batch.size(), size), all);
    // The sample's number stands before a slice, so the dimensions of the indices came first.
    out = moved(out, 1, 1 + p.at(), p.rank);
  } else {
    out = moved(ops::index(input, all), p.at(), 0, 1);
  }
  return wrap(parted(out, batch), levels);
}

TensorRef put(const TensorRef& input, std::span<const TensorRef> indices, const TensorRef& values, bool accumulate) {
  if (int(indices.size()) > input->dim())
    index_error("index_put: too many indices for tensor of dimension ", input->dim(), " (got ", indices.size(), ")");
  const Places p = places(indices);
  Levels levels = levels_of(input) | levels_of(values);
  for (const TensorRef& t : indices)
    if (t) levels |= levels_of(t);
  const Dims batch = sizes_of(levels);
  const std::int64_t size = product(batch);
  // One sample's values at their full sizes, in the order x[indices] has.
  Shape kept;
  int before = 0;
  for (int i = 0; i < input->dim(); ++i) {
    if (i < int(indices.size()) && indices[std::size_t(i)]) continue;
    kept.push_back(input->sizes()[i]);
    if (i < p.first) ++before;
  }
  Shape full;
  const int at = p.neighbours ? before : 0;
  for (int i = 0; i < at; ++i) full.push_back(kept[i]);
  for (std::int64_t n : p.sizes) full.push_back(n);
  for (int i = at; i < kept.size(); ++i) full.push_back(kept[i]);
  TensorRef v = values->sizes() == full ? values : ops::expand(values, full);
  v = moved(merged(physical_at(v, levels), batch.size(), size), 1 + at, 1, p.rank);
  const TensorRef into = merged(physical_at(input, levels), batch.size(), size);
  const std::vector<TensorRef> all = batched_indices(indices, levels, size, p.rank, true);
  // Neighbours from the first dimension on keep the layout too: then nothing was moved.
  return wrap(parted(ops::index_put(into, all, v, accumulate), batch), levels);
}

std::vector<TensorRef> at_dim(const OpSchema& op, const TensorRef& input, std::int64_t dim, const TensorRef& index) {
  std::vector<TensorRef> all(static_cast<std::size_t>(ops::normal_dim(op.name, dim, input->dim())) + 1);
  all.back() = index;
  return all;
}

TensorRef scaled(const TensorRef& t, const Scalar& alpha) {
  return is(alpha, 1) ? t : ops::mul(t, ops::number<TensorRef>(alpha));
}

TensorRef rows_put(const TensorRef& grad, const TensorRef& input, std::int64_t rows,
                   std::optional<std::int64_t> padding) {
  TensorRef g = grad;
  if (padding) {
    const std::int64_t row = *padding < 0 ? *padding + rows : *padding;
    g = ops::mul(g, ops::cast(ops::unsqueeze(ops::ne(input, number(double(row))), -1), g->dtype()));
  }
  const TensorRef zeros = ops::zeros<TensorRef>(Shape{rows, grad->sizes()[grad->dim() - 1]}, grad->dtype());
  return put(zeros, std::span<const TensorRef>(&input, 1), g, true);
}

TensorRef searched(const TensorRef& sorted, const TensorRef& input, bool right) {
  const Levels levels = levels_of(sorted) | levels_of(input);
  TensorRef values = physical_at(input, levels);
  const Shape sizes = values->sizes();
  if (sorted->dim() == 1 && input->dim() != 1) {
    Shape flat = sizes_of(levels);
    flat.push_back(-1);
    if (values->numel() == 0) flat[flat.size() - 1] = product(input->sizes());
    values = ops::reshape(values, flat);
  }
  TensorRef out = ops::searchsorted_in(ops::contiguous(physical_at(sorted, levels)), ops::contiguous(values), right);
  return wrap(out->sizes() == sizes ? out : ops::reshape(out, sizes), levels);
}

TensorRef selected(const OpSchema& op, const TensorRef& input, std::int64_t dim, const TensorRef& index) {
  if (index->is_batched()) return taken(input, at_dim(op, input, dim, index));
  const Leading in(op, {input});
  return in.wrap(ops::index_select(in[0], in.dim(dim), index));
}

// ---- copies, medians -------------------------------------------------------------------------------------------------
TensorRef filled(const TensorRef& input, const TensorRef& src) {
  return ops::clone(ops::expand(src->dtype() == input->dtype() ? src : ops::cast(src, input->dtype()), input->sizes()));
}

TensorRef repeated(const TensorRef& t, Levels levels) { return wrap(ops::clone(physical_at(t, levels)), levels); }

TensorRef median_of(const TensorRef& input) {
  return ops::median_dim(ops::reshape(input, Shape{product(input->sizes())}), 0, false)[0];
}

// ---- random numbers --------------------------------------------------------------------------------------------------
namespace {

/// While it lives, random ops draw plainly.
struct Plain : modes::Guard {
  Plain() : Guard(0, modes::kTransform) {}
};

Dims sized(Levels levels, const Dims& size) {
  Dims out = sizes_of(levels);
  for (std::int64_t n : size) out.push_back(n);
  return out;
}
/// Something with the sizes and dtype a draw for `levels` has, of the samples of `t`.
TensorRef shaped(const TensorRef& t, Levels levels) {
  return ops::expand(ops::zeros<TensorRef>(Shape(), t->dtype()), sized(levels, t->sizes()));
}

}  // namespace

Levels drawn(const OpSchema& op) {
  Levels levels = 0;
  for (int l = 1; l <= depth(); ++l) switch (level(l).randomness) {
      case Randomness::Error:
        runtime_error(op.name,
                      ": vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                      "'different' randomness flags on vmap or perform the randomness operation out of vmap");
      case Randomness::Same: break;
      case Randomness::Different: levels |= Levels(1) << (l - 1);
    }
  return levels;
}

TensorRef rand(const OpSchema& op, const Dims& size, Generator* generator, std::optional<Dtype> dtype) {
  const Levels levels = drawn(op);
  Plain plain;
  return wrap(ops::rand(sized(levels, size), generator, dtype), levels);
}
TensorRef randn(const OpSchema& op, const Dims& size, Generator* generator, std::optional<Dtype> dtype) {
  const Levels levels = drawn(op);
  Plain plain;
  return wrap(ops::randn(sized(levels, size), generator, dtype), levels);
}
TensorRef randint(const OpSchema& op, std::int64_t high, const Dims& size, Generator* generator,
                  std::optional<Dtype> dtype) {
  const Levels levels = drawn(op);
  Plain plain;
  return wrap(ops::randint(high, sized(levels, size), generator, dtype), levels);
}
TensorRef randint(const OpSchema& op, std::int64_t low, std::int64_t high, const Dims& size, Generator* generator,
                  std::optional<Dtype> dtype) {
  const Levels levels = drawn(op);
  Plain plain;
  return wrap(ops::randint(low, high, sized(levels, size), generator, dtype), levels);
}
TensorRef randperm(const OpSchema& op, std::int64_t n, Generator* generator, std::optional<Dtype> dtype) {
  const Levels levels = drawn(op);
  Plain plain;
  if (!levels) return ops::randperm(n, generator, dtype);
  std::vector<TensorRef> rows;
  const std::int64_t size = product(sizes_of(levels));
  for (std::int64_t i = 0; i < std::max<std::int64_t>(size, 1); ++i) rows.push_back(ops::randperm(n, generator, dtype));
  TensorRef all = ops::stack(rows, 0);
  if (!size) all = ops::slice(all, 0, 0, 0, 1);
  return wrap(ops::reshape(all, sized(levels, {n})), levels);
}
TensorRef randint_like(const OpSchema& op, const TensorRef& input, std::int64_t low, std::int64_t high,
                       Generator* generator, std::optional<Dtype> dtype) {
  const Levels levels = drawn(op);
  Plain plain;
  return wrap(ops::randint(low, high, shaped(input, levels)->sizes(), generator, dtype.value_or(input->dtype())),
              levels);
}
TensorRef randint_like(const OpSchema& op, const TensorRef& input, std::int64_t high, Generator* generator,
                       std::optional<Dtype> dtype) {
  return randint_like(op, input, 0, high, generator, dtype);
}
TensorRef rand_like(const OpSchema& op, const TensorRef& input, Generator* generator, std::optional<Dtype> dtype) {
  const Levels levels = drawn(op);
  Plain plain;
  return wrap(ops::rand_like(shaped(input, levels), generator, dtype), levels);
}
TensorRef randn_like(const OpSchema& op, const TensorRef& input, Generator* generator, std::optional<Dtype> dtype) {
  const Levels levels = drawn(op);
  Plain plain;
  return wrap(ops::randn_like(shaped(input, levels), generator, dtype), levels);
}
TensorRef bernoulli(const OpSchema& op, const TensorRef& input, Generator* generator) {
  const Levels levels = drawn(op);
  if ((levels_of(input) & ~levels) == 0) {
    Plain plain;
    return wrap(ops::bernoulli(physical_at(input, levels), generator), levels);
  }
  return ops::cast(ops::lt(rand_like(op, input, generator, std::nullopt), input), input->dtype());
}
TensorRef multinomial(const OpSchema& op, const TensorRef& input, std::int64_t n, bool replacement,
                      Generator* generator) {
  const Levels levels = drawn(op);
  if (levels_of(input) & ~levels)
    not_implemented(op.name, ": randomness='same' with weights that differ between samples; use 'different'");
  Plain plain;
  if (!levels) return ops::multinomial(input, n, replacement, generator);
  const Dims batch = sizes_of(levels);
  TensorRef rows = physical_at(input, levels);
  Shape sizes{product(batch) * (input->dim() == 2 ? input->sizes()[0] : 1), rows->sizes()[rows->dim() - 1]};
  TensorRef out = ops::multinomial(ops::reshape(rows, sizes), n, replacement, generator);
  Shape back = batch;
  if (input->dim() == 2) back.push_back(input->sizes()[0]);
  back.push_back(n);
  return wrap(ops::reshape(out, back), levels);
}
std::array<TensorRef, 2> native_dropout(const OpSchema& op, const TensorRef& input, double p, Generator* generator) {
  const Levels levels = drawn(op);
  if ((levels_of(input) & ~levels) == 0) {
    Plain plain;
    std::array<TensorRef, 2> r = ops::native_dropout(physical_at(input, levels), p, generator);
    return {wrap(std::move(r[0]), levels), wrap(std::move(r[1]), levels)};
  }
  // The same elements of samples that differ.
  const TensorRef mask = ops::ge(rand_like(op, input, generator, std::nullopt), number(p));
  const TensorRef scaled = ops::mul(input, ops::cast(mask, input->dtype()));
  return {p == 1 ? scaled : ops::mul(scaled, number(1 / (1 - p))), mask};
}

}  // namespace tp::batch::rules
