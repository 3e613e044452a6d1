// The table of products done without the library: small real matrices, integers of any size. Knows no threads.
#pragma once
#include <cstdint>

#include "core/complex.h"
#include "kernels/isa_table.h"

namespace tp {

template <class T>
struct SmallGemmArgs {
  std::int64_t batch, m, n, k;
  const T* a;
  std::int64_t a_batch, a_rs, a_cs;
  const T* b;
  std::int64_t b_batch, b_rs, b_cs;
  T* c;
  std::int64_t c_batch, ldc;
  T alpha, beta;      // beta == 0 does not read c
  bool past = false;  // C is too large for the caches: k == 1 may write it past them
};

struct SmallGemm {
  void (*f32)(const SmallGemmArgs<float>&);
  void (*f64)(const SmallGemmArgs<double>&);
  void (*c64_)(const SmallGemmArgs<c64>&);
  void (*c128_)(const SmallGemmArgs<c128>&);
  void (*i32)(const SmallGemmArgs<std::int32_t>&);
  void (*i64)(const SmallGemmArgs<std::int64_t>&);
  void (*u64)(const SmallGemmArgs<std::uint64_t>&);
};
TP_DECLARE_TABLE(SmallGemm, small_gemm)

/// Whether the small kernel beats a library call.
constexpr bool is_small_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return m * n * k <= 4096 && n <= 64 && k <= 64;
}
/// A column times a row is a write of C and little else, of any size.
constexpr bool is_outer_product(std::int64_t n, std::int64_t k) { return k == 1 && n >= 16; }

}  // namespace tp
