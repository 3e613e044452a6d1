// Arguments of convolutions: checks, promotion, padding by name, and the ops in terms of three products.
#include "kernels/conv.h"

#include <algorithm>

#include "core/errors.h"
#include "core/modes.h"
#include "kernels/conv_plan.h"
#include "kernels/gemm.h"
#include "kernels/scratch.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

using std::int64_t;

Dtype conv_dtype(const OpSchema& op, std::initializer_list<const Storage*> operands) {
  Promotion p;
  for (const Storage* s : operands)
    if (s->defined()) p.add(s->dtype(), s->dim() == 0, s->wrapped_number());
  const Dtype d = p.result();
  if (TP_UNLIKELY(d == Dtype::Bool))
    type_error(op.name, ": not defined for bool; convert the inputs to a number dtype");
  return d;
}
Storage staged(const Storage& s, Dtype work) { return s.defined() ? contiguous(cast(s, work)) : s; }
Storage finish(Storage s, Dtype d) { return s.dtype() == d ? s : cast(s, d); }
Dtype work_of(Dtype d) { return dtype_of(compute_type(d)); }

/// The dimensions an op's name asks for (conv2d: 2), or 0.
int named_spatial(const OpSchema& op) {
  const auto at = op.name.find("d", op.name.size() > 1 ? 1 : 0);
  for (std::size_t i = at; i != std::string_view::npos; i = op.name.find('d', i + 1))
    if (op.name[i - 1] >= '1' && op.name[i - 1] <= '3') return op.name[i - 1] - '0';
  return 0;
}

void add_bias(const ConvPlan& p, Storage& out, const Storage& bias) {
  // Only transposed convolutions come here: [N, C, plane] of out are the plan's input.
  const Storage b = bias;
  const int64_t channels = p.groups * p.in_channels, plane = p.g.in_plane();
  const auto add = [&]<class T>(T) {
    T* to = out.data<T>();
    const T* from = b.data<T>();
    for (int64_t i = 0; i < p.batch * channels; ++i)
      for (int64_t j = 0; j < plane; ++j) to[i * plane + j] = to[i * plane + j] + from[i % channels];
  };
  switch (out.dtype()) {
    case Dtype::F32: return add(float());
    case Dtype::F64: return add(double());
    case Dtype::C64: return add(c64());
    case Dtype::C128: return add(c128());
    case Dtype::I32: return add(std::int32_t());
    default: return add(int64_t());
  }
}

void check_bias(const OpSchema& op, const Storage& bias, int64_t channels) {
  if (TP_UNLIKELY(bias.defined() && (bias.dim() != 1 || bias.size(0) != channels)))
    value_error(op.name, ": bias must have sizes [", channels, "]; it is ", bias.sizes());
}

Storage run_forward(const OpSchema& op, const ConvPlan& p, const Storage& input, const Storage& weight,
                    const Storage& bias) {
  check_bias(op, bias, p.groups * p.out_channels);
  const Dtype d = conv_dtype(op, {&input, &weight, &bias}), work = work_of(d);
  return finish(conv_forward(p, staged(input, work), staged(weight, work), staged(bias, work)), d);
}

}  // namespace

Shape ConvPlan::input_sizes() const {
  Shape s;
  if (batched) s.push_back(batch);
  s.push_back(groups * in_channels);
  for (int d = 3 - spatial; d < 3; ++d) s.push_back(g.in[d]);
  return s;
}
Shape ConvPlan::output_sizes() const {
  Shape s;
  if (batched) s.push_back(batch);
  s.push_back(groups * out_channels);
  for (int d = 3 - spatial; d < 3; ++d) s.push_back(g.out[d]);
  return s;
}
Shape ConvPlan::weight_sizes() const {
  Shape s{groups * out_channels, in_channels};
  for (int d = 3 - spatial; d < 3; ++d) s.push_back(g.kernel[d]);
  return s;
}

namespace {
constexpr int64_t kFarthest = int64_t(1) << 40;  // products of two sizes within it don't overflow
}

Dims conv_list(const OpSchema& op, const char* name, const Dims& v, int spatial, int64_t least) {
  if (TP_UNLIKELY(v.size() != 1 && v.size() != spatial))
    value_error(op.name, ": ", name, " must be one number or ", spatial, " numbers; it is ", v);
  for (int64_t x : v)
    if (TP_UNLIKELY(x < least || x > kFarthest))
      value_error(op.name, ": ", name, " must be at least ", least, " and at most ", kFarthest, "; it is ", v);
  return v.size() == spatial ? v : Dims(spatial, v[0]);
}

