// Results too large for the caches are written past them: a block is computed in cache, then stored without reading the
// destination first. Owns from which size on that pays. Knows no op.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/staging_table.h"

namespace tp::kernels {

/// From how many bytes on a result is streamed; TENSORPLAY_STREAM_KB overrides what the processor suggests.
std::size_t stream_from();
inline bool streams(std::size_t bytes) { return bytes >= stream_from(); }

/// Bytes of a block computed before it is streamed: small beside the first cache, whose rest holds what is read ahead.
inline constexpr std::int64_t kStreamBlock = 2048;

/// Stores `bytes` bytes past the caches. The memory is readable by other threads after stream_fence().
inline void stream(char* to, const char* from, std::int64_t bytes) { staging->stream(to, from, bytes); }
inline void stream_fence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace tp::kernels
