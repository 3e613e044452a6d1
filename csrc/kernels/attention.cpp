// Attention in blocks of queries and keys. The scores of a block stay in cache; running maxima and sums join the blocks.
#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/modes.h"
#include "kernels/attention_table.h"
#include "kernels/axis.h"
#include "kernels/gemm.h"
#include "kernels/random_fill.h"
#include "kernels/scratch.h"

namespace tp::kernels {
namespace {

using std::int64_t;

constexpr int64_t kQueries = 128, kKeys = 512;  // of a block; keys in whole groups of random words

template <class T>
const AttentionLoops<T>& loops() {
  static const AttentionTable& table = TP_PICK_TABLE(attention_table);
  if constexpr (std::is_same_v<T, float>)
    return table.f32;
  else
    return table.f64;
}

/// One operand: a matrix for each index of the batch.
struct Part {
  Storage s;
  std::vector<int64_t> start;  // in elements from the storage's first
  int64_t rs = 0, cs = 0;
  template <class T>
  MatRef<T> at(int64_t i) const {
    return {s.data<T>() + start[std::size_t(i)], rs, cs};
  }
};

struct Problem {
  Shape batch;
  int64_t count = 1, queries, keys, width, value_width;
  Part q, k, v, mask;
  double scale;
  bool causal;
  Dtype result, work;
  Shape sizes(int64_t rows, int64_t cols) const {
    Shape s = batch;
    s.push_back(rows);
    s.push_back(cols);
    return s;
  }
};

/// Starts of the matrices of s, whose leading dimensions broadcast to `batch`.
Part part(const Storage& s, const Shape& batch, int64_t count, int64_t rows, int64_t cols) {
  Part p;
  p.s = s;
  const int n = batch.size(), skip = n - (s.dim() - 2), d = s.dim();
  p.rs = s.size(d - 2) == 1 && rows != 1 ? 0 : s.stride(d - 2);
  p.cs = s.size(d - 1) == 1 && cols != 1 ? 0 : s.stride(d - 1);
  Dims at(n, 0);
  int64_t offset = 0;
  p.start.resize(std::size_t(count));
  for (int64_t& o : p.start) {
    o = offset;
    for (int i = n - 1; i >= 0; --i) {
      const int64_t stride = i < skip || s.size(i - skip) == 1 ? 0 : s.stride(i - skip);
      offset += stride;
      if (++at[i] < batch[i]) break;
      offset -= stride * batch[i];
      at[i] = 0;
    }
  }
  return p;
}

/// A boolean mask as numbers to add.
Storage additive_mask(const Storage& mask, Dtype work) {
  if (mask.dtype() != Dtype::Bool) return cast(mask, work);
  const Storage bits = contiguous(mask);
  Storage out = empty(mask.sizes(), work);
  with_float(work, [&]<class T>(T) {
    for (int64_t i = 0; i < bits.numel(); ++i)
      out.data<T>()[i] = bits.data<std::uint8_t>()[i] ? T(0) : -std::numeric_limits<T>::infinity();
  });
  return out;
}

void join_batch(const OpSchema& op, Shape& batch, const Shape& sizes, const char* name) {
  const int lead = sizes.size() - 2;
  while (batch.size() < lead) batch.insert(0, 1);
  for (int i = 0; i < lead; ++i) {
    int64_t& b = batch[batch.size() - lead + i];
    if (TP_UNLIKELY(b != sizes[i] && b != 1 && sizes[i] != 1))
      value_error(op.name, ": the leading sizes of ", name, " do not broadcast: ", sizes, " with ", batch);
    if (b == 1) b = sizes[i];
  }
}

Problem make_problem(const OpSchema& op, const Storage& query, const Storage& key, const Storage& value,
                     const Storage& attn_mask, double dropout_p, bool is_causal, std::optional<double> scale) {
  for (const Storage* s : {&query, &key, &value})
    if (TP_UNLIKELY(s->dim() < 2))
      value_error(op.name, ": query, key and value need at least 2 dimensions; they are ", query.sizes(), ", ",
                  key.sizes(), ", ", value.sizes());
  if (TP_UNLIKELY(!(dropout_p >= 0 && dropout_p < 1)))
    value_error(op.name, ": dropout_p must be at least 0 and below 1; it is ", dropout_p);
  Problem p;
  const int dq = query.dim(), dk = key.dim(), dv = value.dim();
  p.queries = query.size(dq - 2);
  p.width = query.size(dq - 1);
  p.keys = key.size(dk - 2);
  p.value_width = value.size(dv - 1);
  if (TP_UNLIKELY(key.size(dk - 1) != p.width || value.size(dv - 2) != p.keys))
    value_error(op.name, ": sizes do not match: query is ", query.sizes(), ", key is ", key.sizes(), ", value is ",
                value.sizes());
  if (TP_UNLIKELY(is_causal && attn_mask.defined())) value_error(op.name, ": give attn_mask or is_causal, not both");
  p.batch = {};
  join_batch(op, p.batch, query.sizes(), "query");
  join_batch(op, p.batch, key.sizes(), "key");
  join_batch(op, p.batch, value.sizes(), "value");
  if (attn_mask.defined() && attn_mask.dim() > 2) join_batch(op, p.batch, attn_mask.sizes(), "attn_mask");
  p.count = product(p.batch);
  Promotion promotion;
  for (const Storage* s : {&query, &key, &value}) promotion.add(s->dtype(), false, false);
  p.result = real_float_dtype(op, promotion.result());
  p.work = dtype_of(compute_type(p.result));
  p.q = part(cast(query, p.work), p.batch, p.count, p.queries, p.width);
  p.k = part(cast(key, p.work), p.batch, p.count, p.keys, p.width);
  p.v = part(cast(value, p.work), p.batch, p.count, p.keys, p.value_width);
  p.scale = scale ? *scale : 1 / std::sqrt(double(p.width));
  p.causal = is_causal;
  if (attn_mask.defined()) {
    if (TP_UNLIKELY(attn_mask.dtype() != Dtype::Bool && !is_float(attn_mask.dtype())))
      type_error(op.name, ": attn_mask must be bool or floating; it is ", dtype_name(attn_mask.dtype()));
    const int d = attn_mask.dim();
    const int64_t rows = d >= 2 ? attn_mask.size(d - 2) : 1, cols = d >= 1 ? attn_mask.size(d - 1) : 1;
    if (TP_UNLIKELY((rows != 1 && rows != p.queries) || (cols != 1 && cols != p.keys)))
      value_error(op.name, ": attn_mask of sizes ", attn_mask.sizes(), " does not broadcast to ",
                  p.sizes(p.queries, p.keys));
    Storage m = additive_mask(attn_mask, p.work);
    Shape lifted = m.sizes();
    while (lifted.size() < 2) lifted.insert(0, 1);
    m = reshaped(m, lifted);
    // The loops read masks along the keys.
    if (cols != p.keys || (m.stride(m.dim() - 1) != 1 && p.keys != 1)) {
      Shape full = m.sizes();
      full[full.size() - 1] = p.keys;
      m = contiguous(expanded(m, full));
    }
    p.mask = part(m, p.batch, p.count, p.queries, p.keys);
  }
  return p;
}

/// Keeps or drops the scores of a block: row i of image b has a run of random groups of its own.
struct Dropping {
  RandomStream stream{0, 0};
  double p = 0;
  int64_t groups_per_row = 0;
  template <class T>
  void apply(const Problem& pr, int64_t image, int64_t q0, int64_t rows, int64_t k0, int64_t n, T* s) const {
    if (p == 0) return;
    std::uint8_t keep[kKeys];
    const std::uint64_t threshold = std::uint64_t(p * 0x1p32 + 0.5);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t row = image * pr.queries + q0 + r;
      random_loops().mask(stream.at_group(row * groups_per_row + k0 / kRandomWords), n, threshold, keep);
      loops<T>().drop(n, keep, T(1 / (1 - p)), s + r * n);
    }
  }
};
Dropping dropping(const Problem& p, double dropout_p) {
  Dropping d;
  d.p = dropout_p;
  d.groups_per_row = (p.keys + kRandomWords - 1) / kRandomWords;
  return d;
}

template <class T>
ScoreBlock<T> block(const Problem& p, int64_t image, int64_t q0, int64_t rows, int64_t k0, int64_t n, T* s) {
  ScoreBlock<T> b{rows, n, n, s, T(p.scale), nullptr, 0, p.causal, q0 - k0 + 1};
  if (p.mask.s.defined()) {
    const MatRef<T> m = p.mask.at<T>(image);
    b.mask = m.p + q0 * m.rs + k0;
    b.mask_ld = m.rs;
  }
  return b;
}

/// Keys that queries below `end` can see.
int64_t visible(const Problem& p, int64_t end) { return p.causal ? std::min(p.keys, end) : p.keys; }

template <class T>
MatRef<T> rows_from(MatRef<T> x, int64_t row) {
  return {x.p + row * x.rs, x.rs, x.cs};
}

template <class T>
void forward(const Problem& p, const Dropping& drop, T* out, T* lse) {
  const int64_t blocks = (p.queries + kQueries - 1) / kQueries;
  const double flops = 2.0 * double(std::min(p.queries, kQueries)) * double(p.keys) * double(p.width + p.value_width);
  parallel_tiles(p.count * blocks, grain_for(flops / 60), [&](int64_t b, int64_t e) {
    Scratch<T> scores(kQueries * std::min(p.keys, kKeys)), stats(3 * kQueries);
    T *top = stats.get(), *total = top + kQueries, *factor = total + kQueries;
    for (int64_t t = b; t < e; ++t) {
      const int64_t image = t / blocks, q0 = t % blocks * kQueries, rows = std::min(kQueries, p.queries - q0);
      const MatRef<T> q = rows_from(p.q.at<T>(image), q0), k = p.k.at<T>(image), v = p.v.at<T>(image);
      T* to = out + (image * p.queries + q0) * p.value_width;
      std::fill_n(top, rows, -std::numeric_limits<T>::infinity());
      std::fill_n(total, rows, T(0));
      if (p.keys == 0) std::fill_n(to, rows * p.value_width, T(0));
      for (int64_t k0 = 0, end = visible(p, q0 + rows); k0 < end; k0 += kKeys) {
        const int64_t n = std::min(kKeys, end - k0);
        gemm_serial<T>(rows, n, p.width, T(1), q, rows_from(k, k0).t(), T(0), scores.get(), n);
        loops<T>().forward(block(p, image, q0, rows, k0, n, scores.get()), top, total, factor);
        drop.apply(p, image, q0, rows, k0, n, scores.get());
        if (k0 != 0) loops<T>().scale_rows(rows, p.value_width, p.value_width, factor, to);
        gemm_serial<T>(rows, p.value_width, n, T(1), {scores.get(), n, 1}, rows_from(v, k0), k0 == 0 ? T(0) : T(1), to,
                       p.value_width);
      }
      for (int64_t r = 0; r < rows; ++r) {
        // No key at all: zeros, and a logsumexp of -inf.
        factor[r] = total[r] == 0 ? T(0) : T(1) / total[r];
        lse[image * p.queries + q0 + r] =
            total[r] == 0 ? -std::numeric_limits<T>::infinity() : top[r] + std::log(total[r]);
      }
      loops<T>().scale_rows(rows, p.value_width, p.value_width, factor, to);
    }
  });
}

/// Gradients of one image, contiguous and zeroed. gs: its slopes of scores, or null.
template <class T>
void backward_image(const Problem& p, const Dropping& drop, int64_t image, MatRef<T> g, const T* out, const T* lse,
                    T* gq, T* gk, T* gv, T* gs) {
  const MatRef<T> q = p.q.at<T>(image), k = p.k.at<T>(image), v = p.v.at<T>(image);
  const int64_t most = kQueries * std::min(p.keys, kKeys);
  Scratch<T> probabilities(most), dropped(drop.p > 0 ? most : 0), slopes(most), levels(kQueries);
  for (int64_t q0 = 0; q0 < p.queries; q0 += kQueries) {
    const int64_t rows = std::min(kQueries, p.queries - q0);
    for (int64_t r = 0; r < rows; ++r)
      levels[r] = loops<T>().dot(p.value_width, g.p + (q0 + r) * g.rs, out + (q0 + r) * p.value_width);
    for (int64_t k0 = 0, end = visible(p, q0 + rows); k0 < end; k0 += kKeys) {
      const int64_t n = std::min(kKeys, end - k0);
      T *pr = probabilities.get(), *ds = slopes.get();
      gemm_serial<T>(rows, n, p.width, T(1), rows_from(q, q0), rows_from(k, k0).t(), T(0), pr, n);
      loops<T>().probabilities(block(p, image, q0, rows, k0, n, pr), lse + q0);
      gemm_serial<T>(rows, n, p.value_width, T(1), rows_from(g, q0), rows_from(v, k0).t(), T(0), ds, n);
      const T* kept = pr;
      if (drop.p > 0) {
        std::copy_n(pr, rows * n, dropped.get());
        drop.apply(p, image, q0, rows, k0, n, dropped.get());
        drop.apply(p, image, q0, rows, k0, n, ds);
        kept = dropped.get();
      }
      gemm_serial<T>(n, p.value_width, rows, T(1), MatRef<T>{kept, n, 1}.t(), rows_from(g, q0), T(1),
                     gv + k0 * p.value_width, p.value_width);
      loops<T>().score_slope(rows, n, pr, levels.get(), T(1), ds);
      if (gs)
        for (int64_t r = 0; r < rows; ++r) std::copy_n(ds + r * n, n, gs + (q0 + r) * p.keys + k0);
      gemm_serial<T>(rows, p.width, n, T(p.scale), {ds, n, 1}, rows_from(k, k0), T(1), gq + q0 * p.width, p.width);
      gemm_serial<T>(n, p.width, rows, T(p.scale), MatRef<T>{ds, n, 1}.t(), rows_from(q, q0), T(1), gk + k0 * p.width,
                     p.width);
    }
  }
}

/// x of sizes batch + [rows, cols], summed down to `sizes` where those broadcast.
Storage sum_to_operand(const Storage& x, const Shape& sizes) {
  if (x.sizes() == sizes) return x;
  Storage out = zeros_storage(sizes, x.dtype());
  const int n = x.dim(), skip = n - sizes.size();
  with_float(x.dtype(), [&]<class T>(T) {
    Dims at(n, 0);
    int64_t offset = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      out.data<T>()[offset] += x.data<T>()[i];
      for (int d = n - 1; d >= 0; --d) {
        const int64_t stride = d < skip || sizes[d - skip] == 1 ? 0 : out.stride(d - skip);
        offset += stride;
        if (++at[d] < x.size(d)) break;
        offset -= stride * x.size(d);
        at[d] = 0;
      }
    }
  });
  return out;
}

}  // namespace

