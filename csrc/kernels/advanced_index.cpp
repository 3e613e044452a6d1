// Advanced indexing, reading and writing: x[rows, cols], x[mask], x[:, idx].
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/index.h"
#include "kernels/index_support.h"

namespace tp::kernels {
namespace {

// The indexed tensor seen as [before..., picked, after...]: `offsets` (elements) are the picked places, `picked` the
// broadcast shape of the index tensors.
struct Picks {
  Shape before, picked, after, result;
  Strides before_strides, after_strides;
  std::vector<std::int64_t> offsets;
};

// An index tensor and the dimension it indexes.
struct Entry {
  int dim;
  Storage index;
};

void add_mask(const OpSchema& op, const Storage& self, const Storage& mask, int dim, std::vector<Entry>& entries) {
  if (TP_UNLIKELY(dim + mask.dim() > self.dim()))
    index_error(op.name, ": too many indices for a tensor of dimension ", self.dim());
  for (int k = 0; k < mask.dim(); ++k)
    if (TP_UNLIKELY(mask.size(k) != self.size(dim + k)))
      index_error(op.name, ": the shape of the mask ", mask.sizes(), " at dimension ", k,
                  " does not match the shape of the indexed tensor ", self.sizes(), " at dimension ", dim + k);
  const Storage places = nonzero(op, mask);  // [count, dimensions]
  const std::int64_t count = places.size(0), n = places.size(1);
  for (int k = 0; k < mask.dim(); ++k)
    entries.push_back({dim + k, places.with_geometry(Shape{count}, Strides{n}, places.offset() + k)});
}

Picks resolve(const OpSchema& op, const Storage& given, std::span<const Storage> indices, Storage& self) {
  self = given;
  std::vector<Entry> entries;
  int dim = 0;
  for (const Storage& index : indices) {
    if (!index.defined()) {
      ++dim;
      continue;
    }
    if (index.dtype() == Dtype::Bool) {
      if (index.dim() == 0) {
        // A 0-d mask adds a dimension of size 1 and keeps or drops it.
        Shape sizes = self.sizes();
        Strides strides = self.strides();
        sizes.insert(dim, 1);
        strides.insert(dim, 0);
        self = self.with_geometry(sizes, strides, self.offset());
        Storage zeros = zeros_storage(Shape{*contiguous(index).data<std::uint8_t>() ? 1 : 0}, Dtype::I64);
        entries.push_back({dim++, zeros});
        continue;
      }
      add_mask(op, self, index, dim, entries);
      dim += index.dim();
      continue;
    }
    if (TP_UNLIKELY(category(index.dtype()) != Category::Integer))
      index_error(op.name, ": tensors used as indices must hold integers or bools, got ", dtype_name(index.dtype()));
    entries.push_back({dim++, index});
  }
  if (TP_UNLIKELY(dim > self.dim()))
    index_error(op.name, ": too many indices (", dim, ") for a tensor of dimension ", self.dim());

  Picks p;
  std::vector<const Storage*> tensors;
  for (const Entry& e : entries) tensors.push_back(&e.index);
  if (!tensors.empty()) {
    try {
      p.picked = broadcast_shapes(op.name, tensors);
    } catch (const Error& e) {
      fail_with(ErrorKind::Index, std::string(e.what()) + "; index tensors must broadcast together");
    }
  }
  const std::int64_t count = product(p.picked);
  p.offsets.assign(std::size_t(count), 0);
  for (const Entry& e : entries) {
    const std::int64_t size = self.size(e.dim), step = self.stride(e.dim);
    const Storage own = contiguous(cast(e.index, Dtype::I64));
    check_indices(op.name, own.data<std::int64_t>(), own.numel(), size, e.dim, true);
    const Storage at = own.sizes() == p.picked ? own : contiguous(expanded(own, p.picked));
    const std::int64_t* v = at.data<std::int64_t>();
    for (std::int64_t i = 0; i < count; ++i) p.offsets[std::size_t(i)] += (v[i] < 0 ? v[i] + size : v[i]) * step;
  }
  // Neighbouring index tensors leave their dimensions in place; others move them to the front.
  bool adjacent = true;
  for (std::size_t i = 1; i < entries.size(); ++i) adjacent = adjacent && entries[i].dim == entries[i - 1].dim + 1;
  const int first = entries.empty() ? self.dim() : entries.front().dim;
  for (int d = 0; d < self.dim(); ++d) {
    if (std::any_of(entries.begin(), entries.end(), [&](const Entry& e) { return e.dim == d; })) continue;
    const bool is_before = adjacent && d < first;
    (is_before ? p.before : p.after).push_back(self.size(d));
    (is_before ? p.before_strides : p.after_strides).push_back(self.stride(d));
  }
  p.result = p.before;
  for (std::int64_t s : p.picked) p.result.push_back(s);
  for (std::int64_t s : p.after) p.result.push_back(s);
  return p;
}

// Neighbouring dimensions that one stride serves become one, so that rows are as long as the layout allows.
void merge_dims(Shape& sizes, Strides& a, Strides& b) {
  Shape s;
  Strides x, y;
  for (int d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    const int k = s.size() - 1;
    if (k >= 0 && x[k] == a[d] * sizes[d] && y[k] == b[d] * sizes[d]) {
      s[k] *= sizes[d];
      x[k] = a[d];
      y[k] = b[d];
    } else {
      s.push_back(sizes[d]);
      x.push_back(a[d]);
      y.push_back(b[d]);
    }
  }
  if (s.empty()) {
    s.push_back(1);
    x.push_back(1);
    y.push_back(1);
  }
  sizes = s;
  a = x;
  b = y;
}

// move(self element, other element) for all picked places. `other` has the shape of the result, any strides.
template <class T, class Move>
void each_picked(const Picks& p, T* self, T* other, const Strides& other_strides, bool parallel, const Move& move) {
  const int nb = p.before.size(), np = p.picked.size();
  Strides other_before(other_strides.span().subspan(0, std::size_t(nb)));
  Strides other_picked(other_strides.span().subspan(std::size_t(nb), std::size_t(np)));
  Strides other_after(other_strides.span().subspan(std::size_t(nb + np)));
  Shape after = p.after;
  Strides after_self = p.after_strides;
  merge_dims(after, after_self, other_after);
  const std::int64_t cols = after.back(), rows = product(after) / (cols ? cols : 1);
  const std::int64_t self_step = after_self.back(), other_step = other_after.back();
  const std::int64_t outer = product(p.before), count = std::int64_t(p.offsets.size());
  if (cols == 0 || rows == 0 || outer == 0 || count == 0) return;

  // Offsets of the other side at each pick.
  std::vector<std::int64_t> other_at;
  const bool even = np <= 1 || [&] {
    for (int d = np - 2; d >= 0; --d)
      if (other_picked[d] != other_picked[d + 1] * p.picked[d + 1]) return false;
    return true;
  }();
  const std::int64_t even_step = np ? other_picked[np - 1] : 0;
  if (!even) {
    other_at.resize(std::size_t(count));
    Shape sizes = p.picked;
    sizes.push_back(1);
    Strides strides = other_picked;
    strides.push_back(0);
    Rows<1> walk(sizes, {&strides});
    walk.seek(0);
    for (std::int64_t i = 0; i < count; ++i, walk.next()) other_at[std::size_t(i)] = walk.at[0];
  }

  const auto run = [&](std::int64_t b, std::int64_t e) {
    Shape with_row = p.before;
    with_row.push_back(1);
    Strides sb = p.before_strides, ob = other_before;
    sb.push_back(0);
    ob.push_back(0);
    Rows<2> base(with_row, {&sb, &ob});
    Rows<2> inner(after, {&after_self, &other_after});
    if (b == e) return;
    base.seek(b / count);
    for (std::int64_t k = b, i = b % count; k < e; ++k, ++i) {
      if (i == count) {
        base.next();
        i = 0;
      }
      T* s = self + base.at[0] + p.offsets[std::size_t(i)];
      T* o = other + base.at[1] + (even ? i * even_step : other_at[std::size_t(i)]);
      if (rows == 1) {
        for (std::int64_t c = 0; c < cols; ++c) move(s[c * self_step], o[c * other_step]);
        continue;
      }
      inner.seek(0);
      for (std::int64_t r = 0; r < rows; ++r, inner.next())
        for (std::int64_t c = 0; c < cols; ++c) move(s[inner.at[0] + c * self_step], o[inner.at[1] + c * other_step]);
    }
  };
  const std::int64_t total = outer * count, each = rows * cols;
  modes::Unlocked unlocked(total * each >= kUnlockFrom);
  if (parallel)
    parallel_tiles(total, std::max<std::int64_t>(1, kParallelFrom / 2 / each), run);
  else
    run(0, total);
}

// Single elements, or runs of contiguous ones, into a contiguous result.
void pick_runs(const Picks& p, std::int64_t run, const Storage& self, const Storage& out) {
  const std::int64_t count = std::int64_t(p.offsets.size()), item = std::int64_t(item_size(out.dtype()));
  if (out.numel() == 0) return;
  const auto pick = index_kernels->pick[copy2d_index(std::size_t(item))];
  const std::int64_t bytes = run * item, outer = product(p.before);
  const std::int64_t piece = std::clamp<std::int64_t>(kParallelFrom / 4 / run, 1, 4096);
  const std::int64_t pieces = (count + piece - 1) / piece;
  Shape with_row = p.before;
  with_row.push_back(1);
  Strides strides = p.before_strides;
  strides.push_back(0);
  modes::Unlocked unlocked(out.numel() >= kUnlockFrom);
  const std::int64_t grain = std::max<std::int64_t>(1, kParallelFrom / 2 / (std::min(count, piece) * run));
  parallel_tiles(outer * pieces, grain, [&](std::int64_t b, std::int64_t e) {
    Rows<1> base(with_row, {&strides});
    base.seek(b / pieces);
    for (std::int64_t k = b, at = b % pieces; k < e; ++k, ++at) {
      if (at == pieces) {
        base.next();
        at = 0;
      }
      const std::int64_t first = at * piece, n = std::min(piece, count - first);
      const std::int64_t* offsets = p.offsets.data() + first;
      const char* from = self.raw() + base.at[0] * item;
      char* to = out.raw() + (k / pieces * count + first) * bytes;
      if (run == 1)
        pick(to, from, offsets, n, 1, 0);
      else
        for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * bytes, from + offsets[i] * item, std::size_t(bytes));
    }
  });
}

}  // namespace

