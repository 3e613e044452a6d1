// Memory: free lists for small fixed-size objects, a caching allocator for data blocks. Knows nothing of tensors.
// The free lists are guarded by the host's lock; the block cache by the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "core/api.h"

namespace tp::memory {

inline constexpr std::size_t kSmallStep = 16;
inline constexpr std::size_t kSmallMax = 768;
inline constexpr std::size_t kClasses = kSmallMax / kSmallStep;

struct FreeNode {
  FreeNode* next;
};
struct FreeList {
  FreeNode* head = nullptr;
  std::uint32_t count = 0;
};
extern TP_API FreeList small_lists[kClasses + 1];
TP_API void* small_refill(std::size_t cls);
TP_API void small_overflow(std::size_t cls, void* p);

/// Allocation of up to kSmallMax bytes from a size-class list; 16-byte aligned.
inline void* small_alloc(std::size_t bytes) {
  const std::size_t cls = (bytes + kSmallStep - 1) / kSmallStep;
  FreeList& list = small_lists[cls];
  if (TP_LIKELY(list.head != nullptr)) {
    FreeNode* n = list.head;
    list.head = n->next;
    --list.count;
    return n;
  }
  return small_refill(cls);
}
inline void small_free(void* p, std::size_t bytes) {
  const std::size_t cls = (bytes + kSmallStep - 1) / kSmallStep;
  FreeList& list = small_lists[cls];
  if (TP_UNLIKELY(list.count >= 4096)) return small_overflow(cls, p);
  FreeNode* n = static_cast<FreeNode*>(p);
  n->next = list.head;
  list.head = n;
  ++list.count;
}

/// For short vectors: their memory comes from the free lists while it fits.
template <class T>
struct Pooled {
  using value_type = T;
  Pooled() = default;
  template <class U>
  Pooled(const Pooled<U>&) noexcept {}
  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    return static_cast<T*>(bytes <= kSmallMax ? small_alloc(bytes) : ::operator new(bytes));
  }
  void deallocate(T* p, std::size_t n) noexcept {
    if (n * sizeof(T) <= kSmallMax)
      small_free(p, n * sizeof(T));
    else
      ::operator delete(p);
  }
  friend bool operator==(const Pooled&, const Pooled&) { return true; }
};

/// Data blocks: 64-byte aligned, cached by size class; huge pages from 2 MB. Throws ErrorKind::Memory.
TP_API void* large_alloc(std::size_t bytes);
TP_API void large_free(void* p, std::size_t bytes);

struct Stats {
  std::uint64_t in_use;      // bytes handed out by large_alloc
  std::uint64_t cached;      // bytes kept for reuse
  std::uint64_t peak;        // highest in_use since the last reset
  std::uint64_t allocations; // blocks handed out, small and large, since start
};
TP_API Stats stats();
TP_API void reset_peak();
TP_API void trim();                            // gives cached blocks back to the system
TP_API void set_cache_limit(std::size_t bytes);  // 0 switches caching off
TP_API std::size_t cache_limit();
extern TP_API std::uint64_t blocks_made;  // counts every data block, for allocation tests

}  // namespace tp::memory

namespace tp {
/// Guarded by the host's lock, as the free lists are: for what ops and nodes keep, not for kernels.
template <class T>
using PooledVec = std::vector<T, memory::Pooled<T>>;
}  // namespace tp
