// Free lists refill from chunks and give them back whole; large blocks are cached by rounded size up to a bound, the sizes used last, on huge pages where offered.
#include "core/allocator.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>
#include <vector>

#include "core/block_count.h"
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

namespace {

constexpr std::size_t kHuge = std::size_t(2) << 20;

/// A piece of kHuge bytes, aligned to its size, that holds objects of one class. A list of a class (small_lists) holds
/// what is about to be used; what does not fit there goes back to its chunk, and a chunk that is whole again to the system.
struct Chunk {
  FreeNode* free;
  std::uint32_t held, all;  // objects in `free`; objects there are
  std::uint32_t cls;
  Chunk *next, *before;  // among those of its class that hold something
};
constexpr std::size_t kHeader = 64;
static_assert(sizeof(Chunk) <= kHeader);

Chunk* partial[kClasses + 1];
Chunk* reserve = nullptr;  // whole ones kept for the next graph, of any class
std::size_t reserved = 0;
constexpr std::size_t kReserve = 16;

void* map_chunk() {
#if defined(__linux__) && !defined(TP_PORTABLE)
  // Not malloc: what it got back it may keep.
  void* raw = mmap(nullptr, 2 * kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* from = static_cast<char*>(raw);
  char* base = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(from) + kHuge - 1) & ~(kHuge - 1));
  if (base != from) munmap(from, std::size_t(base - from));
  munmap(base + kHuge, kHuge - std::size_t(base - from));
  madvise(base, kHuge, MADV_HUGEPAGE);  // the walk over a large graph misses fewer translations
  return base;
#else
  return std::aligned_alloc(kHuge, kHuge);
#endif
}
void unmap_chunk(void* base) {
#if defined(__linux__) && !defined(TP_PORTABLE)
  munmap(base, kHuge);
#else
  std::free(base);
#endif
}

/// Which addresses are chunks: open addressing, keyed by the number of the kHuge-aligned range.
class ChunkSet {
 public:
  bool has(std::uintptr_t base) const {
    for (std::size_t i = slot(base);; i = (i + 1) & mask_) {
      if (table_[i] == base) return true;
      if (!table_[i]) return false;
    }
  }
  void add(std::uintptr_t base) {
    if (2 * (++used_) > mask_) grow();
    put(base);
  }
  void remove(std::uintptr_t base) {
    std::size_t i = slot(base);
    while (table_[i] != base) i = (i + 1) & mask_;
    --used_;
    for (std::size_t j = (i + 1) & mask_;; j = (j + 1) & mask_) {  // close the gap, so that searches do not end in it
      if (!table_[j]) break;
      const std::size_t home = slot(table_[j]);
      if (((j - home) & mask_) < ((j - i) & mask_)) continue;
      table_[i] = table_[j];
      i = j;
    }
    table_[i] = 0;
  }

 private:
  std::size_t slot(std::uintptr_t base) const { return (base / kHuge * 0x9E3779B1u) & mask_; }
  void put(std::uintptr_t base) {
    std::size_t i = slot(base);
    while (table_[i]) i = (i + 1) & mask_;
    table_[i] = base;
  }
  void grow() {
    const std::vector<std::uintptr_t> old = std::move(table_);
    mask_ = 2 * mask_ + 1;
    table_.assign(mask_ + 1, 0);
    for (std::uintptr_t b : old)
      if (b) put(b);
  }
  std::size_t mask_ = 63, used_ = 0;
  std::vector<std::uintptr_t> table_ = std::vector<std::uintptr_t>(64, 0);
};
ChunkSet& chunks() {
  static ChunkSet* set = new ChunkSet;  // outlives static destructors, as the cache below
  return *set;
}

void unlink(Chunk* c) {
  (c->before ? c->before->next : partial[c->cls]) = c->next;
  if (c->next) c->next->before = c->before;
}

