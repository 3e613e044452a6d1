// Sorting by radix passes over (key, position) pairs: a value becomes an unsigned key whose order is the value's order.
#include "kernels/sort.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/errors.h"
#include "core/modes.h"
#include "core/parallel_for.h"
#include "kernels/scratch.h"
#include "kernels/sort_table.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

constexpr std::size_t kManyItems = 4096;  // from here on wider digits and fewer passes
constexpr std::int64_t kNetwork = 1024;  // longest rows that a network sorts: its work grows faster than that of passes

constexpr std::int64_t kFewItems = 64;  // up to here comparisons order a selection sooner than passes

const SortTable* const blocks = &TP_PICK_TABLE(sort_table);

template <class K>
struct Item {
  K key;
  std::uint32_t at;
};

// ---- keys ------------------------------------------------------------------------------------------------------------
inline std::uint32_t key_of(float v) {
  if (v != v) return ~0u;
  const std::uint32_t b = std::bit_cast<std::uint32_t>(v + 0.0f);  // -0 ties with 0
  return b & 0x80000000u ? ~b : b | 0x80000000u;
}
inline std::uint64_t key_of(double v) {
  if (v != v) return ~std::uint64_t(0);
  const std::uint64_t b = std::bit_cast<std::uint64_t>(v + 0.0);
  return b >> 63 ? ~b : b | std::uint64_t(1) << 63;
}
inline std::uint32_t key_of(std::int32_t v) { return std::uint32_t(v) ^ 0x80000000u; }
inline std::uint64_t key_of(std::int64_t v) { return std::uint64_t(v) ^ std::uint64_t(1) << 63; }
inline std::uint64_t key_of(std::uint64_t v) { return v; }

/// The value behind a key, where the key tells: zeros share one, and so do NaNs.
inline bool ambiguous(std::uint32_t k, float) { return k == 0x80000000u || k == ~0u; }
inline bool ambiguous(std::uint64_t k, double) { return k == std::uint64_t(1) << 63 || k == ~std::uint64_t(0); }
template <class K, class T>
bool ambiguous(K, T) {
  return false;
}
inline float value_of(std::uint32_t k, float) { return std::bit_cast<float>(k & 0x80000000u ? k ^ 0x80000000u : ~k); }
inline double value_of(std::uint64_t k, double) {
  return std::bit_cast<double>(k >> 63 ? k ^ std::uint64_t(1) << 63 : ~k);
}
inline std::int32_t value_of(std::uint32_t k, std::int32_t) { return std::int32_t(k ^ 0x80000000u); }
inline std::int64_t value_of(std::uint64_t k, std::int64_t) { return std::int64_t(k ^ std::uint64_t(1) << 63); }
inline std::uint64_t value_of(std::uint64_t k, std::uint64_t) { return k; }

// ---- radix sort ------------------------------------------------------------------------------------------------------
/// n items, made one by one and taken in order: item(i) gives the i-th, take(place, item) gets it with its place. Least
/// significant digit first: stable. A digit that all keys share is skipped; the last one that counts goes to its taker.
template <int BITS, class K, class Make, class Take>
void radix_sort(Item<K>* a, Item<K>* b, std::size_t n, const Make& item, const Take& take) {
  constexpr int kPasses = (int(sizeof(K)) * 8 + BITS - 1) / BITS;
  constexpr std::size_t kBuckets = std::size_t(1) << BITS;
  static_assert(kPasses <= 8);
  std::uint32_t counts[kPasses][kBuckets] = {};
  for (std::size_t i = 0; i < n; ++i) {
    const Item<K> v = item(i);
    a[i] = v;
    for (int p = 0; p < kPasses; ++p) ++counts[p][v.key >> (p * BITS) & (kBuckets - 1)];
  }
  int last = -1;
  for (int p = 0; p < kPasses; ++p)
    if (counts[p][a[0].key >> (p * BITS) & (kBuckets - 1)] != n) last = p;
  for (int p = 0; p <= last; ++p) {
    std::uint32_t* count = counts[p];
    const int shift = p * BITS;
    if (count[a[0].key >> shift & (kBuckets - 1)] == n) continue;
    std::uint32_t sum = 0;
    for (std::size_t d = 0; d < kBuckets; ++d) {
      const std::uint32_t c = count[d];
      count[d] = sum;
      sum += c;
    }
    if (p == last) {
      for (std::size_t i = 0; i < n; ++i) take(count[a[i].key >> shift & (kBuckets - 1)]++, a[i]);
      return;
    }
    for (std::size_t i = 0; i < n; ++i) b[count[a[i].key >> shift & (kBuckets - 1)]++] = a[i];
    std::swap(a, b);
  }
  for (std::size_t i = 0; i < n; ++i) take(i, a[i]);
}

