// The reductions: result dtypes, complex input as pairs of reals, empty input; reduce_driver.cpp does the folding.
#include "kernels/reduce.h"

#include <cmath>
#include <limits>

#include "core/errors.h"
#include "kernels/reduce_driver.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

Storage fold(const FoldCall& call, const Storage& input, const Dims& dims, bool keepdim, Dtype out_dtype) {
  Storage out = empty(reduced_shape(input.sizes(), dims, keepdim), out_dtype);
  run_fold(call, input, dims, &out, nullptr);
  return out;
}

// Complex memory as reals with a last dimension of 2.
Storage as_pairs(const Storage& s) {
  Shape sizes = s.sizes();
  Strides strides = s.strides();
  for (std::int64_t& v : strides) v *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return Storage(s.block(), real_dtype(s.dtype()), std::move(sizes), std::move(strides), 2 * s.offset());
}
Storage from_pairs(const Storage& s, Dtype dtype) {
  Shape sizes = s.sizes();
  sizes.erase(sizes.size() - 1);
  return Storage(s.block(), dtype, std::move(sizes));
}

bool is_wide(const Storage& input, Dtype out) {
  return out == Dtype::F64 || input.dtype() == Dtype::F64 ||
      (is_integral(input.dtype()) && item_size(input.dtype()) >= 4);
}

enum class Total { Sum, NanSum, Mean };

Storage total(const Storage& given, const Dims& dims, bool keepdim, Dtype out, Total kind) {
  Storage input = given;
  if (is_complex(out)) {
    if (input.dtype() != out) input = cast(input, out);
    return from_pairs(total(as_pairs(input), dims, keepdim, real_dtype(out), kind), out);
  }
  if (is_complex(input.dtype())) input = cast(input, is_float(out) ? out : real_dtype(input.dtype()));
  FoldCall call{&folds->sum_i64};
  if (is_float(out)) {
    const bool wide = is_wide(input, out);
    call.kernel = kind == Total::Mean ? (wide ? &folds->mean_f64 : &folds->mean_f32)
        : wide                        ? &folds->sum_f64
                                      : &folds->sum_f32;
    if (kind == Total::NanSum) call.map = wide ? &folds->nan_to_zero_f64 : &folds->nan_to_zero_f32;
  }
  return fold(call, input, dims, keepdim, out);
}

Dtype sum_dtype(const Storage& input, std::optional<Dtype> dtype) {
  return dtype ? *dtype : is_integral(input.dtype()) ? Dtype::I64 : input.dtype();
}

void require_ordered(const OpSchema& op, const Storage& input) {
  if (TP_UNLIKELY(is_complex(input.dtype())))
    type_error(op.name, ": complex numbers have no order; input is ", dtype_name(input.dtype()));
}

void require_elements(const OpSchema& op, const Storage& input, const Dims& dims) {
  if (TP_LIKELY(input.numel() != 0)) return;
  for (std::int64_t d : dims)
    if (input.size(int(d)) == 0)
      index_error(op.name, ": dimension ", d, " of shape ", input.sizes(),
                  " has no elements, so there is no result to give");
}

Storage extreme(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim, const FoldKernel* kernels) {
  require_ordered(op, input);
  const Dims dims = wrap_dims(op.name, dim, input.dim());
  require_elements(op, input, dims);
  return fold({&kernels[int(compute_type(input.dtype()))]}, input, dims, keepdim, input.dtype());
}

Storage arg_extreme(const OpSchema& op, const Storage& input, std::optional<std::int64_t> dim, bool keepdim,
                    const FoldKernel* kernels) {
  require_ordered(op, input);
  Dims dims;
  if (dim)
    dims = wrap_dims(op.name, Dims{*dim}, input.dim());
  else
    dims = wrap_dims(op.name, std::nullopt, input.dim());
  require_elements(op, input, dims);
  Storage index = empty(reduced_shape(input.sizes(), dims, keepdim), Dtype::I64);
  FoldCall call{&kernels[int(compute_type(input.dtype()))]};
  call.ordered = true;
  run_fold(call, input, dims, nullptr, &index);
  return index;
}