Storage index(const OpSchema& op, const Storage& input, std::span<const Storage> indices) {
  Storage self;
  const Picks p = resolve(op, input, indices, self);
  Storage out = empty(p.result, input.dtype());
  const std::int64_t after = product(p.after);
  const std::size_t bytes = std::size_t(after) * item_size(input.dtype());
  if (after == 1 || (bytes >= 64 && p.after_strides == contiguous_strides(p.after))) {
    pick_runs(p, after, self, out);
    return out;
  }
  with_raw(item_size(input.dtype()), [&](auto type) {
    using T = decltype(type);
    each_picked<T>(p, self.data<T>(), out.data<T>(), out.strides(), true, [](T& from, T& to) { to = from; });
  });
  return out;
}

void index_put_(const OpSchema& op, Storage& given, std::span<const Storage> indices, const Storage& values,
                bool accumulate) {
  require_writable(op.name, given);
  if (accumulate && is_half(given.dtype())) {
    Storage wide = fresh_copy(cast(given, Dtype::F32));
    index_put_(op, wide, indices, values, true);
    return copy_into(given, wide);
  }
  if (TP_UNLIKELY(category(values.dtype()) > category(given.dtype())))
    type_error(op.name, "_: values of dtype ", dtype_name(values.dtype()), " can't be cast to ",
               dtype_name(given.dtype()));
  Storage self;
  const Picks p = resolve(op, given, indices, self);
  Storage from = cast(values, self.dtype());
  if (overlaps(from, self)) from = fresh_copy(from);
  // Leading dimensions of size 1 may be dropped, as in any assignment.
  Shape own = from.sizes();
  Strides own_strides = from.strides();
  while (own.size() > p.result.size() && own[0] == 1) {
    own.erase(0);
    own_strides.erase(0);
  }
  bool fits = own.size() <= p.result.size();
  Strides strides(p.result.size(), 0);
  for (int d = 0; fits && d < own.size(); ++d) {
    const int k = p.result.size() - own.size() + d;
    fits = own[d] == p.result[k] || own[d] == 1;
    strides[k] = own[d] == 1 ? 0 : own_strides[d];
  }
  if (TP_UNLIKELY(!fits))
    value_error(op.name, "_: values of shape ", values.sizes(), " do not broadcast to the indexed shape ", p.result);
  if (!accumulate) {
    // In order, so that of several values for one place the last one stays.
    with_raw(item_size(self.dtype()), [&](auto type) {
      using T = decltype(type);
      each_picked<T>(p, self.data<T>(), from.data<T>(), strides, false, [](T& to, T& v) { to = v; });
    });
    return;
  }
  with_arithmetic(self.dtype(), [&](auto type) {
    using T = decltype(type);
    each_picked<T>(p, self.data<T>(), from.data<T>(), strides, false, [](T& to, T& v) { to = T(to + v); });
  });
}

Storage index_put(const OpSchema& op, const Storage& input, std::span<const Storage> indices, const Storage& values,
                  bool accumulate) {
  Storage out = fresh_copy(input);
  index_put_(op, out, indices, values, accumulate);
  return out;
}

}  // namespace tp::kernels