template <class K, class Make, class Take>
void sort_items(Item<K>* a, Item<K>* b, std::size_t n, const Make& item, const Take& take) {
  if (n > 32) {
    if (n < kManyItems) return radix_sort<8>(a, b, n, item, take);
    return radix_sort<11>(a, b, n, item, take);
  }
  // Insertion: stable, and quicker than filling histograms.
  for (std::size_t i = 0; i < n; ++i) {
    const Item<K> v = item(i);
    std::size_t j = i;
    for (; j > 0 && a[j - 1].key > v.key; --j) a[j] = a[j - 1];
    a[j] = v;
  }
  for (std::size_t i = 0; i < n; ++i) take(i, a[i]);
}

/// Keys of a row and the least of every kKeyBlock of them.
template <class K>
struct Keys {
  std::int64_t count, block_count;
  Scratch<K> all, least;
  explicit Keys(std::int64_t n) : count(n), block_count((n + kKeyBlock - 1) / kKeyBlock), all(n), least(block_count) {}

  template <class T>
  void fill(const T* row, K flip) {
    if constexpr (std::is_same_v<T, float>) return blocks->keys_f32(row, count, flip, all.get(), least.get());
    for (std::int64_t b = 0; b < count; b += kKeyBlock) {
      const std::int64_t end = std::min(count, b + kKeyBlock);
      K low = ~K(0);
      for (std::int64_t j = b; j < end; ++j) {
        const K key = key_of(row[j]) ^ flip;
        all[j] = key;
        low = key < low ? key : low;
      }
      least[b / kKeyBlock] = low;
    }
  }
};

template <class K>
bool before(const Item<K>& x, const Item<K>& y) {
  if constexpr (sizeof(K) == 4)
    return (std::uint64_t(x.key) << 32 | x.at) < (std::uint64_t(y.key) << 32 | y.at);
  else
    return x.key < y.key || (x.key == y.key && x.at < y.at);
}

/// The k smallest items of a row in order, ties going to the lower position.
template <class K>
class Selection {
 public:
  Selection(std::int64_t n, std::int64_t k)
      : k_(k),
        room_(k + std::max<std::int64_t>(k, kKeyBlock)),
        candidates_(std::min(n, room_ + kKeyBlock)),
        items_(candidates_ + (k > kFewItems ? 3 * k : 0)),
        lows_((n + kKeyBlock - 1) / kKeyBlock) {}

  /// Takes candidates up to a limit that tightens.
  const Item<K>* operator()(const Keys<K>& keys) {
    Item<K>* const out = items_.get();
    K limit = ~K(0);
    if (keys.block_count >= k_) {
      // k blocks have their least at or below the k-th of all: that many keys at least, and seldom many more.
      std::copy_n(keys.least.get(), keys.block_count, lows_.get());
      std::nth_element(lows_.get(), lows_.get() + k_ - 1, lows_.get() + keys.block_count);
      limit = lows_[k_ - 1];
    }
    std::int64_t count = 0;
    for (std::int64_t b = 0; b < keys.block_count; ++b) {
      if (keys.least[b] > limit) continue;
      const std::int64_t last = std::min(keys.count, (b + 1) * kKeyBlock);
      for (std::int64_t j = b * kKeyBlock; j < last; ++j) {  // written in any case: no branch to guess
        out[count] = {keys.all[j], std::uint32_t(j)};
        count += keys.all[j] <= limit;
      }
      if (count < room_) continue;
      count = shrink(count);
      // Equal keys further on come later in position, so a full set only yields to smaller ones.
      if (out[k_ - 1].key == 0) break;
      limit = out[k_ - 1].key - 1;
    }
    if (k_ <= kFewItems) {
      if (count > 2 * k_) count = shrink(count);
      std::sort(out, out + count, before<K>);
      return out;
    }
    if (count > k_) shrink(count);
    // Positions are in no order; the radix sort is stable, so they are put in order first.
    std::sort(out, out + k_, [](const auto& x, const auto& y) { return x.at < y.at; });
    Item<K>* const picked = out + candidates_;
    std::copy_n(out, k_, picked);
    sort_items(
        picked + k_, picked + 2 * k_, std::size_t(k_), [&](std::size_t i) { return picked[i]; },
        [&](std::size_t place, const Item<K>& v) { out[place] = v; });
    return out;
  }

