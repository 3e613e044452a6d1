// The checked arguments of a convolution, and its three products on staged memory. Internal to the convolution kernels.
#pragma once
#include "core/op_schema.h"
#include "core/storage.h"
#include "kernels/conv_table.h"

namespace tp::kernels {

struct ConvPlan {
  ConvGeometry g;
  std::int64_t batch, groups, in_channels, out_channels;  // channels of one group
  int spatial;
  bool batched;  // the input has a batch dimension

  std::int64_t depth() const { return in_channels * g.taps(); }  // inner size of the product
  Shape input_sizes() const;
  Shape output_sizes() const;
  Shape weight_sizes() const;
};

/// One value per spatial dimension; `least` is the smallest allowed.
Dims conv_list(const OpSchema& op, const char* name, const Dims& v, int spatial, std::int64_t least);

/// Input and weight by their sizes; `output`: the sizes when they are given (gradients), else null.
ConvPlan make_conv_plan(const OpSchema& op, const Shape& input, const Shape& weight, const Dims& stride,
                        const Dims& padding, const Dims& dilation, std::int64_t groups, const Shape* output);

/// Contiguous operands of one compute dtype. bias may be undefined.
Storage conv_forward(const ConvPlan& p, const Storage& input, const Storage& weight, const Storage& bias);
Storage conv_input_slope(const ConvPlan& p, const Storage& grad, const Storage& weight);
Storage conv_weight_slope(const ConvPlan& p, const Storage& grad, const Storage& input);

const ConvTable& conv_loops();
/// Adds columns back to planes, of any compute dtype.
template <class T>
void col2im(const ConvGeometry& g, const ConvTile& tile, std::int64_t channels, const T* col, T* x);

}  // namespace tp::kernels