ConvPlan make_conv_plan(const OpSchema& op, const Shape& input, const Shape& weight, const Dims& stride,
                        const Dims& padding, const Dims& dilation, int64_t groups, const Shape* output) {
  ConvPlan p;
  const int spatial = weight.size() - 2, named = named_spatial(op);
  if (TP_UNLIKELY(spatial < 1 || spatial > 3 || (named && named != spatial)))
    value_error(op.name, ": weight must have ", named ? named + 2 : 3, named ? "" : " to 5", " dimensions; it is ",
                weight);
  if (TP_UNLIKELY(input.size() != spatial + 2 && input.size() != spatial + 1))
    value_error(op.name, ": input must have ", spatial + 2, " dimensions, or ", spatial + 1, " without a batch; it is ",
                input, " with weight ", weight);
  if (TP_UNLIKELY(groups < 1)) value_error(op.name, ": groups must be positive; it is ", groups);
  p.spatial = spatial;
  p.batched = input.size() == spatial + 2;
  p.batch = p.batched ? input[0] : 1;
  const int64_t channels = input[p.batched ? 1 : 0];
  if (TP_UNLIKELY(weight[0] % groups != 0 || weight[1] * groups != channels))
    value_error(op.name, ": channels do not match: input is ", input, ", weight is ", weight, ", groups is ", groups,
                "; weight must be [C_out, ", channels, " / groups, ...] with C_out a multiple of groups");
  p.groups = groups;
  p.in_channels = weight[1];
  p.out_channels = weight[0] / groups;
  const Dims s = conv_list(op, "stride", stride, spatial, 1), d = conv_list(op, "dilation", dilation, spatial, 1);
  const Dims pad = conv_list(op, "padding", padding, spatial, output ? -(int64_t(1) << 40) : 0);
  for (int i = 0; i < 3; ++i) {
    p.g.in[i] = p.g.out[i] = p.g.kernel[i] = p.g.stride[i] = p.g.dilation[i] = 1;
    p.g.padding[i] = 0;
  }
  for (int i = 0; i < spatial; ++i) {
    const int at = 3 - spatial + i;
    p.g.in[at] = input[input.size() - spatial + i];
    p.g.kernel[at] = weight[2 + i];
    p.g.stride[at] = s[i];
    p.g.dilation[at] = d[i];
    p.g.padding[at] = pad[i];
    const int64_t reach = d[i] * (weight[2 + i] - 1) + 1, room = p.g.in[at] + 2 * pad[i] - reach;
    if (TP_UNLIKELY(weight[2 + i] < 1)) value_error(op.name, ": the kernel is empty: weight is ", weight);
    if (output) {
      p.g.out[at] = (*output)[output->size() - spatial + i];
    } else {
      if (TP_UNLIKELY(room < 0))
        value_error(op.name, ": the kernel reaches over ", reach, " elements but the padded input has ",
                    p.g.in[at] + 2 * pad[i], ": input is ", input, ", weight is ", weight, ", padding is ", pad);
      p.g.out[at] = room / s[i] + 1;
    }
    // A step that is never made has any length: the shortest, for memory is laid out by it.
    if (p.g.out[at] == 1) p.g.stride[at] = 1;
    if (p.g.kernel[at] == 1) p.g.dilation[at] = 1;
  }
  return p;
}

Storage convolution(const OpSchema& op, const Storage& input, const Storage& weight, const Storage& bias,
                    const Dims& stride, const Dims& padding, const Dims& dilation, int64_t groups) {
  const ConvPlan p = make_conv_plan(op, input.sizes(), weight.sizes(), stride, padding, dilation, groups, nullptr);
  return run_forward(op, p, input, weight, bias);
}

Dims conv_mode_padding(const OpSchema& op, const Dims& weight_sizes, std::string_view padding, const Dims& dilation) {
  const int spatial = std::max(weight_sizes.size() - 2, 1);
  Dims pad(spatial, 0);
  if (padding == "valid") return pad;
  if (TP_UNLIKELY(padding != "same"))
    value_error(op.name, ": padding must be numbers, 'valid' or 'same'; it is '", padding, "'");
  const Dims d = conv_list(op, "dilation", dilation, spatial, 1);
  for (int i = 0; i < spatial && i + 2 < weight_sizes.size(); ++i) pad[i] = d[i] * (weight_sizes[i + 2] - 1) / 2;
  return pad;
}

Storage convolution_mode(const OpSchema& op, const Storage& input, const Storage& weight, const Storage& bias,
                         const Dims& stride, std::string_view padding, const Dims& dilation, int64_t groups) {
  const Dims pad = conv_mode_padding(op, weight.sizes(), padding, dilation);
  const bool same = padding == "same";
  if (same)
    for (int64_t s : stride)
      if (TP_UNLIKELY(s != 1)) value_error(op.name, ": padding 'same' needs stride 1; it is ", stride);
  const ConvPlan p =
      make_conv_plan(op, input.sizes(), weight.sizes(), stride, pad, dilation, groups, same ? &input.sizes() : nullptr);
  return run_forward(op, p, input, weight, bias);
}