 private:
  std::int64_t k_, room_, candidates_;
  Scratch<Item<K>> items_;
  Scratch<K> lows_;

  std::int64_t shrink(std::int64_t count) {
    std::nth_element(items_.get(), items_.get() + k_ - 1, items_.get() + count, before<K>);
    return k_;
  }
};

// ---- rows ------------------------------------------------------------------------------------------------------------
struct Rows {
  std::int64_t count, length, inner;  // element j of row r: base(r) + j * inner
  std::int64_t base(std::int64_t r) const { return r / inner * length * inner + r % inner; }
};

void gather_bytes(char* to, std::int64_t to_step, const char* from, std::int64_t from_step, std::size_t size,
                  const std::uint32_t* at, std::int64_t n) {
  const auto run = [&](auto word) {
    using W = decltype(word);
    W* t = reinterpret_cast<W*>(to);
    const W* f = reinterpret_cast<const W*>(from);
    for (std::int64_t i = 0; i < n; ++i) t[i * to_step] = f[std::int64_t(at[i]) * from_step];
  };
  switch (size) {
    case 1: return run(std::uint8_t());
    case 2: return run(std::uint16_t());
    case 4: return run(std::uint32_t());
    default: return run(std::uint64_t());
  }
}

struct Job {
  Storage keys_source;  // contiguous, of a compute type
  Storage source;  // contiguous, of the input's dtype
  Rows in, out;
  std::int64_t take;  // elements written for each row
  bool descending;
  Storage values, indices;
};

/// kSortRows short rows side by side. Key and position share 64 bits, so that equal keys stay in order.
template <class T>
void sort_columns(const Job& job, std::int64_t first, std::int64_t* items) {
  const std::int64_t n = job.in.length, step = job.in.inner;
  const std::uint32_t flip = (job.descending ? ~0u : 0u) ^ 0x80000000u;  // items are compared as signed
  const bool same = job.source.dtype() == job.keys_source.dtype();
  const std::size_t size = item_size(job.source.dtype());
  const Scratch<std::uint32_t> order(same ? 0 : n);
  for (std::int64_t k = 0; k < kSortRows; ++k) {
    const T* row = job.keys_source.data<T>() + job.in.base(first + k);
    for (std::int64_t i = 0; i < n; ++i)
      items[i * kSortRows + k] = std::int64_t(std::uint64_t(key_of(row[i * step]) ^ flip) << 32 | std::uint64_t(i));
  }
  blocks->columns(items, n);
  for (std::int64_t k = 0; k < kSortRows; ++k) {
    const std::int64_t in = job.in.base(first + k), out = job.out.base(first + k);
    std::int64_t* index = job.indices.data<std::int64_t>() + out;
    for (std::int64_t i = 0; i < job.take; ++i) {
      const std::uint64_t item = std::uint64_t(items[i * kSortRows + k]);
      const std::uint32_t key = std::uint32_t(item >> 32) ^ flip, at = std::uint32_t(item);
      index[i * step] = at;
      if (!same)
        order[i] = at;
      else
        job.values.data<T>()[out + i * step] = TP_UNLIKELY(ambiguous(key, T()))
            ? job.keys_source.data<T>()[in + std::int64_t(at) * step]
            : value_of(key, T());
    }
    if (!same)
      gather_bytes(job.values.raw() + out * std::int64_t(size), step, job.source.raw() + in * std::int64_t(size), step,
                   size, order.get(), job.take);
  }
}

