// Kernels of interpolation to a given size over one to three trailing dimensions of [N, C, ...]. `scale` holds, per
// dimension, the factor the size came from (0 or an empty list: the ratio of the sizes).
#pragma once
#include <vector>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// exact: as "nearest-exact", which looks at the centre of an output element.
// kernel: upsample_nearest (internal)
TP_API Storage upsample_nearest(const OpSchema& op, const Storage& input, const Dims& size,
                                const std::vector<double>& scale, bool exact);
// kernel: upsample_nearest_slope (internal)
TP_API Storage upsample_nearest_slope(const OpSchema& op, const Storage& grad, const Dims& sizes,
                                      const std::vector<double>& scale, bool exact);
/// Linear, bilinear or trilinear, by the number of dimensions.
// kernel: upsample_linear (internal)
TP_API Storage upsample_linear(const OpSchema& op, const Storage& input, const Dims& size,
                               const std::vector<double>& scale, bool align_corners);
// kernel: upsample_linear_slope (internal)
TP_API Storage upsample_linear_slope(const OpSchema& op, const Storage& grad, const Dims& sizes,
                                     const std::vector<double>& scale, bool align_corners);
/// Cubic convolution with a = -0.75, over two dimensions.
// kernel: upsample_bicubic (internal)
TP_API Storage upsample_bicubic(const OpSchema& op, const Storage& input, const Dims& size,
                                const std::vector<double>& scale, bool align_corners);
// kernel: upsample_bicubic_slope (internal)
TP_API Storage upsample_bicubic_slope(const OpSchema& op, const Storage& grad, const Dims& sizes,
                                      const std::vector<double>& scale, bool align_corners);

/// [..., places, dimensions]: where the first of `width` neighbours along each dimension lies; out[..., places, neighbours]
/// are their positions among the elements of `space`, -1 for those outside. padding: 0 zeros, 1 border, 2 reflection.
// kernel: grid_neighbours
TP_API Storage grid_neighbours(const OpSchema& op, const Storage& low, const Dims& space, std::int64_t width,
                               std::int64_t padding, bool align_corners);

/// out[..., c, p] = the sum over k of weights[..., p, k] * input[..., c, index[..., p, k]], where index -1 reads a zero;
/// leading dimensions broadcast.
// kernel: weighted_picks
TP_API Storage weighted_picks(const OpSchema& op, const Storage& input, const Storage& index, const Storage& weights);

/// [size, length]: the matrix that resamples a line by a triangle or a cubic, widened where the size shrinks; float64.
// kernel: filter_rows
TP_API Storage filter_rows(const OpSchema& op, std::int64_t length, std::int64_t size, const std::vector<double>& scale,
                           std::int64_t dim, bool cubic, bool align_corners);

}  // namespace tp::kernels