std::array<Storage, 3> native_attention(const OpSchema& op, const Storage& query, const Storage& key,
                                        const Storage& value, const Storage& attn_mask, double dropout_p,
                                        bool is_causal, std::optional<double> scale, Generator* generator) {
  const Problem p = make_problem(op, query, key, value, attn_mask, dropout_p, is_causal, scale);
  Shape rows = p.batch;
  rows.push_back(p.queries);
  Storage out = empty(p.sizes(p.queries, p.value_width), p.work), lse = empty(rows, p.work),
          state = zeros_storage({2}, Dtype::I64);
  Dropping drop = dropping(p, dropout_p);
  if (dropout_p > 0) {
    Generator& g = generator_or_default(generator);
    const std::uint64_t blocks = std::uint64_t(p.count * p.queries * drop.groups_per_row * kRandomBlocks);
    drop.stream = {g.state().seed, g.take(blocks)};
    state.data<std::uint64_t>()[0] = drop.stream.seed;
    state.data<std::uint64_t>()[1] = drop.stream.block;
  }
  if (lse.numel() != 0)
    with_float(p.work, [&]<class T>(T) {
      modes::Unlocked unlocked(double(lse.numel()) * double(p.keys) * double(p.width) > 2e6);
      forward<T>(p, drop, out.data<T>(), lse.data<T>());
    });
  return {in_dtype(out, p.result), lse, state};
}

