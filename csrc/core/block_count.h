// How many data blocks are alive: for leak tests. Apart from allocator.h, which everything includes.
#pragma once
#include "core/allocator.h"

namespace tp::memory {

extern TP_API std::uint64_t blocks_freed;
extern TP_API std::uint64_t inline_bytes;  // of blocks alive whose bytes lie behind their head, of no large_alloc
/// Blocks of make_block that have not been freed; memory of others (adopted) is not counted.
inline std::uint64_t blocks_live() { return blocks_made - blocks_freed; }

}  // namespace tp::memory