/// Sorts rows from b on while there are enough of them, up to e, where a network can; the first that it did not.
template <class T>
[[gnu::noinline]] std::int64_t network_rows(const Job& job, std::int64_t b, std::int64_t e) {
  const std::int64_t n = job.in.length;
  if constexpr (sizeof(T) == 4)
    if (n > 1 && n <= kNetwork && e - b >= kSortRows) {
      const Scratch<std::int64_t> columns(n * kSortRows);
      for (; b + kSortRows <= e; b += kSortRows) sort_columns<T>(job, b, columns.get());
    }
  return b;
}

/// Rows that lie across memory are copied first, as many at a time as share a line of it.
constexpr std::int64_t kLineBytes = 64, kCopyBytes = 1 << 21;

template <class T>
void top_rows(const Job& job, bool network) {
  using K = decltype(key_of(T()));
  const T* data = job.keys_source.data<T>();
  const std::int64_t n = job.in.length, inner = job.in.inner;
  const K flip = job.descending ? ~K(0) : K(0);
  const std::size_t size = item_size(job.source.dtype());
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, n));
  constexpr std::int64_t kItem = sizeof(T);
  const std::int64_t most = inner == 1 ? 1 : std::clamp<std::int64_t>(kCopyBytes / n / kItem, 1, kLineBytes / kItem);
  const std::int64_t pitch = n + kLineBytes / kItem;  // rows of a power of two would share cache sets
  parallel_for(0, job.in.count, grain, [&](std::int64_t b, std::int64_t e) {
    Keys<K> keys(n);
    Selection<K> select(n, job.take);
    const Scratch<std::uint32_t> order(job.take);
    const Scratch<T> copies(inner == 1 ? 0 : most * pitch);
    for (std::int64_t r = network ? network_rows<T>(job, b, e) : b, group; r < e; r += group) {
      group = inner == 1 ? 1 : std::min({most, e - r, inner - r % inner});
      const T* rows = data + job.in.base(r);
      if (inner > 1) {
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t g = 0; g < group; ++g) copies[g * pitch + j] = rows[j * inner + g];
        rows = copies.get();
      }
      for (std::int64_t g = 0; g < group; ++g) {
        keys.fill(rows + g * pitch, flip);
        const Item<K>* items = select(keys);
        for (std::int64_t j = 0; j < job.take; ++j) order[j] = items[j].at;
        const std::int64_t in = job.in.base(r + g), out = job.out.base(r + g);
        gather_bytes(job.values.raw() + out * std::int64_t(size), inner, job.source.raw() + in * std::int64_t(size),
                     inner, size, order.get(), job.take);
        std::int64_t* index = job.indices.data<std::int64_t>() + out;
        for (std::int64_t j = 0; j < job.take; ++j) index[j * inner] = order[j];
      }
    }
  });
}

/// Whole rows. Values come out of the keys, or from the source where a key does not tell.
template <class T>
void sort_rows(const Job& job) {
  using K = decltype(key_of(T()));
  const T* data = job.keys_source.data<T>();
  const std::int64_t n = job.in.length, step = job.in.inner;
  const bool same = job.source.dtype() == job.keys_source.dtype();
  const K flip = job.descending ? ~K(0) : K(0);
  const std::size_t size = item_size(job.source.dtype());
  const std::int64_t grain = std::max<std::int64_t>(kSortRows, 8192 / std::max<std::int64_t>(1, n));
  parallel_for(0, job.in.count, grain, [&](std::int64_t b, std::int64_t e) {
    std::int64_t r = network_rows<T>(job, b, e);
    const Scratch<Item<K>> items(n), spare(n);
    const Scratch<std::uint32_t> order(same ? 0 : n);
    for (; r < e; ++r) {
      const T* row = data + job.in.base(r);
      std::int64_t* index = job.indices.data<std::int64_t>() + job.out.base(r);
      const auto item = [&](std::size_t i) {
        return Item<K>{K(key_of(row[std::int64_t(i) * step]) ^ flip), std::uint32_t(i)};
      };
      if (same) {
        T* values = job.values.data<T>() + job.out.base(r);
        sort_items(items.get(), spare.get(), std::size_t(n), item, [&](std::size_t place, const Item<K>& v) {
          const K key = v.key ^ flip;
          values[std::int64_t(place) * step] =
              TP_UNLIKELY(ambiguous(key, T())) ? row[std::int64_t(v.at) * step] : value_of(key, T());
          index[std::int64_t(place) * step] = v.at;
        });
        continue;
      }
      sort_items(items.get(), spare.get(), std::size_t(n), item, [&](std::size_t place, const Item<K>& v) {
        order[std::int64_t(place)] = v.at;
        index[std::int64_t(place) * step] = v.at;
      });
      gather_bytes(job.values.raw() + job.out.base(r) * std::int64_t(size), step,
                   job.source.raw() + job.in.base(r) * std::int64_t(size), step, size, order.get(), n);
    }
  });
}

