// Writing and adding along a dimension by index tensors.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/index.h"
#include "kernels/index_support.h"
#include "kernels/number.h"
#include "kernels/scratch.h"
#include "kernels/staging.h"
#include "kernels/streaming.h"

namespace tp::kernels {
namespace {

// Checks the shapes of a scatter and gives its index; sources may be larger than the index, not smaller.
Storage scatter_index(const OpSchema& op, const Storage& self, int dim, const Storage& index, const Storage* src) {
  const auto dims = [](const Storage& s) { return s.dim() == 0 ? 1 : s.dim(); };
  if (TP_UNLIKELY(dims(index) != dims(self) || (src && dims(*src) != dims(index))))
    value_error(op.name, ": input of shape ", self.sizes(), ", index of shape ", index.sizes(), src ? " and src" : "",
                " must have the same number of dimensions");
  for (int k = 0; k < index.dim(); ++k) {
    if (TP_UNLIKELY(k != dim && self.dim() && index.size(k) > self.size(k)))
      value_error(op.name, ": index of shape ", index.sizes(), " is larger than input of shape ", self.sizes(),
                  " in dimension ", k);
    if (TP_UNLIKELY(src && src->dim() && index.size(k) > src->size(k)))
      value_error(op.name, ": index of shape ", index.sizes(), " is larger than src of shape ", src->sizes(),
                  " in dimension ", k);
  }
  Storage at = int64_index(op.name, index);
  check_indices(op.name, at.data<std::int64_t>(), at.numel(), self.dim() ? self.size(dim) : 1, dim);
  return at;
}

// Updates of n elements one after another: t[places[k] * to_step + k * to_next] by f[k * from_next]. The walks around it
// know bytes alone, so that there is one of each for all types and updates.
struct Run {
  const std::int64_t* places;
  std::int64_t n, place_next, to_step, to_next, from_next;
};
using RunFn = void (*)(char* to, const char* from, const Run& run);
template <class T, class Update>
void run_updates(char* to, const char* from, const Run& r) {
  T* t = reinterpret_cast<T*>(to);
  const T* f = reinterpret_cast<const T*>(from);
  for (std::int64_t k = 0; k < r.n; ++k)
    Update()(t[r.places[k * r.place_next] * r.to_step + k * r.to_next], f[k * r.from_next]);
}

// What is scattered: a tensor, or one value (a 0-d tensor), which stands still.
struct Scatter {
  RunFn run;
  const Storage& self;
  int dim;
  const Storage& index;
  const Storage& src;

  std::int64_t item() const { return std::int64_t(item_size(self.dtype())); }
  Strides source_strides() const { return src.dim() == index.dim() ? src.strides() : Strides(index.dim(), 0); }

  // Along any dimension but the last: a block of columns at a time, so that all of its rows stay in the cache.
  void columns() const {
    const int last = index.dim() - 1;
    const std::int64_t length = index.size(dim), cols = index.size(last), bytes = item();
    Shape sizes = index.sizes();
    Strides to = self.strides(), at = index.strides(), from = source_strides();
    const std::int64_t to_step = to[dim], at_step = at[dim], from_step = from[dim] * bytes;
    const std::int64_t to_col = to[last], at_col = at[last], from_col = from[last];
    sizes.erase(dim), to.erase(dim), at.erase(dim), from.erase(dim);
    const std::int64_t width = cached_columns(self.size(dim), std::size_t(bytes)), blocks = (cols + width - 1) / width;
    const std::int64_t* places = index.data<std::int64_t>();
    const std::int64_t each = length * std::min(width, cols);
    parallel_tiles(index.numel() / (length * cols) * blocks, std::max<std::int64_t>(1, kParallelFrom / 2 / each),
                   [&](std::int64_t b, std::int64_t e) {
                     Rows<3> row(sizes, {&to, &at, &from});
                     for (std::int64_t k = b; k < e; ++k) {
                       const std::int64_t c = k % blocks * width, n = std::min(width, cols - c);
                       row.seek(k / blocks);
                       char* t = self.raw() + (row.at[0] + c * to_col) * bytes;
                       const char* f = src.raw() + (row.at[2] + c * from_col) * bytes;
                       Run r{places + row.at[1] + c * at_col, n, at_col, to_step, to_col, from_col};
                       for (std::int64_t i = 0; i < length; ++i, r.places += at_step, f += from_step) run(t, f, r);
                     }
                   });
  }

