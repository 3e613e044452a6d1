// A short list of sizes, strides or dimension numbers: inline up to five, on the heap beyond. Knows nothing of tensors.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <ostream>
#include <span>

namespace tp {

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // unused places of the room are copied, never read
#endif
class Dims {
 public:
  static constexpr int kInline = 5;

  Dims() noexcept {}  // not defaulted: value-initialisation would clear the whole room
  Dims(std::initializer_list<std::int64_t> v) { assign(v.begin(), int(v.size())); }
  Dims(std::span<const std::int64_t> v) { assign(v.data(), int(v.size())); }
  Dims(int n, std::int64_t fill) {
    resize(n);
    std::fill(begin(), end(), fill);
  }
  Dims(const Dims& o) {
    if (!o.on_heap())
      take(o);
    else
      assign(o.data(), o.size());
  }
  Dims(Dims&& o) noexcept { steal(o); }
  Dims& operator=(const Dims& o) {
    if (!on_heap() && !o.on_heap())
      take(o);
    else if (this != &o)
      assign(o.data(), o.size());
    return *this;
  }
  Dims& operator=(Dims&& o) noexcept {
    if (this != &o) {
      free_heap();
      steal(o);
    }
    return *this;
  }
  ~Dims() { free_heap(); }

  int size() const { return int(std::uint32_t(head_)); }
  bool empty() const { return size() == 0; }
  std::int64_t* data() { return on_heap() ? heap_ : inline_; }
  const std::int64_t* data() const { return on_heap() ? heap_ : inline_; }
  std::int64_t& operator[](int i) { return data()[i]; }
  std::int64_t operator[](int i) const { return data()[i]; }
  std::int64_t back() const { return data()[size() - 1]; }
  std::int64_t* begin() { return data(); }
  std::int64_t* end() { return data() + size(); }
  const std::int64_t* begin() const { return data(); }
  const std::int64_t* end() const { return data() + size(); }
  std::span<const std::int64_t> span() const { return {data(), std::size_t(size())}; }

  /// Contents after a resize are kept up to the shorter length; new places are unset.
  void resize(int n) {
    if (n > capacity()) grow(n);
    set_size(n);
  }
  void push_back(std::int64_t v) {
    const int n = size();
    if (n == capacity()) grow(n * 2);
    data()[n] = v;
    ++head_;
  }
  void insert(int at, std::int64_t v) {
    push_back(v);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(int at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --head_;
  }
  void clear() { set_size(0); }

  friend bool operator==(const Dims& a, const Dims& b) {
    const int n = a.size();
    if (n != b.size()) return false;
    const std::int64_t *x = a.data(), *y = b.data();
    for (int i = 0; i < n; ++i)  // few: std::equal would call memcmp
      if (x[i] != y[i]) return false;
    return true;
  }
  /// Printed as Python prints a list: [2, 3].
  friend std::ostream& operator<<(std::ostream& s, const Dims& d) {
    s << '[';
    for (int i = 0; i < d.size(); ++i) s << (i ? ", " : "") << d[i];
    return s << ']';
  }

 private:
  static constexpr int kCapacityShift = 32;
  bool on_heap() const { return head_ >> kCapacityShift != 0; }
  int capacity() const { return on_heap() ? int(head_ >> kCapacityShift) : kInline; }
  void set_size(int n) { head_ = (head_ >> kCapacityShift << kCapacityShift) | std::uint32_t(n); }
  void set_heap(std::int64_t* p, int capacity) {
    heap_ = p;
    head_ = std::uint64_t(capacity) << kCapacityShift | std::uint32_t(head_);
  }
  void assign(const std::int64_t* v, int n) {
    if (n > capacity()) grow(n);
    set_size(n);
    std::int64_t* d = data();
    for (int i = 0; i < n; ++i) d[i] = v[i];
  }
  // The heap is out of line: lists that long are rare, and every use of a list would carry the code.
  [[gnu::noinline]] void grow(int n) {
    std::int64_t* bigger = new std::int64_t[n];
    std::copy(data(), data() + size(), bigger);
    free_heap();
    set_heap(bigger, n);
  }
  void free_heap() {
    if (__builtin_expect(on_heap(), 0)) drop_heap();
  }
  [[gnu::noinline]] void drop_heap() {
    delete[] heap_;
    head_ = std::uint32_t(head_);
  }
  // The room is copied whole, used or not: a fixed number of bytes takes no loop and no branch.
  void take(const Dims& o) {
    head_ = o.head_;
    std::memcpy(static_cast<void*>(bytes()), o.bytes(), sizeof inline_);
  }
  void steal(Dims& o) {
    take(o);
    if (o.on_heap()) o.head_ = 0;
  }
  std::int64_t* bytes() { return inline_; }
  const std::int64_t* bytes() const { return inline_; }

  // Size and, above it, capacity on the heap (0: inline). One word: a list is often moved right after it was filled, and a
  // load of both would wait for two stores.
  std::uint64_t head_ = 0;
  union {
    std::int64_t inline_[kInline];
    std::int64_t* heap_;
  };
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

using Shape = Dims;
using Strides = Dims;

}  // namespace tp
