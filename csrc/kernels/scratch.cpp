// A small cache of working memory per thread.
#include "kernels/scratch.h"

#include <cstdlib>
#include <new>

namespace tp::kernels {
namespace {

constexpr int kSlots = 6;
constexpr std::size_t kKeep = std::size_t(32) << 20;  // bytes a thread keeps at most

struct Cache {
  struct Slot {
    void* p = nullptr;
    std::size_t bytes = 0;
  } slots[kSlots];
  std::size_t kept = 0;
  ~Cache() {
    for (Slot& s : slots) std::free(s.p);
  }
};
thread_local Cache t_cache;

}  // namespace

ScratchBytes::ScratchBytes(std::size_t bytes) {
  bytes = (bytes + 127) / 64 * 64;
  Cache& c = t_cache;
  Cache::Slot* best = nullptr;
  for (Cache::Slot& s : c.slots)
    if (s.p && s.bytes >= bytes && s.bytes <= 4 * bytes + 65536 && (!best || s.bytes < best->bytes)) best = &s;
  if (best) {
    p_ = best->p;
    bytes_ = best->bytes;
    c.kept -= bytes_;
    *best = {};
    return;
  }
  p_ = std::aligned_alloc(64, bytes);
  if (!p_) throw std::bad_alloc();
  bytes_ = bytes;
}

ScratchBytes::~ScratchBytes() {
  Cache& c = t_cache;
  Cache::Slot* place = &c.slots[0];
  for (Cache::Slot& s : c.slots)
    if (s.bytes < place->bytes) place = &s;
  // The smallest block gives way to a larger one.
  if (bytes_ <= place->bytes || c.kept - place->bytes + bytes_ > kKeep) {
    std::free(p_);
    return;
  }
  std::free(place->p);
  c.kept += bytes_ - place->bytes;
  *place = {p_, bytes_};
}

}  // namespace tp::kernels
