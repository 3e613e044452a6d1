// The table of the own matrix product: packed panels and register tiles, where the instruction set has 32 wide registers.
// Knows no threads and no library.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

template <class T>
struct PanelGemmArgs {
  std::int64_t m, n, k;  // all at least 1
  const T* a;
  std::int64_t a_rs, a_cs;
  const T* b;
  std::int64_t b_rs, b_cs;
  T* c;  // unit column stride
  std::int64_t ldc;
  T alpha, beta;  // beta == 0 does not read c
  const T* bias;  // n values added to every row, or null
  bool past;  // C is too large for the caches: it may be written past them
  T* room;  // panel_gemm_room(m, n, k, sizeof(T)) elements, 64-byte aligned
};

/// Null where the library's product is the better one.
struct PanelGemm {
  void (*f32)(const PanelGemmArgs<float>&);
  void (*f64)(const PanelGemmArgs<double>&);
};
TP_DECLARE_TABLE(PanelGemm, panel_gemm)

/// Elements of B and A packed at a time: a panel of B stays in the first cache, a block of B in the second.
inline constexpr std::int64_t kPanelK = 256, kPanelBytesN = 3072, kPanelRows = 8, kPanelM = 128;

/// Elements of working memory.
constexpr std::int64_t panel_gemm_room(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t item) {
  const std::int64_t kc = k < kPanelK ? k : kPanelK, nc = n < kPanelBytesN / item ? n + 64 / item : kPanelBytesN / item;
  const std::int64_t mc = (m < kPanelM ? m : kPanelM) + kPanelRows;
  return kc * (nc + mc);
}

/// Where it beats the library: above the sizes that one has small kernels for, and below those at which the traffic of C
/// between blocks of k counts; and for long, thin operands.
constexpr bool is_panel_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const double volume = double(m) * double(n) * double(k);
  return volume > 1e6 && m >= 8 && n >= 8 && (volume <= 6e7 || n <= 128 || k <= 128);
}

}  // namespace tp