Storage convolution_input_slope(const OpSchema& op, const Storage& grad, const Storage& weight, const Dims& sizes,
                                const Dims& stride, const Dims& padding, const Dims& dilation, int64_t groups) {
  const ConvPlan p = make_conv_plan(op, sizes, weight.sizes(), stride, padding, dilation, groups, &grad.sizes());
  if (TP_UNLIKELY(!(grad.sizes() == p.output_sizes())))
    value_error(op.name, ": grad must have sizes ", p.output_sizes(), "; it is ", grad.sizes());
  const Dtype d = conv_dtype(op, {&grad, &weight}), work = work_of(d);
  return finish(conv_input_slope(p, staged(grad, work), staged(weight, work)), d);
}

Storage convolution_weight_slope(const OpSchema& op, const Storage& grad, const Storage& input, const Dims& sizes,
                                 const Dims& stride, const Dims& padding, const Dims& dilation, int64_t groups) {
  const ConvPlan p = make_conv_plan(op, input.sizes(), sizes, stride, padding, dilation, groups, &grad.sizes());
  if (TP_UNLIKELY(!(grad.sizes() == p.output_sizes())))
    value_error(op.name, ": grad must have sizes ", p.output_sizes(), "; it is ", grad.sizes());
  const Dtype d = conv_dtype(op, {&grad, &input}), work = work_of(d);
  return finish(conv_weight_slope(p, staged(grad, work), staged(input, work)), d);
}

Storage convolution_mode_input_slope(const OpSchema& op, const Storage& grad, const Storage& weight, const Dims& sizes,
                                     const Dims& stride, std::string_view padding, const Dims& dilation,
                                     int64_t groups) {
  return convolution_input_slope(op, grad, weight, sizes, stride,
                                 conv_mode_padding(op, weight.sizes(), padding, dilation), dilation, groups);
}
Storage convolution_mode_weight_slope(const OpSchema& op, const Storage& grad, const Storage& input, const Dims& sizes,
                                      const Dims& stride, std::string_view padding, const Dims& dilation,
                                      int64_t groups) {
  return convolution_weight_slope(op, grad, input, sizes, stride, conv_mode_padding(op, sizes, padding, dilation),
                                  dilation, groups);
}

Storage conv_transpose(const OpSchema& op, const Storage& input, const Storage& weight, const Storage& bias,
                       const Dims& stride, const Dims& padding, const Dims& output_padding, int64_t groups,
                       const Dims& dilation) {
  const int spatial = weight.dim() - 2;
  if (TP_UNLIKELY(spatial < 1 || (input.dim() != spatial + 2 && input.dim() != spatial + 1)))
    value_error(op.name, ": input must be [N, C, ...] with as many dimensions as weight; input is ", input.sizes(),
                ", weight is ", weight.sizes());
  const bool batched = input.dim() == spatial + 2;
  const Dims s = conv_list(op, "stride", stride, spatial, 1), pad = conv_list(op, "padding", padding, spatial, 0);
  const Dims extra = conv_list(op, "output_padding", output_padding, spatial, 0);
  const Dims d = conv_list(op, "dilation", dilation, spatial, 1);
  if (TP_UNLIKELY(groups < 1)) value_error(op.name, ": groups must be positive; it is ", groups);
  if (TP_UNLIKELY(input.size(batched ? 1 : 0) != weight.size(0)))
    value_error(op.name, ": channels do not match: input is ", input.sizes(), ", weight is ", weight.sizes(),
                "; weight must be [", input.size(batched ? 1 : 0), ", C_out / groups, ...]");
  Shape sizes;
  if (batched) sizes.push_back(input.size(0));
  sizes.push_back(weight.size(1) * groups);
  for (int i = 0; i < spatial; ++i) {
    if (TP_UNLIKELY(extra[i] >= s[i] && extra[i] >= d[i]))
      value_error(op.name, ": output_padding must be smaller than stride or dilation; they are ", extra, ", ", s, ", ",
                  d);
    const int64_t n = (input.size(input.dim() - spatial + i) - 1) * s[i] - 2 * pad[i] +
        d[i] * (weight.size(2 + i) - 1) + extra[i] + 1;
    if (TP_UNLIKELY(n < 0)) value_error(op.name, ": the output would have size ", n, "; input is ", input.sizes());
    sizes.push_back(n);
  }
  // The gradient of the convolution that leads from the output to the input.
  const ConvPlan p = make_conv_plan(op, sizes, weight.sizes(), s, pad, d, groups, &input.sizes());
  check_bias(op, bias, groups * p.in_channels);
  const Dtype dt = conv_dtype(op, {&input, &weight, &bias}), work = work_of(dt);
  Storage out = conv_input_slope(p, staged(input, work), staged(weight, work));
  if (bias.defined() && out.numel() != 0) add_bias(p, out, staged(bias, work));
  return finish(out, dt);
}

