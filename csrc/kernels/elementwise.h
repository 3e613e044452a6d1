// The elementwise driver: promotion, broadcasting, staging and threads around a generated loop. Knows no op.
#pragma once
#include <initializer_list>
#include <span>

#include "core/errors.h"
#include "core/op_schema.h"
#include "core/storage.h"
#include "kernels/loops.h"

namespace tp {

/// How the common dtype follows from the operands.
enum class Promote : std::uint8_t {
  Common,        // result_type of all value operands
  Float,         // the same, but integers become the default float
  FloatComplex,  // alias of Float for readers: complex stays complex
};
/// What the loop writes.
enum class OutKind : std::uint8_t {
  Common,  // the common dtype
  Bool,    // one byte an element
  Real,    // the real dtype of the common dtype (abs, angle of a complex input)
};

/// One static constant per generated loop.
struct ElementwiseSpec {
  const OpSchema* schema;
  std::uint8_t num_inputs;
  std::uint8_t mask_inputs = 0;  // bit i: input i is a mask (read as bool, no part in promotion)
  Promote promote = Promote::Common;
  OutKind out = OutKind::Common;
};

namespace kernels {

/// Result in fresh memory. Raises ValueError with both shapes when the operands do not broadcast, TypeError by op name when
/// no loop is compiled for the common dtype.
TP_API Storage elementwise(const ElementwiseSpec& spec, const LoopSet& loops, std::span<const Storage* const> inputs,
                           std::span<const Scalar> params = {});
/// Result into `out` (in place, or out=): sizes must equal the broadcast sizes; the result is cast to out's dtype, which must
/// be of the same or a higher category.
TP_API void elementwise_into(const ElementwiseSpec& spec, const LoopSet& loops, Storage& out,
                             std::span<const Storage* const> inputs, std::span<const Scalar> params = {});

/// The same, made in a place that holds nothing yet.
TP_API void elementwise_to(Storage& place, const ElementwiseSpec& spec, const LoopSet& loops,
                           std::span<const Storage* const> inputs, std::span<const Scalar> params = {});

inline Storage elementwise(const ElementwiseSpec& spec, const LoopSet& loops,
                           std::initializer_list<const Storage*> inputs, std::initializer_list<Scalar> params = {}) {
  return elementwise(spec, loops, std::span<const Storage* const>(inputs.begin(), inputs.size()),
                     std::span<const Scalar>(params.begin(), params.size()));
}
inline void elementwise_to(Storage& place, const ElementwiseSpec& spec, const LoopSet& loops,
                           std::initializer_list<const Storage*> inputs, std::initializer_list<Scalar> params = {}) {
  elementwise_to(place, spec, loops, std::span<const Storage* const>(inputs.begin(), inputs.size()),
                 std::span<const Scalar>(params.begin(), params.size()));
}
inline void elementwise_into(const ElementwiseSpec& spec, const LoopSet& loops, Storage& out,
                             std::initializer_list<const Storage*> inputs, std::initializer_list<Scalar> params = {}) {
  elementwise_into(spec, loops, out, std::span<const Storage* const>(inputs.begin(), inputs.size()),
                   std::span<const Scalar>(params.begin(), params.size()));
}

/// Several results of the same operands by one loop, which writes them all: what they share is computed once. False, and
/// nothing done, unless the operands are contiguous, of one shape and of one of the dtypes float32 and float64.
TP_API bool elementwise_together(const ElementwiseSpec& spec, const LoopSet& loops, std::span<Storage> results,
                                 std::span<const Storage* const> inputs, std::span<const Scalar> params = {});
inline bool elementwise_together(const ElementwiseSpec& spec, const LoopSet& loops, std::span<Storage> results,
                                 std::initializer_list<const Storage*> inputs,
                                 std::initializer_list<Scalar> params = {}) {
  return elementwise_together(spec, loops, results, std::span<const Storage* const>(inputs.begin(), inputs.size()),
                              std::span<const Scalar>(params.begin(), params.size()));
}

/// The dtype the spec's promotion gives these operands.
TP_API Dtype common_dtype(const ElementwiseSpec& spec, std::span<const Storage* const> inputs);
/// Broadcast of two or more shapes; ValueError naming `op` and all shapes when there is none.
TP_API Shape broadcast_shapes(std::string_view op, std::span<const Storage* const> inputs);

}  // namespace kernels
}  // namespace tp