std::array<Storage, 4> native_attention_backward(const OpSchema& op, const Storage& g, const Storage& query,
                                                 const Storage& key, const Storage& value, const Storage& attn_mask,
                                                 const Storage& out, const Storage& logsumexp,
                                                 const Storage& random_state, double dropout_p, bool is_causal,
                                                 std::optional<double> scale, bool want_mask) {
  const Problem p = make_problem(op, query, key, value, attn_mask, dropout_p, is_causal, scale);
  const Shape sizes = p.sizes(p.queries, p.value_width);
  if (TP_UNLIKELY(!(g.sizes() == sizes && out.sizes() == sizes)))
    value_error(op.name, ": g and out must have sizes ", sizes, "; they are ", g.sizes(), " and ", out.sizes());
  if (TP_UNLIKELY(logsumexp.numel() != p.count * p.queries))
    value_error(op.name, ": logsumexp has ", logsumexp.numel(), " values for ", p.count * p.queries, " queries");
  const Storage sg = contiguous(cast(g, p.work)), so = contiguous(cast(out, p.work)),
                sl = contiguous(cast(logsumexp, p.work));
  Storage gq = zeros_storage(p.sizes(p.queries, p.width), p.work), gk = zeros_storage(p.sizes(p.keys, p.width), p.work);
  Storage gv = zeros_storage(p.sizes(p.keys, p.value_width), p.work);
  const Storage gs = want_mask ? zeros_storage(p.sizes(p.queries, p.keys), p.work) : Storage();
  Dropping drop = dropping(p, dropout_p);
  if (dropout_p > 0) {
    if (TP_UNLIKELY(random_state.numel() != 2 || random_state.dtype() != Dtype::I64))
      value_error(op.name, ": random_state must be the one the forward gave; it is ", random_state.sizes());
    const std::uint64_t* s = random_state.data<std::uint64_t>();
    drop.stream = {s[0], s[1]};
  }
  with_float(p.work, [&]<class T>(T) {
    const double work = double(p.queries) * double(p.keys) * double(p.width + p.value_width) * 5;
    modes::Unlocked unlocked(work * double(p.count) > 4e6);
    parallel_tiles(p.count, grain_for(work / 60), [&](int64_t b, int64_t e) {
      const int64_t rows = p.queries * p.value_width;
      for (int64_t i = b; i < e; ++i)
        backward_image<T>(p, drop, i, {sg.data<T>() + i * rows, p.value_width, 1}, so.data<T>() + i * rows,
                          sl.data<T>() + i * p.queries, gq.data<T>() + i * p.queries * p.width,
                          gk.data<T>() + i * p.keys * p.width, gv.data<T>() + i * p.keys * p.value_width,
                          want_mask ? gs.data<T>() + i * p.queries * p.keys : nullptr);
    });
  });
  return {in_dtype(sum_to_operand(gq, query.sizes()), query.dtype()),
          in_dtype(sum_to_operand(gk, key.sizes()), key.dtype()),
          in_dtype(sum_to_operand(gv, value.sizes()), value.dtype()), gs};
}

}  // namespace tp::kernels
