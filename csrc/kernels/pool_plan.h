// Planes of a pooling op: its leading dimensions and the geometry of one plane. Internal to the pooling kernels.
#pragma once
#include "core/op_schema.h"
#include "core/storage.h"
#include "kernels/conv_table.h"

namespace tp::kernels {

struct PoolPlan {
  ConvGeometry g;
  Shape lead;
  std::int64_t planes = 1;
  int dims;
  Shape output_sizes() const;
};

/// The dimensions the op's name says (avg_pool1d: 1).
int pooled_dims(const OpSchema& op);
/// Everything of a plan but the windows.
PoolPlan plane_plan(const OpSchema& op, const Shape& sizes, int dims);

}  // namespace tp::kernels