/// Back to its chunk; false for an object of the small beginnings of its class, which stay.
bool give_back(std::size_t cls, void* p) {
  static std::uintptr_t last[kClasses + 1];  // neighbours end together
  const std::uintptr_t base = reinterpret_cast<std::uintptr_t>(p) & ~(std::uintptr_t(kHuge) - 1);
  if (base != last[cls]) {
    if (!chunks().has(base)) return false;
    last[cls] = base;
  }
  Chunk* c = reinterpret_cast<Chunk*>(base);
  FreeNode* n = static_cast<FreeNode*>(p);
  n->next = c->free;
  c->free = n;
  if (c->held++ == 0) {
    c->before = nullptr;
    c->next = partial[cls];
    if (c->next) c->next->before = c;
    partial[cls] = c;
  }
  if (c->held < c->all) return true;
  unlink(c);
  chunks().remove(base);
  last[cls] = 0;
  if (reserved < kReserve) {
    c->next = reserve;
    reserve = c;
    ++reserved;
  } else {
    unmap_chunk(c);
  }
  return true;
}

/// Hands the objects from `first` on to the list, in address order, except the first: that is the caller's.
void* spread(FreeList& list, char* first, std::size_t size, std::size_t n) {
  for (std::size_t i = n - 1; i >= 1; --i) {
    FreeNode* f = reinterpret_cast<FreeNode*>(first + i * size);
    f->next = list.head;
    list.head = f;
  }
  list.count += std::uint32_t(n - 1);
  return first;
}

void* from_chunk(std::size_t cls, std::size_t size) {
  FreeList& list = small_lists[cls];
  if (Chunk* c = partial[cls]) {
    unlink(c);
    FreeNode* p = c->free;
    list.head = p->next;
    list.count = c->held - 1;
    c->free = nullptr;
    c->held = 0;
    return p;
  }
  void* base = reserve;
  if (reserve) {
    reserve = reserve->next;
    --reserved;
  } else {
    base = map_chunk();
  }
  if (!base) return nullptr;
  Chunk* c =
      new (base) Chunk{nullptr, 0, std::uint32_t((kHuge - kHeader) / size), std::uint32_t(cls), nullptr, nullptr};
  chunks().add(reinterpret_cast<std::uintptr_t>(base));
  return spread(list, static_cast<char*>(base) + kHeader, size, c->all);
}

/// Everything that lies in lists goes back to its chunk, whole chunks to the system.
void trim_small() {
  for (std::size_t cls = 0; cls <= kClasses; ++cls) {
    FreeList& list = small_lists[cls];
    FreeNode* n = list.head;
    list = {};
    while (n) {
      FreeNode* next = n->next;
      if (!give_back(cls, n)) {
        n->next = list.head;
        list.head = n;
        ++list.count;
      }
      n = next;
    }
  }
  for (; reserve; --reserved) {
    Chunk* c = reserve;
    reserve = c->next;
    unmap_chunk(c);
  }
}

}  // namespace

void* small_refill(std::size_t cls) {
  const std::size_t size = (cls ? cls : 1) * kSmallStep;
  if (!kPooling) return std::malloc(size);
  // A class begins with little pieces; one in heavy use (a graph of a million nodes) grows by chunks.
  static std::uint32_t refills[kClasses + 1];
  constexpr std::size_t piece = 16384;
  void* p = nullptr;
  if (refills[cls] >= 128) {
    p = from_chunk(cls, size);
  } else {
    ++refills[cls];
    if (char* base = static_cast<char*>(std::malloc(piece))) p = spread(small_lists[cls], base, size, piece / size);
  }
  if (!p) fail(ErrorKind::Memory, "allocation of ", size, " bytes failed");
  return p;
}

void small_overflow(std::size_t cls, void* p) {
  if (!kPooling) {
    std::free(p);
    return;
  }
  if (give_back(cls, p)) return;
  FreeList& list = small_lists[cls];
  FreeNode* n = static_cast<FreeNode*>(p);
  n->next = list.head;
  list.head = n;
  ++list.count;
}