  // Lines along `dim`. Where `start` is given, each line of self is first made that of it, and leaves the caches if self is
  // `streamed`.
  void lines(const Storage* start, bool streamed) const {
    // That dimension is put last.
    Shape sizes = index.dim() ? index.sizes() : Shape{1};
    Strides to = self.strides(), at = index.strides(), from = source_strides(), before = start ? start->strides() : to;
    for (Strides* v : {&to, &at, &from, &before})
      if (v->empty()) v->push_back(0);
    for (Dims* v : {&sizes, &to, &at, &from, &before}) {
      const std::int64_t x = (*v)[dim];
      v->erase(dim);
      v->push_back(x);
    }
    const int last = sizes.size() - 1;
    const std::int64_t length = sizes[last], bytes = item(), whole = start ? start->size(dim) : 0;
    const Copy2dFn copy = staging->copy2d[copy2d_index(std::size_t(bytes))];
    const std::int64_t* places = index.data<std::int64_t>();
    parallel_tiles(index.numel() / length, std::max<std::int64_t>(1, kParallelFrom / 2 / length),
                   [&](std::int64_t b, std::int64_t e) {
                     Rows<4> row(sizes, {&to, &from, &at, &before});
                     row.seek(b);
                     const Scratch<char> line(streamed ? whole * bytes : 0);
                     for (std::int64_t r = b; r < e; ++r, row.next()) {
                       char* const place = self.raw() + row.at[0] * bytes;
                       char* const t = streamed ? line.get() : place;
                       if (start) copy(t, start->raw() + row.at[3] * bytes, {0, 1, 0, before[last]}, 1, whole);
                       run(t, src.raw() + row.at[1] * bytes,
                           {places + row.at[2], length, at[last], to[last], 0, from[last]});
                       if (streamed) stream(place, t, whole * bytes);
                     }
                     if (streamed) stream_fence();
                   });
  }
};

// Update()(self element, src element) for every index. Lines along `dim` are independent of each other, so they may run in
// parallel; along a line the order is the index order.
template <class T, class Update>
void scatter_each(const Storage& self, int dim, const Storage& index, const Storage& src, const Update&) {
  if (index.numel() == 0) return;
  modes::Unlocked unlocked(index.numel() >= kUnlockFrom);
  const Scatter s{run_updates<T, Update>, self, dim, index, src};
  if (dim + 1 < index.dim())
    s.columns();
  else
    s.lines(nullptr, false);
}

// out, not written yet, becomes `input` with the updates. Where every line of it is updated, each is copied just before,
// while it stays in cache.
template <class T, class Update>
void scatter_copied(Storage& out, const Storage& input, int dim, const Storage& index, const Storage& src,
                    const Update& update) {
  bool all = input.dim() > 0 && dim == input.dim() - 1 && index.numel() > 0;
  for (int k = 0; all && k < dim; ++k) all = index.size(k) == input.size(k);
  if (!all) {
    copy_into(out, input);
    return scatter_each<T>(out, dim, index, src, update);
  }
  modes::Unlocked unlocked(index.numel() >= kUnlockFrom);
  const std::int64_t line = input.size(dim) * std::int64_t(sizeof(T));
  const bool streamed = streams(std::size_t(out.nbytes())) && line >= 256 && line <= 32768;
  Scatter{run_updates<T, Update>, out, dim, index, src}.lines(&input, streamed);
}

Storage scalar_storage(const Scalar& value, Dtype dtype) {
  Storage s = empty(Shape{}, dtype);
  fill(s, value);
  return s;
}

// Sums into halves are taken in float and rounded once.
template <class InPlace>
void via_float(Storage& self, const InPlace& f) {
  Storage wide = fresh_copy(cast(self, Dtype::F32));
  f(wide);
  copy_into(self, wide);
}

template <class T>
T lowest_of() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

template <class T>
bool is_nan(T v) {
  return v != v;
}

enum class Reduce { Sum, Prod, Mean, Amax, Amin };

Reduce reduce_of(const OpSchema& op, std::string_view name) {
  constexpr std::string_view names[] = {"sum", "prod", "mean", "amax", "amin"};
  for (int i = 0; i < 5; ++i)
    if (name == names[i]) return Reduce(i);
  value_error(op.name, ": reduce='", name, "' is not one of sum, prod, mean, amax, amin");
}

// f(T()) with an ordered type of the dtype's own signedness.
template <class F>
void with_ordered(const OpSchema& op, Dtype d, const F& f) {
  switch (d) {
    case Dtype::I32: return f(std::int32_t());
    case Dtype::I64: return f(std::int64_t());
    case Dtype::U64: return f(std::uint64_t());
    case Dtype::F32: return f(float());
    case Dtype::F64: return f(double());
    default: type_error(op.name, ": not defined for ", dtype_name(d), " tensors");
  }
}

struct Add {
  template <class T>
  void operator()(T& t, const T& f) const {
    t = T(t + f);
  }
};

struct Put {
  template <class T>
  void operator()(T& t, const T& f) const {
    t = f;
  }
};

template <class T>
void add_row(T* __restrict to, const T* __restrict from, std::int64_t n) {
  if constexpr (std::is_same_v<T, float>)
    index_kernels->add_f32(to, from, n);
  else if constexpr (std::is_same_v<T, double>)
    index_kernels->add_f64(to, from, n);
  else
    for (std::int64_t j = 0; j < n; ++j) to[j] = T(to[j] + from[j]);
}

// Rows of source added to (or written over) rows of self: both contiguous, seen as [outer, n, inner].
template <class T, class Update>
void update_slices(const Storage& self, int dim, const Storage& index, const Storage& source, const Update& update) {
  const Around a(self.sizes(), dim);
  const std::int64_t count = index.numel();
  if (count == 0 || self.numel() == 0) return;
  T* to = self.data<T>();
  const T* from = source.data<T>();
  const std::int64_t* at = index.data<std::int64_t>();
  // Indices may repeat: threads take columns, never rows.
  constexpr std::int64_t width = 256;
  const std::int64_t blocks = (a.inner + width - 1) / width;
  modes::Unlocked unlocked(a.outer * count * a.inner >= kUnlockFrom);
  parallel_tiles(a.outer * blocks, std::max<std::int64_t>(1, kParallelFrom / (count * std::min(width, a.inner))),
                 [&](std::int64_t b, std::int64_t e) {
                   for (std::int64_t k = b; k < e; ++k) {
                     const std::int64_t o = k / blocks, first = k % blocks * width;
                     const std::int64_t n = std::min(width, a.inner - first);
                     if (a.inner == 1) {
                       for (std::int64_t i = 0; i < count; ++i) update(to[o * a.n + at[i]], from[o * count + i]);
                       continue;
                     }
                     for (std::int64_t i = 0; i < count; ++i) {
                       T* __restrict t = to + (o * a.n + at[i]) * a.inner + first;
                       const T* __restrict f = from + (o * count + i) * a.inner + first;
                       if constexpr (std::is_same_v<Update, Add>)
                         add_row(t, f, n);
                       else if constexpr (std::is_same_v<Update, Put>)
                         std::memcpy(t, f, std::size_t(n) * sizeof(T));
                       else
                         for (std::int64_t j = 0; j < n; ++j) update(t[j], f[j]);
                     }
                   }
                 });
}

// out[r] = the sum of source[i] with at[i] == r, in that order. Each row is written once where none repeats, zeros after
// all others. Threads take ranges of rows.
template <class T>
void sum_rows(const Storage& out, const std::int64_t* at, const Storage& source) {
  const std::int64_t n = out.size(0), width = out.size(1), count = source.size(0),
                     bytes = width * std::int64_t(sizeof(T));
  const bool streamed = streams(std::size_t(n * bytes));
  const auto range = [&](std::int64_t low, std::int64_t high) {
    const Scratch<std::uint8_t> seen(high - low);
    std::fill_n(seen.get(), high - low, std::uint8_t(0));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t r = at[i] - low;
      if (r < 0 || r >= high - low) continue;
      T* to = out.data<T>() + at[i] * width;
      const T* from = source.data<T>() + i * width;
      if (seen[r])
        add_row(to, from, width);
      else if (streamed)
        stream(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from), bytes);
      else
        std::copy_n(from, width, to);
      seen[r] = 1;
    }
    const Scratch<T> zeros(width);
    std::fill_n(zeros.get(), width, T{});
    for (std::int64_t r = low; r < high; ++r) {
      T* to = out.data<T>() + r * width;
      if (seen[r - low]) continue;
      if (streamed)
        stream(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(zeros.get()), bytes);
      else
        std::copy_n(zeros.get(), width, to);
    }
    if (streamed) stream_fence();
  };
  modes::Unlocked unlocked(out.numel() >= kUnlockFrom);
  const std::int64_t parts = std::min<std::int64_t>(num_threads(), out.numel() / kParallelFrom + 1);
  parallel_tiles(parts, 1, [&](std::int64_t b, std::int64_t e) { range(n * b / parts, n * e / parts); });
}

