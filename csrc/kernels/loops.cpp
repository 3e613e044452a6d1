// Which instruction set runs, decided once. Knows no loop.
#include "kernels/loops.h"

#include <cstdio>
#include <cstdlib>

namespace tp {
namespace {

Isa best_isa() {
#if defined(TP_HAVE_AVX512) && defined(TP_HAVE_AVX2)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return Isa::Avx512;
  if (__builtin_cpu_supports("x86-64-v3")) return Isa::Avx2;
#endif
  return Isa::Baseline;
}

// Runs while the library loads, where an exception would end the process: a wish that cannot be met is a warning.
Isa choose() {
  const Isa best = best_isa();
  const char* wish = std::getenv("TENSORPLAY_ISA");
  if (!wish || !*wish) return best;
  for (Isa isa : {Isa::Baseline, Isa::Avx2, Isa::Avx512}) {
    if (isa_name(isa) != wish) continue;
    if (isa <= best) return isa;
    std::fprintf(stderr, "tensorplay: TENSORPLAY_ISA=%s is more than this machine or build has; using %s\n", wish,
                 isa_name(best).data());
    return best;
  }
  std::fprintf(stderr, "tensorplay: TENSORPLAY_ISA=%s is not one of baseline, avx2, avx512; using %s\n", wish,
               isa_name(best).data());
  return best;
}

}  // namespace

Isa active_isa() {
  static const Isa isa = choose();
  return isa;
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::Avx512: return "avx512";
    case Isa::Avx2: return "avx2";
    default: return "baseline";
  }
}

}  // namespace tp