namespace {

struct Cache {
  /// Free blocks of one size, and when one was last put there.
  struct Blocks {
    std::vector<void*> list;
    std::uint64_t used = 0;
  };
  std::unordered_map<std::size_t, Blocks> free;
  std::uint64_t cached = 0, in_use = 0, peak = 0, turn = 0;
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

std::uint64_t total(const Cache& c) { return c.in_use + inline_bytes; }
/// Small blocks count without looking here: the next large one, or whoever asks, sees them.
void note_peak(Cache& c) {
  if (total(c) > c.peak) c.peak = total(c);
}

/// Rounds up so that equal-looking requests share blocks: an eighth of the power of two below, at most 12.5 % waste.
std::size_t rounded(std::size_t bytes) {
  if (bytes < 4096) return (bytes + 63) & ~std::size_t(63);
  std::size_t step = 64;
  while (step * 16 <= bytes) step *= 2;
  if (bytes >= kHuge && step < 65536) step = 65536;
  return (bytes + step - 1) / step * step;
}

/// Blocks from this size on begin at different places within a page. A loop over several that begin at one place, or at a
/// little more than where what it reads does, is slower by a fifth: the processor takes a read for one of what was just
/// written by the last twelve bits of its address. NumPy's blocks begin at 16 or 64.
constexpr std::size_t kPage = 4096, kSpread = 32768;

std::size_t next_offset() {
  static unsigned turn = 0;
  return 640 + 1024 * (turn++ % 4);
}

void* system_alloc(std::size_t size) {
  if (!kPooling || size < kSpread) return std::aligned_alloc(64, (size + 63) / 64 * 64);
  void* page;
#if defined(__linux__) && !defined(TP_PORTABLE)
  if (size >= kHuge) {
    page = std::aligned_alloc(kHuge, (size + kPage + kHuge - 1) / kHuge * kHuge);
    if (page) madvise(page, size / kHuge * kHuge, MADV_HUGEPAGE);
  } else
#endif
    page = std::aligned_alloc(kPage, (size + 2 * kPage - 1) / kPage * kPage);
  return page ? static_cast<char*>(page) + next_offset() : nullptr;
}
void system_free(void* p, std::size_t size) {
  if (kPooling && size >= kSpread) p = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(p) & ~(kPage - 1));
  std::free(p);
}

// One block of the size that was put back longest ago; there is one.
void drop_oldest(Cache& c) {
  auto oldest = c.free.end();
  for (auto it = c.free.begin(); it != c.free.end(); ++it)
    if (!it->second.list.empty() && (oldest == c.free.end() || it->second.used < oldest->second.used)) oldest = it;
  system_free(oldest->second.list.back(), oldest->first);
  oldest->second.list.pop_back();
  c.cached -= oldest->first;
  if (oldest->second.list.empty()) c.free.erase(oldest);
}

}  // namespace

void* large_alloc(std::size_t bytes) {
  Cache& c = cache();
  if (bytes > (std::size_t(1) << 62)) fail(ErrorKind::Memory, "allocation of ", bytes, " bytes failed");
  const std::size_t size = rounded(bytes ? bytes : 1);
  void* p = nullptr;
  if (auto it = c.free.find(size); it != c.free.end() && !it->second.list.empty()) {
    p = it->second.list.back();
    it->second.list.pop_back();
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
  note_peak(c);
  return p;
}

void large_free(void* p, std::size_t bytes) {
  Cache& c = cache();
  const std::size_t size = rounded(bytes ? bytes : 1);
  c.in_use -= size;
  if (size > c.limit) return system_free(p, size);
  // The sizes that were not asked for the longest make room: a program that goes on to other sizes would find no place.
  while (c.cached + size > c.limit) drop_oldest(c);
  Cache::Blocks& blocks = c.free[size];
  blocks.list.push_back(p);
  blocks.used = ++c.turn;
  c.cached += size;
}

Stats stats() {
  Cache& c = cache();
  note_peak(c);
  return {total(c), c.cached, c.peak, blocks_made};
}
void reset_peak() { cache().peak = total(cache()); }
void trim() {
  if (kPooling) trim_small();
  Cache& c = cache();
  for (auto& [size, blocks] : c.free)
    for (void* p : blocks.list) system_free(p, size);
  c.free.clear();
  c.cached = 0;
}
void set_cache_limit(std::size_t bytes) {
  cache().limit = kPooling ? bytes : 0;
  if (cache().cached > bytes) trim();
}
std::size_t cache_limit() { return cache().limit; }

}  // namespace tp::memory