template <class F>
void by_key_type(Dtype d, const F& f) {
  switch (compute_type(d)) {
    case Compute::F32: return f(float());
    case Compute::F64: return f(double());
    case Compute::I32: return f(std::int32_t());
    case Compute::I64: return f(std::int64_t());
    default: return f(std::uint64_t());
  }
}

/// Checks, output sizes and the parts every row needs. `take` < 0: whole rows.
Job prepare(const OpSchema& op, const Storage& input, std::int64_t dim, std::int64_t take, bool descending) {
  if (is_complex(input.dtype()))
    type_error(op.name, ": complex numbers have no order; input is ", dtype_name(input.dtype()));
  const int n = input.dim();
  if (dim < -std::max(n, 1) || dim >= std::max(n, 1))
    index_error(op.name, ": dim ", dim, " out of range for a ", n, "-d tensor (expected ", -std::max(n, 1), "..",
                std::max(n, 1) - 1, ")");
  const int d = int(dim < 0 ? dim + n : dim);
  const std::int64_t length = n == 0 ? 1 : input.size(d);
  if (length >= std::int64_t(1) << 32)
    value_error(op.name, ": dimension ", d, " has ", length, " elements; at most 2^32 - 1 are supported");
  if (take > length) value_error(op.name, ": k is ", take, " but dimension ", d, " has ", length, " elements");
  if (take < 0) take = length;
  Job job;
  job.source = contiguous(input);
  const Dtype keys = input.dtype() == Dtype::Bool ? Dtype::I32 : dtype_of(compute_type(input.dtype()));
  job.keys_source = contiguous(cast(input, keys));
  std::int64_t inner = 1;
  for (int i = d + 1; i < n; ++i) inner *= input.size(i);
  job.in = {length ? input.numel() / length : 0, length, inner};
  Shape sizes = input.sizes();
  if (n) sizes[d] = take;
  job.out = {job.in.count, take, inner};
  job.take = take;
  job.descending = descending;
  job.values = empty(sizes, input.dtype());
  job.indices = empty(sizes, Dtype::I64);
  return job;
}

}  // namespace

std::array<Storage, 2> sort(const OpSchema& op, const Storage& input, std::int64_t dim, bool descending, bool) {
  Job job = prepare(op, input, dim, -1, descending);
  const modes::Unlocked unlocked(input.numel() > 4096);
  by_key_type(job.keys_source.dtype(), [&](auto zero) { sort_rows<decltype(zero)>(job); });
  return {std::move(job.values), std::move(job.indices)};
}

std::array<Storage, 2> topk(const OpSchema& op, const Storage& input, std::int64_t k, std::int64_t dim, bool largest,
                            bool) {
  if (k < 0) value_error(op.name, ": k must not be negative, got ", k);
  Job job = prepare(op, input, dim, k, largest);
  if (k == 0) return {std::move(job.values), std::move(job.indices)};
  const modes::Unlocked unlocked(input.numel() > 4096);
  by_key_type(job.keys_source.dtype(), [&](auto zero) {
    using T = decltype(zero);
    // Where the least of the blocks set no limit, a network has sorted the whole row sooner.
    top_rows<T>(job, k * kKeyBlock > job.in.length);
  });
  return {std::move(job.values), std::move(job.indices)};
}

}  // namespace tp::kernels
