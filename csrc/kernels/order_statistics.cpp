// The k-th smallest element of a line, the middle one, the most frequent. Short lines are copied and partitioned; long
// ones are read where they lie, some times over: each reading counts 16 more bits of the elements that are still in question.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <vector>

#include "core/modes.h"
#include "kernels/index_support.h"
#include "kernels/order.h"
#include "kernels/search.h"

namespace tp::kernels {
namespace {

constexpr std::int64_t kLong = 1 << 15;  // elements of a line that is not copied
constexpr std::int64_t kPiece = 1 << 20;  // elements that pay for a table of counts
constexpr int kDigit = 16;

/// What is to be found in a line: the k-th smallest, or a certain place.
struct Wanted {
  std::int64_t k;
  bool is_place = false;
};
/// What a choice of k may depend on.
struct Nans {
  std::int64_t first = -1, count = 0;
};

/// Unsigned numbers in the same order; the zeros are one, and so are the nans.
template <class T>
auto key_of(T v) {
  if constexpr (std::is_floating_point_v<T>) {
    using K = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr K sign = K(1) << (8 * sizeof(K) - 1);
    if (v != v) return K(-1);
    const K bits = std::bit_cast<K>(v + T(0));
    return bits & sign ? K(~bits) : K(bits | sign);
  } else {
    using K = std::make_unsigned_t<T>;
    return K(K(v) ^ (std::is_signed_v<T> ? K(1) << (8 * sizeof(K) - 1) : K(0)));
  }
}

/// Elements of any layout, in order, as blocks of T.
template <class T>
class Elements {
 public:
  Elements(const Storage& s, Dtype work)
      : s_(s),
        load_(load_fn(s.dtype(), compute_type(work))),
        width_(s.dim() ? s.size(s.dim() - 1) : 1),
        step_(s.dim() ? s.stride(s.dim() - 1) : 1),
        item_(std::int64_t(item_size(s.dtype()))) {}

  std::int64_t count() const { return s_.numel(); }
  /// f(values, how many, place of the first) over places [b, e), until it returns false.
  template <class F>
  void read(std::int64_t b, std::int64_t e, const F& f) const {
    if (b >= e) return;
    T block[kStage];
    Rows<1> rows(s_.sizes(), {&s_.strides()});
    rows.seek(b / width_);
    for (std::int64_t at = b, column = b % width_; at < e; column = 0, rows.next()) {
      const char* row = s_.raw() + rows.at[0] * item_;
      for (; column < width_ && at < e;) {
        const std::int64_t n = std::min({kStage, width_ - column, e - at});
        load_(reinterpret_cast<char*>(block), row + column * step_ * item_, step_, n);
        if (!f(block, n, at)) return;
        column += n;
        at += n;
      }
    }
  }
  const char* element(std::int64_t place) const {
    Rows<1> rows(s_.sizes(), {&s_.strides()});
    rows.seek(place / width_);
    return s_.raw() + (rows.at[0] + place % width_ * step_) * item_;
  }

 private:
  const Storage& s_;
  LoadFn load_;
  std::int64_t width_, step_, item_;
};

template <class T>
Nans nans_of(const Elements<T>& x) {
  Nans out;
  if constexpr (std::is_floating_point_v<T>) {
    std::mutex joining;
    parallel_for(0, x.count(), kPiece, [&](std::int64_t b, std::int64_t e) {
      Nans here;
      x.read(b, e, [&](const T* v, std::int64_t n, std::int64_t at) {
        for (std::int64_t i = 0; i < n; ++i) {
          if (!is_nan(v[i])) continue;
          if (!here.count++) here.first = at + i;
        }
        return true;
      });
      if (!here.count) return;
      const std::lock_guard lock(joining);
      out.first = out.first < 0 ? here.first : std::min(out.first, here.first);
      out.count += here.count;
    });
  }
  return out;
}

/// How often each value of the digit at `shift` stands in the elements whose key is `known` under `mask`.
template <class T, class K>
void count_digits(const Elements<T>& x, K known, K mask, int shift, std::int64_t* counts) {
  std::mutex joining;
  std::fill_n(counts, 1 << kDigit, 0);
  parallel_for(0, x.count(), kPiece, [&](std::int64_t b, std::int64_t e) {
    const Scratch<std::int64_t> here(1 << kDigit);
    std::fill_n(here.get(), 1 << kDigit, 0);
    x.read(b, e, [&](const T* v, std::int64_t n, std::int64_t) {
      for (std::int64_t i = 0; i < n; ++i) {
        const K key = key_of(v[i]);
        here[std::int64_t(key >> shift & 0xFFFF)] += (key & mask) == known;
      }
      return true;
    });
    const std::lock_guard lock(joining);
    for (std::int64_t i = 0; i < 1 << kDigit; ++i) counts[i] += here[i];
  });
}

/// The place of the k-th smallest element; of equal ones the earlier counts as smaller.
template <class T>
std::int64_t place_of(const Elements<T>& x, std::int64_t k) {
  using K = decltype(key_of(T()));
  K known = 0, mask = 0;
  const Scratch<std::int64_t> counts(1 << kDigit);
  for (int shift = 8 * int(sizeof(K)) - kDigit; shift >= 0; shift -= kDigit) {
    count_digits(x, known, mask, shift, counts.get());
    std::int64_t digit = 0;
    while (k >= counts[digit]) k -= counts[digit++];
    known = K(known | K(digit) << shift);
    mask = K(mask | K(0xFFFF) << shift);
    if (counts[digit] == 1) break;
  }
  std::int64_t place = -1;
  x.read(0, x.count(), [&](const T* v, std::int64_t n, std::int64_t at) {
    for (std::int64_t i = 0; i < n; ++i)
      if ((key_of(v[i]) & mask) == known && k-- == 0) place = at + i;
    return place < 0;
  });
  return place;
}

/// The most frequent key so far; the smallest of several, since keys are looked at in order.
template <class T>
class Mode {
 public:
  using K = decltype(key_of(T()));

