// Tables of hand-written raw-memory kernels, compiled once per instruction set, and the choice between them. Knows no op.
#pragma once
#include "kernels/loops.h"

namespace tp {

template <class Table>
const Table& pick_table(const Table& baseline, const Table& avx2, const Table& avx512) {
  switch (active_isa()) {
    case Isa::Avx512: return avx512;
    case Isa::Avx2: return avx2;
    default: return baseline;
  }
}

/// `TP_DECLARE_TABLE(RowKernels, row_kernels)` at namespace tp scope; each file of csrc/kernels/isa defines
/// tp::TP_ISA::row_kernels. `TP_PICK_TABLE(row_kernels)` is the one for this machine.
#if defined(TP_HAVE_AVX512) && defined(TP_HAVE_AVX2)
#define TP_DECLARE_TABLE(Type, table)             \
  namespace baseline { extern const Type table; } \
  namespace avx2 { extern const Type table; }     \
  namespace avx512 { extern const Type table; }
#define TP_PICK_TABLE(table) ::tp::pick_table(::tp::baseline::table, ::tp::avx2::table, ::tp::avx512::table)
#else
#define TP_DECLARE_TABLE(Type, table) \
  namespace baseline { extern const Type table; }
#define TP_PICK_TABLE(table) ::tp::baseline::table
#endif

}  // namespace tp
