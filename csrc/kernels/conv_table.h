// The geometry of a convolution on raw memory and the table of its loops. Knows no Storage and no threads.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

/// Depth, height, width; a convolution of fewer dimensions has ones in front. padding is what lies before the first
/// element; what lies behind the last follows from the output sizes.
struct ConvGeometry {
  std::int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

  std::int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t lines() const { return out[0] * out[1]; }
  /// One tap, no border: the columns are the input itself.
  bool pointwise() const {
    for (int i = 0; i < 3; ++i)
      if (kernel[i] != 1 || stride[i] != 1 || padding[i] != 0 || in[i] != out[i]) return false;
    return true;
  }
};

/// The part of the output a matrix of columns stands for: whole lines (rows of the output's last dimension), of them the
/// elements [first, first + width).
struct ConvTile {
  std::int64_t line, lines, first, width;
  std::int64_t size() const { return lines * width; }
};

struct ConvTable {
  /// col[channels * taps, tile.size()] from the planes of x; by item size 4, 8, 16.
  void (*im2col[3])(const ConvGeometry& g, const ConvTile& tile, std::int64_t channels, const void* x, void* col);
  /// Adds the columns back to the planes they came from.
  void (*col2im_f32)(const ConvGeometry& g, const ConvTile& tile, std::int64_t channels, const float* col, float* x);
  void (*col2im_f64)(const ConvGeometry& g, const ConvTile& tile, std::int64_t channels, const double* col, double* x);
  /// Slopes of one plane from those of its output under one filter: x += filter^T * slope.
  void (*plane_back_f32)(const ConvGeometry& g, const float* slope, const float* filter, float* x);
  void (*plane_back_f64)(const ConvGeometry& g, const double* slope, const double* filter, double* x);
};
TP_DECLARE_TABLE(ConvTable, conv_table)

}  // namespace tp
