// Results too large for the caches are written past them: a block is computed in cache, then stored without reading the
// destination first. Owns from which size on that pays. Knows no op.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "kernels/scratch.h"
#include "kernels/staging_table.h"

namespace tp::kernels {

/// From how many bytes on a result is streamed; TENSORPLAY_STREAM_KB overrides what the processor suggests.
std::size_t stream_from();
/// The same for rows that are worked on one by one (norms, softmax).
std::size_t stream_rows_from();
inline bool streams(std::size_t bytes) { return bytes >= stream_from(); }

/// Bytes of a block computed before it is streamed. Its lines fit the buffers between core and memory, where they wait
/// while the next block is computed: with blocks of 8 KB the core waits instead.
inline constexpr std::int64_t kStreamBlock = 1024;
/// The same where a block costs a step of the walk besides.
inline constexpr std::int64_t kStreamTile = 4096;
/// How far ahead of the block that is read memory is asked for. The hardware does that within a page, and stops at its end.
inline constexpr std::int64_t kStreamAhead = 4096;
/// The same for a loop over `inputs` operands; 0: not at all. AMD's cores read several streams as fast by themselves, and
/// lose half of it to the asking where they begin at one place within a page (Zen 4, 16M: x + y 9.4 ms, without 6.0; max(x, 0)
/// 3.6, asking close by 2.9, without 3.4).
std::int64_t stream_ahead(std::size_t inputs);

inline void prefetch(const char* p, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

/// Stores `bytes` bytes past the caches. The memory is readable by other threads after stream_fence().
inline void stream(char* to, const char* from, std::int64_t bytes) { staging->stream(to, from, bytes); }
inline void stream_fence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

/// Whether `rows` rows of `bytes` bytes are worth it: many, and each of a size that fits the first cache.
inline bool streams_rows(std::int64_t rows, std::int64_t bytes) {
  return bytes >= 256 && bytes <= 32768 && std::size_t(rows) * std::size_t(bytes) >= stream_rows_from();
}
/// f(i, to) for the rows [begin, end) of a result (null where it is not wanted): `to` is the row itself, or where it is kept
/// until it leaves. `reads`: what f reads row by row, asked for while the row before leaves.
template <class T, class F>
void write_rows(T* out, std::int64_t n, std::int64_t begin, std::int64_t end, bool streamed,
                std::initializer_list<const T*> reads, const F& f) {
  if (!streamed) {
    for (std::int64_t i = begin; i < end; ++i) f(i, out ? out + i * n : out);
    return;
  }
  const Scratch<T> row(n);
  const std::int64_t bytes = n * std::int64_t(sizeof(T));
  for (std::int64_t i = begin; i < end; ++i) {
    f(i, row.get());
    for (std::int64_t at = 0; at < bytes; at += kStreamBlock) {
      const std::int64_t k = bytes - at < kStreamBlock ? bytes - at : kStreamBlock;
      stream(reinterpret_cast<char*>(out + i * n) + at, reinterpret_cast<const char*>(row.get()) + at, k);
      for (const T* from : reads)
        if (from) prefetch(reinterpret_cast<const char*>(from + (i + 1) * n) + at, k);
    }
  }
  stream_fence();
}

}  // namespace tp::kernels