// Runs f on a contiguous version of self and writes it back when that was a copy.
template <class F>
void on_contiguous(Storage& self, const F& f) {
  if (self.is_contiguous()) return f(self);
  Storage copy = contiguous(self);
  f(copy);
  copy_into(self, copy);
}

struct Slices {
  int dim;
  Storage index, source;
};

// Checks of index_add, index_copy and index_fill; source is cast to self's dtype. 0-d tensors count as 1-d.
Slices slices_of(const OpSchema& op, const Storage& self, std::int64_t dim, const Storage& index,
                 const Storage* source) {
  const int d = wrap_dim(op.name, dim, self.dim());
  if (TP_UNLIKELY(index.dim() > 1)) value_error(op.name, ": index must be 1-d, got shape ", index.sizes());
  Slices s{d, int64_index(op.name, index), {}};
  if (source) {
    Shape want = self.sizes();
    if (self.dim()) want[d] = s.index.numel();
    const bool scalar = source->dim() == 0 && product(want) == 1;
    if (TP_UNLIKELY(!(source->sizes() == want) && !scalar))
      value_error(op.name, ": source has shape ", source->sizes(), ", but input of shape ", self.sizes(), " and ",
                  s.index.numel(), " indices along dimension ", d, " need ", want);
    if (TP_UNLIKELY(category(source->dtype()) > category(self.dtype())))
      type_error(op.name, ": source of dtype ", dtype_name(source->dtype()), " can't be cast to ",
                 dtype_name(self.dtype()));
    s.source = contiguous(cast(*source, self.dtype()));
  }
  check_indices(op.name, s.index.data<std::int64_t>(), s.index.numel(), self.dim() ? self.size(d) : 1, d);
  return s;
}

}  // namespace

