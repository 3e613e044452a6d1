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
    if (!o.cap_)
      take(o);
    else
      assign(o.data(), o.n_);
  }
  Dims(Dims&& o) noexcept { steal(o); }
  Dims& operator=(const Dims& o) {
    if (!cap_ && !o.cap_)
      take(o);
    else if (this != &o)
      assign(o.data(), o.n_);
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

  int size() const { return n_; }
  bool empty() const { return n_ == 0; }
  std::int64_t* data() { return on_heap() ? heap_ : inline_; }
  const std::int64_t* data() const { return on_heap() ? heap_ : inline_; }
  std::int64_t& operator[](int i) { return data()[i]; }
  std::int64_t operator[](int i) const { return data()[i]; }
  std::int64_t back() const { return data()[n_ - 1]; }
  std::int64_t* begin() { return data(); }
  std::int64_t* end() { return data() + n_; }
  const std::int64_t* begin() const { return data(); }
  const std::int64_t* end() const { return data() + n_; }
  std::span<const std::int64_t> span() const { return {data(), std::size_t(n_)}; }

  /// Contents after a resize are kept up to the shorter length; new places are unset.
  void resize(int n) {
    if (n > capacity()) grow(n);
    n_ = n;
  }
  void push_back(std::int64_t v) {
    if (n_ == capacity()) grow(n_ * 2);
    data()[n_++] = v;
  }
  void insert(int at, std::int64_t v) {
    push_back(v);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(int at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --n_;
  }
  void clear() { n_ = 0; }

  friend bool operator==(const Dims& a, const Dims& b) {
    if (a.n_ != b.n_) return false;
    const std::int64_t *x = a.data(), *y = b.data();
    for (int i = 0; i < a.n_; ++i)  // few: std::equal would call memcmp
      if (x[i] != y[i]) return false;
    return true;
  }
  /// Printed as Python prints a list: [2, 3].
  friend std::ostream& operator<<(std::ostream& s, const Dims& d) {
    s << '[';
    for (int i = 0; i < d.n_; ++i) s << (i ? ", " : "") << d[i];
    return s << ']';
  }

 private:
  bool on_heap() const { return cap_ != 0; }
  int capacity() const { return cap_ ? cap_ : kInline; }
  void assign(const std::int64_t* v, int n) {
    if (n > capacity()) {
      free_heap();
      heap_ = new std::int64_t[n];
      cap_ = n;
    }
    n_ = n;
    std::int64_t* d = data();
    for (int i = 0; i < n; ++i) d[i] = v[i];
  }
  void grow(int n) {
    std::int64_t* bigger = new std::int64_t[n];
    std::copy(data(), data() + n_, bigger);
    free_heap();
    heap_ = bigger;
    cap_ = n;
  }
  void free_heap() {
    if (cap_) {
      delete[] heap_;
      cap_ = 0;
    }
  }
  // The room is copied whole, used or not: a fixed number of bytes takes no loop and no branch.
  void take(const Dims& o) {
    n_ = o.n_;
    cap_ = o.cap_;
    std::memcpy(static_cast<void*>(bytes()), o.bytes(), sizeof inline_);
  }
  void steal(Dims& o) {
    take(o);
    if (o.cap_) o.cap_ = o.n_ = 0;
  }
  std::int64_t* bytes() { return inline_; }
  const std::int64_t* bytes() const { return inline_; }

  int n_ = 0;
  int cap_ = 0;  // 0: inline
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
