// Free lists refill from chunks; large blocks are cached by rounded size up to a bound, on huge pages where offered.
#include "core/allocator.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>
#include <vector>

#include "core/errors.h"
#if defined(__linux__) && !defined(TP_PORTABLE)
#include <sys/mman.h>
#endif

namespace tp::memory {

FreeList small_lists[kClasses + 1];
std::uint64_t blocks_made = 0;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kPooling = false;  // every object its own allocation, so that the sanitizer sees its bounds and its end
#else
constexpr bool kPooling = true;
#endif

void* small_refill(std::size_t cls) {
  const std::size_t size = (cls ? cls : 1) * kSmallStep;
  if (!kPooling) return std::malloc(size);
  // A class in heavy use (a graph of a million nodes) grows by huge pages: the walk over it then misses fewer translations.
  static std::uint32_t refills[kClasses + 1];
  std::size_t chunk = 16384;
  char* base = nullptr;
#if defined(__linux__) && !defined(TP_PORTABLE)
  if (++refills[cls] > 128) {
    chunk = std::size_t(2) << 20;
    base = static_cast<char*>(std::aligned_alloc(chunk, chunk));
    if (base) madvise(base, chunk, MADV_HUGEPAGE);
  }
#endif
  if (!base) base = static_cast<char*>(std::malloc(chunk));
  if (!base) fail(ErrorKind::Memory, "allocation of ", size, " bytes failed");
  const std::size_t n = chunk / size;
  FreeList& list = small_lists[cls];
  for (std::size_t i = n - 1; i >= 1; --i) {  // hand out in address order
    FreeNode* f = reinterpret_cast<FreeNode*>(base + i * size);
    f->next = list.head;
    list.head = f;
    ++list.count;
  }
  return base;
}

void small_overflow(std::size_t cls, void* p) {
  // Chunks are shared by many objects, so a single object cannot go back to the system: the list just grows.
  if (!kPooling) {
    std::free(p);
    return;
  }
  FreeList& list = small_lists[cls];
  FreeNode* n = static_cast<FreeNode*>(p);
  n->next = list.head;
  list.head = n;
  ++list.count;
}

namespace {

constexpr std::size_t kHuge = std::size_t(2) << 20;

struct Cache {
  std::unordered_map<std::size_t, std::vector<void*>> free;
  std::uint64_t cached = 0, in_use = 0, peak = 0;
  std::size_t limit = 0;
  bool ready = false;

  void setup() {
    ready = true;
    limit = std::size_t(1) << 30;
    if (const char* s = std::getenv("TENSORPLAY_CACHE_MB")) limit = std::size_t(std::strtoull(s, nullptr, 10)) << 20;
    if (!kPooling) limit = 0;
  }
};
Cache& cache() {
  static Cache* c = new Cache;  // outlives static destructors: blocks may be freed very late
  if (!c->ready) c->setup();
  return *c;
}

/// Rounds up so that equal-looking requests share blocks: an eighth of the power of two below, at most 12.5 % waste.
std::size_t rounded(std::size_t bytes) {
  if (bytes < 4096) return (bytes + 63) & ~std::size_t(63);
  std::size_t step = 64;
  while (step * 16 <= bytes) step *= 2;
  if (bytes >= kHuge && step < 65536) step = 65536;
  return (bytes + step - 1) / step * step;
}

void* system_alloc(std::size_t size) {
#if defined(__linux__) && !defined(TP_PORTABLE)
  if (size >= kHuge) {
    void* p = std::aligned_alloc(kHuge, (size + kHuge - 1) / kHuge * kHuge);
    if (p) madvise(p, size, MADV_HUGEPAGE);
    return p;
  }
#endif
  return std::aligned_alloc(64, (size + 63) / 64 * 64);
}

}  // namespace

void* large_alloc(std::size_t bytes) {
  Cache& c = cache();
  if (bytes > (std::size_t(1) << 62)) fail(ErrorKind::Memory, "allocation of ", bytes, " bytes failed");
  const std::size_t size = rounded(bytes ? bytes : 1);
  void* p = nullptr;
  if (auto it = c.free.find(size); it != c.free.end() && !it->second.empty()) {
    p = it->second.back();
    it->second.pop_back();
    c.cached -= size;
  } else {
    p = system_alloc(size);
    if (!p && c.cached) {
      trim();
      p = system_alloc(size);
    }
    if (!p) fail(ErrorKind::Memory, "allocation of ", bytes, " bytes failed");
  }
  c.in_use += size;
  if (c.in_use > c.peak) c.peak = c.in_use;
  return p;
}

void large_free(void* p, std::size_t bytes) {
  Cache& c = cache();
  const std::size_t size = rounded(bytes ? bytes : 1);
  c.in_use -= size;
  if (c.cached + size <= c.limit) {
    c.free[size].push_back(p);
    c.cached += size;
  } else {
    std::free(p);
  }
}

Stats stats() {
  Cache& c = cache();
  return {c.in_use, c.cached, c.peak, blocks_made};
}
void reset_peak() { cache().peak = cache().in_use; }
void trim() {
  Cache& c = cache();
  for (auto& [size, list] : c.free)
    for (void* p : list) std::free(p);
  c.free.clear();
  c.cached = 0;
}
void set_cache_limit(std::size_t bytes) {
  cache().limit = kPooling ? bytes : 0;
  if (cache().cached > bytes) trim();
}
std::size_t cache_limit() { return cache().limit; }

}  // namespace tp::memory
