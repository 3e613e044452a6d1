// The size at which results leave the caches, from what the processor says of them.
#include "kernels/streaming.h"

#include <cstdlib>
#include <limits>
#if defined(__unix__)
#include <unistd.h>
#endif

namespace tp::kernels {
namespace {

std::size_t choose() {
  if (const char* s = std::getenv("TENSORPLAY_STREAM_KB"))
    if (*s) return std::size_t(std::strtoull(s, nullptr, 10)) << 10;
#if defined(__x86_64__) && defined(_SC_LEVEL3_CACHE_SIZE) && !defined(TP_PORTABLE)
  const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  __builtin_cpu_init();
  // Large private caches before a distant shared one (Intel's servers): the shared one is hardly faster than memory to a
  // single core, measured at twice the second cache as even for chains of operations and a fifth faster for single ones.
  if (__builtin_cpu_is("intel") && l2 >= (1 << 20)) return std::size_t(l2) * 2;
  if (l3 > 0) return std::size_t(l3) / 2 < (std::size_t(4) << 20) ? std::size_t(4) << 20 : std::size_t(l3) / 2;
  return std::size_t(32) << 20;
#else
  return std::numeric_limits<std::size_t>::max();
#endif
}

}  // namespace

std::size_t stream_from() {
  static const std::size_t from = choose();
  return from;
}

}  // namespace tp::kernels
