// The table of convolution without columns: an output position is an address, a tap an offset from it. Knows no Storage
// and no threads.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

/// A run of a tile's positions that are outputs: `count` from `start` on go to out + at.
struct ConvRun {
  std::int32_t start, count;
  std::int64_t at;
};

/// `width` positions (the table's tile) of all output channels. Row k of the right factor starts at b + offsets[k].
template <class T>
struct ConvPositions {
  std::int64_t channels, depth;
  const T* filters;  // packed: blocks of filter_rows channels, [depth][filter_rows] each, zeros behind the last channel
  const T* b;
  const std::int64_t* offsets;
  const ConvRun* runs;
  int num_runs;
  T* out;  // channel c at out + c * out_plane
  std::int64_t out_plane;
  const T* bias;  // or null
};

/// Slopes of filters: filter[m][k] (+)= sum over images and positions of g[m] * x[offsets[k]].
template <class T>
struct ConvTaps {
  std::int64_t images, positions;  // positions: a multiple of the table's lanes; g is 0 where there is no output
  const T* g;
  std::int64_t g_row, g_image;
  const T* x;
  std::int64_t x_image;
  const std::int64_t* offsets;
  std::int64_t channels, depth;  // rows and columns of this piece
  T* filter;
  std::int64_t filter_row;
  bool add;
};

template <class T>
struct DirectLoops {
  int filter_rows, width, lanes;
  void (*positions)(const ConvPositions<T>& p);
  void (*taps)(const ConvTaps<T>& t);
};
struct ConvDirectTable {
  DirectLoops<float> f32;
  DirectLoops<double> f64;
};
TP_DECLARE_TABLE(ConvDirectTable, conv_direct_table)

}  // namespace tp
