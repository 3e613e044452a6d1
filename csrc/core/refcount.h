// Intrusive reference counts. Plain integers: every count is guarded by the host's lock (the GIL); see docs/decisions.md.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(Py_GIL_DISABLED)
#error "tensorplay's reference counts are plain integers: free-threaded builds are not supported"
#endif

namespace tp {

struct RefCount {
  std::uint32_t n = 1;
};

/// Owning pointer to T, where T offers `static void retain(T*)` and `static void release(T*)`.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  /// Takes over the count the caller holds.
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  /// Adds a count of its own.
  static Ref share(T* p) {
    if (p) T::retain(p);
    return adopt(p);
  }
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) T::retain(p_);
  }
  Ref(Ref&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  template <class U, class = std::enable_if_t<std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>>>
  Ref(Ref<U> o) : p_(o.detach()) {}
  Ref& operator=(const Ref& o) {
    Ref copy(o);
    std::swap(p_, copy.p_);
    return *this;
  }
  Ref& operator=(Ref&& o) noexcept {
    if (this != &o) {
      T* old = p_;
      p_ = o.p_;
      o.p_ = nullptr;
      if (old) T::release(old);
    }
    return *this;
  }
  ~Ref() {
    if (p_) T::release(p_);
  }
  void reset() {
    T* old = p_;
    p_ = nullptr;
    if (old) T::release(old);
  }
  /// Gives the count to the caller.
  T* detach() {
    T* p = p_;
    p_ = nullptr;
    return p;
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }
  friend bool operator==(const Ref& a, std::nullptr_t) { return a.p_ == nullptr; }

 private:
  T* p_ = nullptr;
};

}  // namespace tp