namespace {
ConvPlan patch_plan(const OpSchema& op, const Shape& sizes, const Dims& kernel_size, const Dims& dilation,
                    const Dims& padding, const Dims& stride, int spatial) {
  const Dims k = conv_list(op, "kernel_size", kernel_size, spatial, 1);
  Shape weight{1, sizes[sizes.size() - spatial - 1]};
  for (int64_t v : k) weight.push_back(v);
  return make_conv_plan(op, sizes, weight, stride, padding, dilation, 1, nullptr);
}
}  // namespace

Storage patches(const OpSchema& op, const Storage& input, const Dims& kernel_size, const Dims& dilation,
                const Dims& padding, const Dims& stride) {
  if (TP_UNLIKELY(input.dim() != 3 && input.dim() != 4))
    value_error(op.name, ": input must be [N, C, H, W] or [C, H, W]; it is ", input.sizes());
  const ConvPlan p = patch_plan(op, input.sizes(), kernel_size, dilation, padding, stride, 2);
  const Storage x = contiguous(input);
  const int64_t rows = p.depth(), positions = p.g.out_plane();
  Storage out = empty(p.batched ? Shape{p.batch, rows, positions} : Shape{rows, positions}, input.dtype());
  if (out.numel() == 0) return out;
  const std::size_t item = item_size(input.dtype());
  const ConvTile all{0, p.g.lines(), 0, p.g.out[2]};
  if (TP_UNLIKELY(item < 4)) {
    // Patches are moved, not computed with: through a wider type and back.
    const Storage wide = cast(x, is_float(x.dtype()) ? Dtype::F32 : Dtype::I32);
    return cast(patches(op, wide, kernel_size, dilation, padding, stride), input.dtype());
  }
  parallel_tiles(p.batch, 1, [&](int64_t b, int64_t e) {
    for (int64_t n = b; n < e; ++n)
      conv_loops().im2col[item == 4       ? 0
                              : item == 8 ? 1
                                          : 2](p.g, all, p.in_channels,
                                               x.raw() + n * p.in_channels * p.g.in_plane() * int64_t(item),
                                               out.raw() + n * rows * positions * int64_t(item));
  });
  return out;
}

Storage fold_patches(const OpSchema& op, const Storage& input, const Dims& output_size, const Dims& kernel_size,
                     const Dims& dilation, const Dims& padding, const Dims& stride) {
  if (TP_UNLIKELY(input.dim() != 2 && input.dim() != 3))
    value_error(op.name, ": input must be [N, C * taps, positions] or [C * taps, positions]; it is ", input.sizes());
  const Dims size = conv_list(op, "output_size", output_size, 2, 1),
             k = conv_list(op, "kernel_size", kernel_size, 2, 1);
  const bool batched = input.dim() == 3;
  const int64_t rows = input.size(batched ? 1 : 0), taps = k[0] * k[1];
  if (TP_UNLIKELY(rows % taps != 0))
    value_error(op.name, ": input has ", rows, " rows, not a multiple of the ", taps, " elements of a patch");
  Shape sizes;
  if (batched) sizes.push_back(input.size(0));
  sizes.push_back(rows / taps);
  sizes.push_back(size[0]);
  sizes.push_back(size[1]);
  const ConvPlan p = patch_plan(op, sizes, k, dilation, padding, stride, 2);
  if (TP_UNLIKELY(input.size(input.dim() - 1) != p.g.out_plane()))
    value_error(op.name, ": input must have ", p.g.out_plane(), " positions for output_size ", size, "; it is ",
                input.sizes());
  const Dtype d = conv_dtype(op, {&input}), work = work_of(d);
  const Storage x = staged(input, work);
  Storage out = zeros_storage(sizes, work);
  const ConvTile all{0, p.g.lines(), 0, p.g.out[2]};
  const auto run = [&]<class T>(T) {
    parallel_tiles(p.batch, 1, [&](int64_t b, int64_t e) {
      for (int64_t n = b; n < e; ++n)
        col2im<T>(p.g, all, p.in_channels, x.data<T>() + n * rows * p.g.out_plane(),
                  out.data<T>() + n * p.in_channels * p.g.in_plane());
    });
  };
  switch (work) {
    case Dtype::F32: run(float()); break;
    case Dtype::F64: run(double()); break;
    case Dtype::C64: run(c64()); break;
    case Dtype::C128: run(c128()); break;
    case Dtype::I32: run(std::int32_t()); break;
    default: run(int64_t()); break;
  }
  return finish(out, d);
}

}  // namespace tp::kernels