// ---- scatter -----------------------------------------------------------------------------------------------------

void scatter_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index, const Storage& src) {
  const int d = wrap_dim(op.name, dim, self.dim());
  require_writable(op.name, self);
  const Storage at = scatter_index(op, self, d, index, &src);
  Storage from = cast(src, self.dtype());
  if (overlaps(from, self)) from = fresh_copy(from);
  with_raw(item_size(self.dtype()), [&](auto type) {
    using T = decltype(type);
    scatter_each<T>(self, d, at, from, [](T& t, const T& f) { t = f; });
  });
}
Storage scatter(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index, const Storage& src) {
  const int d = wrap_dim(op.name, dim, input.dim());
  const Storage at = scatter_index(op, input, d, index, &src), from = cast(src, input.dtype());
  Storage out = empty(input.sizes(), input.dtype());
  with_raw(item_size(input.dtype()), [&](auto type) {
    using T = decltype(type);
    scatter_copied<T>(out, input, d, at, from, [](T& t, const T& f) { t = f; });
  });
  return out;
}

void scatter_value_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index, const Scalar& value) {
  const int d = wrap_dim(op.name, dim, self.dim());
  require_writable(op.name, self);
  const Storage at = scatter_index(op, self, d, index, nullptr);
  check_held(op.name, value, self.dtype());
  const Storage one = scalar_storage(value, self.dtype());
  with_raw(item_size(self.dtype()), [&](auto type) {
    using T = decltype(type);
    scatter_each<T>(self, d, at, one, [](T& t, const T& f) { t = f; });
  });
}
Storage scatter_value(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                      const Scalar& value) {
  Storage out = fresh_copy(input);
  scatter_value_(op, out, dim, index, value);
  return out;
}

