// A vector with room for N elements in place. For gradients and edges: short, moved often, seldom grown.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace tp {

template <class T, std::size_t N>
class InlineVec {
 public:
  InlineVec() = default;
  explicit InlineVec(std::size_t n) { resize(n); }
  InlineVec(InlineVec&& o) noexcept { take(o); }
  InlineVec& operator=(InlineVec&& o) noexcept {
    if (this != &o) {
      clear_all();
      take(o);
    }
    return *this;
  }
  InlineVec(const InlineVec&) = delete;
  InlineVec& operator=(const InlineVec&) = delete;
  ~InlineVec() { clear_all(); }

  std::size_t size() const { return n_; }
  bool empty() const { return n_ == 0; }
  T* data() { return p_ ? p_ : reinterpret_cast<T*>(room_); }
  const T* data() const { return p_ ? p_ : reinterpret_cast<const T*>(room_); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + n_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + n_; }
  T& back() { return data()[n_ - 1]; }
  operator std::span<T>() { return {data(), n_}; }
  operator std::span<const T>() const { return {data(), n_}; }

  template <class... A>
  T& emplace_back(A&&... a) {
    reserve(n_ + 1);
    T* t = new (data() + n_) T(std::forward<A>(a)...);
    ++n_;
    return *t;
  }
  void push_back(T v) { emplace_back(std::move(v)); }
  void resize(std::size_t n) {
    reserve(n);
    T* d = data();
    for (; n_ < n; ++n_) new (d + n_) T;
    while (n_ > n) d[--n_].~T();
  }
  void reserve(std::size_t n) {
    if (n <= (p_ ? cap_ : N)) return;
    std::size_t cap = n > 2 * n_ ? n : 2 * n_;
    T* bigger = static_cast<T*>(::operator new(cap * sizeof(T), std::align_val_t(alignof(T))));
    for (std::size_t i = 0; i < n_; ++i) {
      new (bigger + i) T(std::move(data()[i]));
      data()[i].~T();
    }
    if (p_) ::operator delete(p_, std::align_val_t(alignof(T)));
    p_ = bigger;
    cap_ = cap;
  }
  void clear() { resize(0); }

 private:
  void clear_all() {
    T* d = data();
    for (std::size_t i = 0; i < n_; ++i) d[i].~T();
    n_ = 0;
    if (p_) ::operator delete(p_, std::align_val_t(alignof(T)));
    p_ = nullptr;
  }
  void take(InlineVec& o) {
    n_ = o.n_;
    p_ = o.p_;
    cap_ = o.cap_;
    if (!p_)
      for (std::size_t i = 0; i < n_; ++i) {
        new (reinterpret_cast<T*>(room_) + i) T(std::move(o.data()[i]));
        o.data()[i].~T();
      }
    o.p_ = nullptr;
    o.n_ = 0;
  }

  std::size_t n_ = 0;
  T* p_ = nullptr;
  std::size_t cap_ = 0;
  alignas(T) unsigned char room_[N * sizeof(T)];
};

}  // namespace tp