  explicit Mode(const Elements<T>& x) : x_(x), room_(std::max<std::int64_t>(kPiece / 4, x.count() / 32)), keys_(room_) {
    search(0, 0, 8 * int(sizeof(K)) - kDigit);
  }
  /// The last place of the mode; nans are equal to nothing, so that among them alone the first is it.
  std::int64_t place() const {
    std::int64_t place = 0;
    if (most_)
      x_.read(0, x_.count(), [&](const T* v, std::int64_t n, std::int64_t at) {
        for (std::int64_t i = 0; i < n; ++i)
          if (key_of(v[i]) == key_) place = at + i;
        return true;
      });
    return place;
  }

 private:
  /// Among the keys that are `known` under `mask`. What begins with a digit that is no more frequent than a key already
  /// found is left out; the rest is sorted by as many digits together as there is room for.
  void search(K known, K mask, int shift) {
    const Scratch<std::int64_t> counts(1 << kDigit);
    count_digits(x_, known, mask, shift, counts.get());
    const K digit_mask = K(mask | K(0xFFFF) << shift);
    for (std::int64_t first = 0; first < 1 << kDigit;) {
      const K key = K(known | K(first) << shift);
      if (counts[first] <= most_) {
        ++first;
      } else if (shift == 0) {
        offer(key, counts[first++]);
      } else if (counts[first] > room_) {
        search(key, digit_mask, shift - kDigit);
        ++first;
      } else {
        std::int64_t last = first, taken = 0;
        for (; last < 1 << kDigit && (counts[last] <= most_ || taken + counts[last] <= room_); ++last) {
          if (counts[last] <= most_) counts[last] = 0;
          taken += counts[last];
        }
        runs(known, mask, shift, first, last, counts.get());
        first = last;
      }
    }
  }

  /// Keys with a digit in [first, last) that is counted.
  void runs(K known, K mask, int shift, std::int64_t first, std::int64_t last, const std::int64_t* counts) {
    std::int64_t n = 0;
    std::mutex joining;
    parallel_for(0, x_.count(), kPiece, [&](std::int64_t b, std::int64_t e) {
      K found[kStage];
      x_.read(b, e, [&](const T* v, std::int64_t count, std::int64_t) {
        std::int64_t kept = 0;
        for (std::int64_t i = 0; i < count; ++i) {
          const K key = key_of(v[i]);
          const std::int64_t digit = std::int64_t(key >> shift & 0xFFFF);
          found[kept] = key;
          kept += (key & mask) == known && digit >= first && digit < last && counts[digit] != 0;
        }
        const std::lock_guard lock(joining);
        std::copy_n(found, kept, keys_.get() + n);
        n += kept;
        return true;
      });
    });
    std::sort(keys_.get(), keys_.get() + n);
    for (std::int64_t i = 0, begin = 0; i < n; ++i)
      if (i + 1 == n || keys_[i + 1] != keys_[i]) {
        offer(keys_[i], i + 1 - begin);
        begin = i + 1;
      }
  }

  void offer(K key, std::int64_t count) {
    if (std::is_floating_point_v<T> && key == K(-1)) count = 0;
    if (count <= most_) return;
    key_ = key;
    most_ = count;
  }

