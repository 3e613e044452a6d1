// Convolution of real floats without columns: the input is laid out once, with its border, so that the inputs of
// neighbouring outputs under a tap are neighbours in memory, whatever the stride. Internal to the convolution kernels.
#pragma once
#include "kernels/conv_plan.h"

namespace tp::kernels {

/// Raw contiguous operands, all channels of all groups. T: float or double.
template <class T>
void direct_forward(const ConvPlan& p, const T* x, const T* w, const T* bias, T* out);
template <class T>
void direct_weight_slope(const ConvPlan& p, const T* grad, const T* x, T* gw);

}  // namespace tp::kernels
