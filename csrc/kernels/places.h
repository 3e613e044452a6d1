// Lists of places that formulas pick by: choices, repeats, neighbours on a grid, the order of slices. Knows no gradients.
#pragma once
#include <optional>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// [rows, r]: every choice of r of the numbers below n in lexicographic order; [0] for r = 0.
// kernel: combination_places
TP_API Storage combination_places(const OpSchema& op, std::int64_t n, std::int64_t r, bool with_replacement);
/// Each place of a vector as often as its element says; output_size is checked where it is given.
// kernel: repeat_places
TP_API Storage repeat_places(const OpSchema& op, const Storage& repeats, std::optional<std::int64_t> output_size);
/// [width ** n, n]: offsets to the neighbours of a place: 0 and 1, or -1 to 2, or 0 alone, along each dimension.
// kernel: grid_corners
TP_API Storage grid_corners(const OpSchema& op, std::int64_t n, std::int64_t width);
/// Sizes as a vector.
// kernel: sizes_tensor
TP_API Storage sizes_tensor(const OpSchema& op, const Dims& sizes);
/// The order of the rows of a matrix, compared element by element; nan is last, equal rows stay as they came.
// kernel: slice_order
TP_API Storage slice_order(const OpSchema& op, const Storage& rows);

}  // namespace tp::kernels