std::array<Storage, 2> extreme_with_index(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim,
                                          const FoldKernel* kernels) {
  require_ordered(op, input);
  Dims dims;
  const int d = wrap_dim(op.name, dim, input.dim());
  if (input.dim()) dims.push_back(d);
  require_elements(op, input, dims);
  const Shape shape = reduced_shape(input.sizes(), dims, keepdim);
  Storage values = empty(shape, input.dtype()), index = empty(shape, Dtype::I64);
  FoldCall call{&kernels[int(compute_type(input.dtype()))]};
  call.ordered = true;
  run_fold(call, input, dims, &values, &index);
  return {std::move(values), std::move(index)};
}

Storage truth(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim, const FoldKernel& kernel,
              bool of_nothing) {
  const Dims dims = wrap_dims(op.name, dim, input.dim());
  if (input.numel() == 0) {
    Storage out = empty(reduced_shape(input.sizes(), dims, keepdim), Dtype::Bool);
    fill(out, Scalar(of_nothing));
    return out;
  }
  return fold({&kernel}, input, dims, keepdim, Dtype::Bool);
}

Storage spread(const OpSchema& op, const Storage& input, const std::optional<Dims>& dim, const Scalar& correction,
               bool keepdim, bool root) {
  if (TP_UNLIKELY(is_integral(input.dtype())))
    runtime_error(op.name, ": needs a floating-point or complex tensor, got ", dtype_name(input.dtype()));
  const Dims dims = wrap_dims(op.name, dim, input.dim());
  FoldCall call{};
  call.param = correction.to_double();
  if (is_complex(input.dtype())) {
    const bool wide = input.dtype() == Dtype::C128;
    call.kernel = wide ? &folds->var_f64 : &folds->var_f32;
    const Storage parts = fold(call, as_pairs(input), dims, keepdim, Dtype::F64);
    FoldCall join{root ? &folds->root_f64 : &folds->sum_f64};
    return fold(join, parts, Dims{parts.dim() - 1}, false, real_dtype(input.dtype()));
  }
  const bool wide = input.dtype() == Dtype::F64;
  call.kernel = root ? (wide ? &folds->std_f64 : &folds->std_f32) : wide ? &folds->var_f64 : &folds->var_f32;
  return fold(call, input, dims, keepdim, input.dtype());
}

}  // namespace

Storage sum(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim, std::optional<Dtype> dtype) {
  return total(input, wrap_dims(op.name, dim, input.dim()), keepdim, sum_dtype(input, dtype), Total::Sum);
}

Storage nansum(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim, std::optional<Dtype> dtype) {
  if (TP_UNLIKELY(is_complex(input.dtype()))) type_error(op.name, ": not defined for complex tensors");
  const Dims dims = wrap_dims(op.name, dim, input.dim());
  return total(input, dims, keepdim, sum_dtype(input, dtype), Total::NanSum);
}

Storage mean(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim, std::optional<Dtype> dtype) {
  const Dtype out = dtype.value_or(input.dtype());
  if (TP_UNLIKELY(is_integral(out)))
    runtime_error(op.name, ": needs a floating-point or complex dtype, got ", dtype_name(out),
                  "; pass dtype=float32 or convert the input first");
  return total(input, wrap_dims(op.name, dim, input.dim()), keepdim, out, Total::Mean);
}

Storage prod(const OpSchema& op, const Storage& input, std::optional<std::int64_t> dim, bool keepdim,
             std::optional<Dtype> dtype) {
  Dims dims;
  if (!dim)
    dims = wrap_dims(op.name, std::nullopt, input.dim());
  else if (const int d = wrap_dim(op.name, *dim, input.dim()); input.dim())
    dims.push_back(d);
  const Dtype out = sum_dtype(input, dtype);
  const FoldKernel* kernel = is_complex(out) ? &folds->prod_c128
      : is_integral(out)                     ? &folds->prod_i64
      : is_wide(input, out)                  ? &folds->prod_f64
                                             : &folds->prod_f32;
  return fold({kernel}, input, dims, keepdim, out);
}

Storage amax(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim) {
  return extreme(op, input, dim, keepdim, extremes->max);
}
Storage amin(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim) {
  return extreme(op, input, dim, keepdim, extremes->min);
}
Storage argmax(const OpSchema& op, const Storage& input, std::optional<std::int64_t> dim, bool keepdim) {
  return arg_extreme(op, input, dim, keepdim, extremes->argmax);
}
Storage argmin(const OpSchema& op, const Storage& input, std::optional<std::int64_t> dim, bool keepdim) {
  return arg_extreme(op, input, dim, keepdim, extremes->argmin);
}
std::array<Storage, 2> max_dim(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim) {
  return extreme_with_index(op, input, dim, keepdim, extremes->argmax);
}
std::array<Storage, 2> min_dim(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim) {
  return extreme_with_index(op, input, dim, keepdim, extremes->argmin);
}

