// The size at which results leave the caches, from what the processor says of them.
#include "kernels/streaming.h"

#include <cstdlib>
#include <limits>
#if defined(__unix__)
#include <unistd.h>
#endif
#if defined(__x86_64__) && !defined(TP_PORTABLE)
#include <cpuid.h>
#endif

namespace tp::kernels {
namespace {

#if defined(__x86_64__) && !defined(TP_PORTABLE)
bool is_amd() {
  __builtin_cpu_init();
  return __builtin_cpu_is("amd");
}

// The third cache of one group of cores. The C library of many systems tells the sum over all groups of an AMD processor.
std::size_t amd_l3() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(0x8000001D, 3, &a, &b, &c, &d) || (a >> 5 & 7) != 3) return 0;
  return (std::size_t(b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) * (std::size_t(c) + 1);
}
#endif

std::size_t choose() {
  if (const char* s = std::getenv("TENSORPLAY_STREAM_KB"))
    if (*s) return std::size_t(std::strtoull(s, nullptr, 10)) << 10;
#if defined(__x86_64__) && defined(_SC_LEVEL3_CACHE_SIZE) && !defined(TP_PORTABLE)
  const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), told = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t own = is_amd() ? amd_l3() : 0;
  const long l3 = own ? long(own) : told;
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

std::size_t stream_rows_from() {
#if defined(__x86_64__) && !defined(TP_PORTABLE)
  // Between two passes over a row its cores write as fast through the caches, and what reads the result next finds it there.
  static const std::size_t from = is_amd() ? 2 * stream_from() : stream_from();
  return from;
#else
  return stream_from();
#endif
}

std::int64_t stream_ahead([[maybe_unused]] std::size_t inputs) {
#if defined(__x86_64__) && !defined(TP_PORTABLE)
  static const bool amd = is_amd();
  if (amd) return inputs == 1 ? 1024 : 0;
#endif
  return kStreamAhead;
}

}  // namespace tp::kernels