void scatter_add_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index, const Storage& src) {
  if (is_half(self.dtype())) return via_float(self, [&](Storage& wide) { scatter_add_(op, wide, dim, index, src); });
  const int d = wrap_dim(op.name, dim, self.dim());
  require_writable(op.name, self);
  const Storage at = scatter_index(op, self, d, index, &src);
  Storage from = cast(src, self.dtype());
  if (overlaps(from, self)) from = fresh_copy(from);
  with_arithmetic(self.dtype(), [&](auto type) {
    using T = decltype(type);
    scatter_each<T>(self, d, at, from, [](T& t, const T& f) { t = T(t + f); });
  });
}
Storage scatter_add(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                    const Storage& src) {
  if (is_half(input.dtype())) {
    Storage out = fresh_copy(input);
    scatter_add_(op, out, dim, index, src);
    return out;
  }
  const int d = wrap_dim(op.name, dim, input.dim());
  const Storage at = scatter_index(op, input, d, index, &src), from = cast(src, input.dtype());
  Storage out = empty(input.sizes(), input.dtype());
  with_arithmetic(input.dtype(), [&](auto type) {
    using T = decltype(type);
    scatter_copied<T>(out, input, d, at, from, [](T& t, const T& f) { t = T(t + f); });
  });
  return out;
}

Storage scatter_reduce(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                       const Storage& src, std::string_view reduce, bool include_self) {
  const Reduce kind = reduce_of(op, reduce);
  const int d = wrap_dim(op.name, dim, input.dim());
  const Storage at = scatter_index(op, input, d, index, &src);
  // Work in a compute type; complex numbers and bools only sum and multiply.
  const bool ordered = kind == Reduce::Amax || kind == Reduce::Amin;
  const Dtype work = input.dtype() == Dtype::Bool && ordered ? Dtype::I32 : dtype_of(compute_type(input.dtype()));
  Storage out = fresh_copy(cast(input, work));
  const Storage from = cast(src, work);
  if (!include_self) {
    // Places that receive something start from the identity.
    Scalar identity(0);
    if (kind == Reduce::Prod) identity = Scalar(1);
    Storage start = scalar_storage(identity, work);
    if (ordered)
      with_ordered(op, work, [&](auto type) {
        using T = decltype(type);
        *start.data<T>() = kind == Reduce::Amax    ? lowest_of<T>()
            : std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                   : std::numeric_limits<T>::max();
      });
    with_raw(item_size(work), [&](auto type) {
      using T = decltype(type);
      scatter_each<T>(out, d, at, start, [](T& t, const T& f) { t = f; });
    });
  }
  if (ordered) {
    with_ordered(op, work, [&](auto type) {
      using T = decltype(type);
      if (kind == Reduce::Amax)
        scatter_each<T>(out, d, at, from, [](T& t, const T& f) { t = (f > t) | is_nan(f) ? f : t; });
      else
        scatter_each<T>(out, d, at, from, [](T& t, const T& f) { t = (f < t) | is_nan(f) ? f : t; });
    });
    return cast(out, input.dtype());
  }
  with_arithmetic(work, [&](auto type) {
    using T = decltype(type);
    if (kind == Reduce::Prod)
      scatter_each<T>(out, d, at, from, [](T& t, const T& f) { t = T(t * f); });
    else
      scatter_each<T>(out, d, at, from, [](T& t, const T& f) { t = T(t + f); });
  });
  if (kind != Reduce::Mean) return cast(out, input.dtype());
  Storage counts = empty(input.sizes(), Dtype::F64);
  fill(counts, Scalar(include_self ? 1 : 0));
  const Storage one = scalar_storage(Scalar(1), Dtype::F64);
  scatter_each<double>(counts, d, at, one, [](double& t, const double& f) { t += f; });
  const double* n = counts.data<double>();
  const auto divide = [&](auto type) {
    using T = decltype(type);
    T* v = out.data<T>();
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      const double by = n[i] < 1 ? 1 : n[i];
      if constexpr (std::is_same_v<T, c64>)
        v[i] = v[i] / float(by);
      else if constexpr (std::is_integral_v<T>) {
        // Floor division, as for integer tensors elsewhere.
        const T k = T(by), q = T(v[i] / k);
        v[i] = T(q - (v[i] % k != 0 && v[i] < 0));
      } else
        v[i] = T(v[i] / by);
    }
  };
  switch (work) {
    case Dtype::C64: divide(c64{}); break;
    case Dtype::C128: divide(c128{}); break;
    default: with_ordered(op, work, divide);
  }
  return cast(out, input.dtype());
}

// ---- slices ------------------------------------------------------------------------------------------------------

