// Bit patterns of the number one in the 16-bit float types. Knows nothing else.
#pragma once
#include <cstdint>

namespace tp {
inline constexpr std::uint16_t kHalfOne = 0x3C00;
inline constexpr std::uint16_t kBfloat16One = 0x3F80;
}  // namespace tp
