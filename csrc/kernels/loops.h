// The calling convention of generated element loops and their choice by instruction set. Knows no op.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/api.h"
#include "core/dtype.h"
#include "core/scalar.h"

namespace tp {

/// n elements, contiguous, one compute type (masks: one byte an element). data: outputs first, then inputs; an output may be
/// the very same memory as an input. params: scalar arguments, already hoisted out of the loop.
using Loop = void (*)(std::int64_t n, char* const* data, const Scalar* params);

/// One loop per compute type; null where the entry does not take the type.
struct LoopSet {
  Loop by_compute[kNumComputes];
  Loop operator[](Compute c) const { return by_compute[int(c)]; }
};

enum class Isa : std::uint8_t { Baseline, Avx2, Avx512 };
/// The best set this machine runs, or what TENSORPLAY_ISA (baseline, avx2, avx512) asks for. Fixed at load.
TP_API Isa active_isa();
TP_API std::string_view isa_name(Isa isa);

inline const LoopSet* pick(const LoopSet* baseline, const LoopSet* avx2, const LoopSet* avx512) {
  switch (active_isa()) {
    case Isa::Avx512: return avx512;
    case Isa::Avx2: return avx2;
    default: return baseline;
  }
}

/// `TP_DECLARE_LOOPS(unary)` at namespace tp scope, then `TP_PICK_LOOPS(unary)` as the initialiser of a static table pointer.
#if defined(TP_HAVE_AVX512) && defined(TP_HAVE_AVX2)
#define TP_DECLARE_LOOPS(shard)                                \
  namespace baseline { extern const LoopSet shard##_loops[]; } \
  namespace avx2 { extern const LoopSet shard##_loops[]; }     \
  namespace avx512 { extern const LoopSet shard##_loops[]; }
#define TP_PICK_LOOPS(shard) \
  ::tp::pick(::tp::baseline::shard##_loops, ::tp::avx2::shard##_loops, ::tp::avx512::shard##_loops)
#else
#define TP_DECLARE_LOOPS(shard) \
  namespace baseline { extern const LoopSet shard##_loops[]; }
#define TP_PICK_LOOPS(shard) ::tp::baseline::shard##_loops
#endif

}  // namespace tp