void index_add_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index, const Storage& source,
                const Scalar& alpha) {
  if (is_half(self.dtype()))
    return via_float(self, [&](Storage& wide) { index_add_(op, wide, dim, index, source, alpha); });
  require_writable(op.name, self);
  Slices s = slices_of(op, self, dim, index, &source);
  if (overlaps(s.source, self)) s.source = fresh_copy(s.source);
  const bool scaled = alpha.is_complex() || alpha.to_double() != 1;
  on_contiguous(self, [&](Storage& to) {
    with_arithmetic(to.dtype(), [&](auto type) {
      using T = decltype(type);
      if (!scaled) return update_slices<T>(to, s.dim, s.index, s.source, Add());
      const Storage by = scalar_storage(alpha, to.dtype());
      const T factor = *by.data<T>();
      update_slices<T>(to, s.dim, s.index, s.source, [factor](T& t, const T& f) { t = T(t + T(factor * f)); });
    });
  });
}
Storage index_add(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                  const Storage& source, const Scalar& alpha) {
  Storage out = fresh_copy(input);
  index_add_(op, out, dim, index, source, alpha);
  return out;
}

void index_copy_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index, const Storage& source) {
  require_writable(op.name, self);
  Slices s = slices_of(op, self, dim, index, &source);
  if (overlaps(s.source, self)) s.source = fresh_copy(s.source);
  on_contiguous(self, [&](Storage& to) {
    with_raw(item_size(to.dtype()), [&](auto type) {
      using T = decltype(type);
      update_slices<T>(to, s.dim, s.index, s.source, Put());
    });
  });
}
Storage index_copy(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                   const Storage& source) {
  Storage out = fresh_copy(input);
  index_copy_(op, out, dim, index, source);
  return out;
}

void index_fill_(const OpSchema& op, Storage& self, std::int64_t dim, const Storage& index, const Storage& value) {
  if (TP_UNLIKELY(value.dim() != 0))
    value_error(op.name, ": value must be a number or a 0-d tensor, got shape ", value.sizes());
  require_writable(op.name, self);
  const Slices s = slices_of(op, self, dim, index, nullptr);
  const Storage one = fresh_copy(held(op.name, value, self.dtype()));
  const std::int64_t* at = s.index.data<std::int64_t>();
  Shape sizes = self.sizes();
  Strides strides = self.strides();
  const std::int64_t step = self.dim() ? strides[s.dim] : 0;
  if (self.dim()) {
    sizes.erase(s.dim);
    strides.erase(s.dim);
  }
  for (std::int64_t i = 0; i < s.index.numel(); ++i) {
    Storage place = self.with_geometry(sizes, strides, self.offset() + at[i] * step);
    copy_broadcast(op.name, place, one);
  }
}
Storage index_fill(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index,
                   const Storage& value) {
  Storage out = fresh_copy(input);
  index_fill_(op, out, dim, index, value);
  return out;
}

Storage embedding_backward(const OpSchema& op, const Storage& grad, const Storage& input, std::int64_t num_weights,
                           std::optional<std::int64_t> padding_idx) {
  const std::int64_t width = grad.dim() ? grad.size(grad.dim() - 1) : 1;
  const Dtype work = is_half(grad.dtype()) ? Dtype::F32 : grad.dtype();
  Storage out = empty(Shape{num_weights, width}, work);
  const Storage at = int64_index(op.name, input, "input");
  check_indices(op.name, at.data<std::int64_t>(), at.numel(), num_weights, 0);
  const Storage rows = reshaped(contiguous(cast(grad, work)), Shape{at.numel(), width});
  const auto sum = [&](auto type) { sum_rows<decltype(type)>(out, at.data<std::int64_t>(), rows); };
  switch (work) {
    case Dtype::F32: sum(float()); break;
    case Dtype::F64: sum(double()); break;
    case Dtype::C64: sum(c64{}); break;
    case Dtype::C128: sum(c128{}); break;
    default: type_error(op.name, ": not defined for ", dtype_name(work), " gradients");
  }
  if (padding_idx) {
    const std::int64_t row = *padding_idx < 0 ? *padding_idx + num_weights : *padding_idx;
    Storage place = out.with_geometry(Shape{width}, Strides{1}, row * width);
    fill(place, Scalar(0));
  }
  return cast(out, grad.dtype());
}

}  // namespace tp::kernels
