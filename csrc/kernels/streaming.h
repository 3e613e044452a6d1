// Results too large for the caches are written past them: a block is computed in cache, then stored without reading the
// destination first. Owns from which size on that pays. Knows no op.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/scratch.h"
#include "kernels/staging_table.h"

namespace tp::kernels {

/// From how many bytes on a result is streamed; TENSORPLAY_STREAM_KB overrides what the processor suggests.
std::size_t stream_from();
inline bool streams(std::size_t bytes) { return bytes >= stream_from(); }

/// Bytes of a block computed before it is streamed: a fraction of the first cache, and long enough for a loop to get going.
inline constexpr std::int64_t kStreamBlock = 8192;

/// Stores `bytes` bytes past the caches. The memory is readable by other threads after stream_fence().
inline void stream(char* to, const char* from, std::int64_t bytes) { staging->stream(to, from, bytes); }
inline void stream_fence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

/// Whether `rows` rows of `bytes` bytes are worth it: many, and each of a size that fits the first cache.
inline bool streams_rows(std::int64_t rows, std::int64_t bytes) {
  return bytes >= 256 && bytes <= 32768 && streams(std::size_t(rows) * std::size_t(bytes));
}
/// f(i, to) for the rows [begin, end) of a result (null where it is not wanted): `to` is the row itself, or where it is kept until it leaves.
template <class T, class F>
void write_rows(T* out, std::int64_t n, std::int64_t begin, std::int64_t end, bool streamed, const F& f) {
  if (!streamed) {
    for (std::int64_t i = begin; i < end; ++i) f(i, out ? out + i * n : out);
    return;
  }
  const Scratch<T> row(n);
  for (std::int64_t i = begin; i < end; ++i) {
    f(i, row.get());
    stream(reinterpret_cast<char*>(out + i * n), reinterpret_cast<const char*>(row.get()), n * std::int64_t(sizeof(T)));
  }
  stream_fence();
}

}  // namespace tp::kernels