  const Elements<T>& x_;
  std::int64_t room_;
  Scratch<K> keys_;
  K key_ = 0;
  std::int64_t most_ = 0;
};

template <class T>
std::int64_t kth(const T* line, std::int64_t n, std::int64_t k, std::int64_t* order) {
  std::iota(order, order + n, 0);
  std::nth_element(order, order + k, order + n, [line](std::int64_t a, std::int64_t b) {
    return before(line[a], line[b]) || (!before(line[b], line[a]) && a < b);
  });
  return order[k];
}

template <class T>
Nans nans_of(const T* line, std::int64_t n) {
  Nans out;
  for (std::int64_t i = 0; i < n; ++i)
    if (is_nan(line[i]) && !out.count++) out.first = i;
  return out;
}

/// Input with `dim` last, and the results of its lines.
struct Lines {
  Storage x, values, index;
  std::int64_t n, count;
};

Lines lines_of(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim) {
  const int d = wrap_dim(op.name, dim, input.dim());
  Dims dims;
  if (input.dim()) dims.push_back(d);
  const Shape shape = reduced_shape(input.sizes(), dims, keepdim);
  Lines l{input.dim() ? moved_dim(input, d, input.dim() - 1) : reshaped(input, Shape{1}), empty(shape, input.dtype()),
          empty(shape, Dtype::I64), input.dim() ? input.size(d) : 1, 0};
  l.count = l.values.numel();
  if (TP_UNLIKELY(l.n == 0 && l.count != 0))
    index_error(op.name, ": dimension ", d, " of shape ", input.sizes(), " has no elements");
  return l;
}

/// pick(values, how many, scratch) -> place, for every line, with the line in contiguous memory of the work type.
template <class Pick>
std::array<Storage, 2> pick_lines(const OpSchema& op, const Lines& l, double ns_per_element, const Pick& pick) {
  const Dtype work = order_dtype(op, l.x.dtype());
  const std::int64_t item = std::int64_t(item_size(l.x.dtype())), step = l.x.stride(l.x.dim() - 1);
  const bool as_is = work == l.x.dtype() && step == 1;
  const LoadFn load = load_fn(l.x.dtype(), compute_type(work));
  modes::Unlocked unlocked(double(l.count) * double(l.n) * ns_per_element > 50000);
  with_order(work, [&](auto type) {
    using T = decltype(type);
    parallel_tiles(l.count, grain_for(ns_per_element * double(l.n)), [&](std::int64_t b, std::int64_t e) {
      const Scratch<std::int64_t> order(l.n);
      const Scratch<T> copy(as_is ? 0 : l.n);
      Rows<1> rows(l.x.sizes(), {&l.x.strides()});
      rows.seek(b);
      for (std::int64_t i = b; i < e; ++i, rows.next()) {
        const char* line = l.x.raw() + rows.at[0] * item;
        if (!as_is) load(reinterpret_cast<char*>(copy.get()), line, step, l.n);
        const std::int64_t at = pick(as_is ? reinterpret_cast<const T*>(line) : copy.get(), l.n, order.get());
        std::memcpy(l.values.raw() + i * item, line + at * step * item, std::size_t(item));
        l.index.data<std::int64_t>()[i] = at;
      }
    });
  });
  return {l.values, l.index};
}

/// pick(elements) -> place, for every line where it lies.
template <class Pick>
std::array<Storage, 2> read_lines(const OpSchema& op, const Lines& l, const Pick& pick) {
  const Dtype work = order_dtype(op, l.x.dtype());
  const std::size_t item = item_size(l.x.dtype());
  Rows<1> rows(l.x.sizes(), {&l.x.strides()});
  rows.seek(0);
  for (std::int64_t i = 0; i < l.count; ++i, rows.next()) {
    const Storage line = l.x.with_geometry(Shape{l.n}, Strides{l.x.stride(l.x.dim() - 1)}, l.x.offset() + rows.at[0]);
    modes::Unlocked unlocked(true);
    with_order(work, [&](auto type) {
      const Elements<decltype(type)> x(line, work);
      const std::int64_t at = pick(x);
      std::memcpy(l.values.raw() + i * std::int64_t(item), x.element(at), item);
      l.index.data<std::int64_t>()[i] = at;
    });
  }
  return {l.values, l.index};
}

/// wanted(nans of a line) says what to find in it.
template <class Ask>
std::array<Storage, 2> ranked(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim, bool asks_nans,
                              const Ask& wanted) {
  const Lines l = lines_of(op, input, dim, keepdim);
  if (l.count == 0) return {l.values, l.index};
  if (l.n <= kLong)
    return pick_lines(op, l, 10, [&](const auto* line, std::int64_t n, std::int64_t* order) {
      const Wanted w = wanted(asks_nans ? nans_of(line, n) : Nans());
      return w.is_place ? w.k : kth(line, n, w.k, order);
    });
  return read_lines(op, l, [&](const auto& x) {
    const Wanted w = wanted(asks_nans ? nans_of(x) : Nans());
    return w.is_place ? w.k : place_of(x, w.k);
  });
}

/// The same of all elements, whose places nobody asks for: they are read as they lie in memory.
template <class Ask>
Storage ranked_all(const OpSchema& op, const Storage& input, const Ask& wanted) {
  if (TP_UNLIKELY(input.numel() == 0)) {
    if (!is_float(input.dtype()))
      index_error("median: a tensor of ", dtype_name(input.dtype()), " of shape ", input.sizes(), " has no median");
    Storage none = empty(Shape(), input.dtype());
    fill(none, Scalar(std::nan("")));
    return none;
  }
  if (input.numel() <= kLong) return ranked(op, reshaped(input, Shape{input.numel()}), 0, false, true, wanted)[0];
  std::vector<int> axes(std::size_t(input.dim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::stable_sort(axes.begin(), axes.end(),
                   [&](int a, int b) { return std::abs(input.stride(a)) > std::abs(input.stride(b)); });
  Shape sizes;
  Strides strides;
  for (const int d : axes) {
    const std::int64_t n = input.size(d), s = input.stride(d);
    if (n == 1) continue;
    if (const int last = sizes.size() - 1; last >= 0 && strides[last] == s * n) {
      sizes[last] *= n;
      strides[last] = s;
    } else {
      sizes.push_back(n);
      strides.push_back(s);
    }
  }
  const Storage flat = input.with_geometry(sizes, strides, input.offset());
  const Dtype work = order_dtype(op, input.dtype());
  Storage out = empty(Shape(), input.dtype());
  modes::Unlocked unlocked(true);
  with_order(work, [&](auto type) {
    const Elements<decltype(type)> x(flat, work);
    const Wanted w = wanted(nans_of(x));
    std::memcpy(out.raw(), x.element(w.is_place ? w.k : place_of(x, w.k)), item_size(input.dtype()));
  });
  return out;
}

}  // namespace

std::array<Storage, 2> kthvalue(const OpSchema& op, const Storage& input, std::int64_t k, std::int64_t dim,
                                bool keepdim) {
  const int d = wrap_dim(op.name, dim, input.dim());
  const std::int64_t n = input.dim() ? input.size(d) : 1;
  if (TP_UNLIKELY(k < 1 || k > n))
    value_error(op.name, ": k ", k, " is out of range for dimension ", d, " with size ", n);
  return ranked(op, input, dim, keepdim, false, [k](const Nans&) { return Wanted{k - 1}; });
}

std::array<Storage, 2> median_dim(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim) {
  const int d = wrap_dim(op.name, dim, input.dim());
  const std::int64_t middle = ((input.dim() ? input.size(d) : 1) - 1) / 2;
  return ranked(op, input, dim, keepdim, true,
                [middle](const Nans& nans) { return nans.count ? Wanted{nans.first, true} : Wanted{middle}; });
}

Storage median(const OpSchema& op, const Storage& input) {
  const std::int64_t middle = (input.numel() - 1) / 2;
  return ranked_all(op, input,
                    [middle](const Nans& nans) { return nans.count ? Wanted{nans.first, true} : Wanted{middle}; });
}

Storage nanmedian(const OpSchema& op, const Storage& input) {
  const std::int64_t n = input.numel();
  return ranked_all(op, input, [n](const Nans& nans) {
    return nans.count == n ? Wanted{0, true} : Wanted{(n - nans.count - 1) / 2};
  });
}

std::array<Storage, 2> mode(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim) {
  const Lines l = lines_of(op, input, dim, keepdim);
  if (l.count == 0) return {l.values, l.index};
  if (l.n > kLong) return read_lines(op, l, []<class T>(const Elements<T>& x) { return Mode<T>(x).place(); });
  return pick_lines(op, l, 60, [](const auto* line, std::int64_t n, std::int64_t* order) {
    std::iota(order, order + n, 0);
    std::sort(order, order + n, [line](std::int64_t a, std::int64_t b) {
      return before(line[a], line[b]) || (!before(line[b], line[a]) && a < b);
    });
    std::int64_t best = order[0], most = 0;
    for (std::int64_t i = 0, run = 0; i < n; ++i) {
      run = i && line[order[i]] == line[order[i - 1]] ? run + 1 : 1;
      if (run > most || (run == most && line[order[i]] == line[best])) {
        most = run;
        best = order[i];
      }
    }
    return best;
  });
}

}  // namespace tp::kernels