Storage any(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim) {
  return truth(op, input, dim, keepdim, extremes->max[int(Compute::B8)], false);
}
Storage all(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim) {
  return truth(op, input, dim, keepdim, extremes->min[int(Compute::B8)], true);
}
Storage count_nonzero(const OpSchema& op, const Storage& input, const Dims& dim) {
  static constexpr Dtype kBool = Dtype::Bool;
  FoldCall call{&folds->sum_i64};
  call.via = &kBool;
  return fold(call, input, wrap_dims(op.name, dim, input.dim()), false, Dtype::I64);
}

Storage count_numbers(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim) {
  FoldCall call{&folds->sum_f64};
  call.map = &folds->is_number_f64;
  return fold(call, input, wrap_dims(op.name, dim, input.dim()), keepdim, Dtype::F64);
}

Storage var(const OpSchema& op, const Storage& input, const std::optional<Dims>& dim, const Scalar& correction,
            bool keepdim) {
  return spread(op, input, dim, correction, keepdim, false);
}
Storage std(const OpSchema& op, const Storage& input, const std::optional<Dims>& dim, const Scalar& correction,
            bool keepdim) {
  return spread(op, input, dim, correction, keepdim, true);
}

Storage logsumexp(const OpSchema& op, const Storage& input, const Dims& dim, bool keepdim) {
  if (TP_UNLIKELY(is_complex(input.dtype()))) type_error(op.name, ": not defined for complex tensors");
  const Dtype out = is_integral(input.dtype()) ? default_float() : input.dtype();
  const Dims dims = wrap_dims(op.name, dim, input.dim());
  return fold({is_wide(input, out) ? &folds->logsumexp_f64 : &folds->logsumexp_f32}, input, dims, keepdim, out);
}

Storage vector_norm(const OpSchema& op, const Storage& given, const Scalar& ord, const Dims& dim, bool keepdim,
                    std::optional<Dtype> dtype) {
  if (TP_UNLIKELY(is_integral(given.dtype()) && !dtype))
    runtime_error(op.name, ": needs a floating-point or complex tensor, got ", dtype_name(given.dtype()));
  if (TP_UNLIKELY(ord.is_complex())) type_error(op.name, ": ord must be a real number");
  Storage input = dtype ? cast(given, *dtype) : given;
  const Dims dims = wrap_dims(op.name, dim, input.dim());
  const Dtype out = real_dtype(input.dtype());
  const double p = ord.to_double();
  if (is_complex(input.dtype())) {
    if (p == 2) {
      const Storage pairs = as_pairs(input);
      Dims with_parts = dims;
      with_parts.push_back(input.dim());
      const FoldCall call{is_wide(pairs, out) ? &folds->norm_f64 : &folds->norm_f32};
      const Storage norm = fold(call, pairs, with_parts, false, out);
      return Storage(norm.block(), out, reduced_shape(input.sizes(), dims, keepdim));
    }
    // Magnitudes first: each is a fold over nothing.
    FoldCall magnitudes{&folds->sum_f64};
    magnitudes.map = &folds->abs_c128;
    input = fold(magnitudes, input, Dims{}, false, Dtype::F64);
  }
  if (p == 0) {
    static constexpr Dtype kBool = Dtype::Bool;
    FoldCall call{&folds->sum_i64};
    call.via = &kBool;
    return fold(call, input, dims, keepdim, out);
  }
  FoldCall call{};
  if (std::isinf(p)) {
    require_elements(op, input, dims);
    call.kernel = p > 0 ? &extremes->max[int(Compute::F64)] : &extremes->min[int(Compute::F64)];
    call.map = &folds->abs_f64;
  } else if (p == 1) {
    call.kernel = &folds->sum_f64;
    call.map = &folds->abs_f64;
  } else if (p == 2) {
    call.kernel = is_wide(input, out) ? &folds->norm_f64 : &folds->norm_f32;
  } else {
    call.kernel = &folds->power_f64;
    call.param = call.map_param = p;
    call.map = &folds->power_abs_f64;
  }
  return fold(call, input, dims, keepdim, out);
}

}  // namespace tp::kernels
