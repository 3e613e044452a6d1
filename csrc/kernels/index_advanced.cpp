// Advanced indexing: several index tensors at once, bool masks, and writing or adding through them.
#include <cstring>
#include <vector>

#include "core/modes.h"
#include "core/parallel_for.h"
#include "kernels/elementwise.h"
#include "kernels/index.h"
#include "kernels/index_support.h"
#include "kernels/views.h"

namespace tp::kernels {
namespace {

/// Where the elements an index names lie, and the shape of what it picks.
struct Plan {
  std::vector<std::int64_t> offsets;  // of each place of the broadcast index, in elements of the indexed tensor
  Dims rest_sizes, rest_strides;      // the dimensions that are kept
  Dims rest_out;                      // their strides in the contiguous result
  std::int64_t index_step = 1;        // stride of the flattened index in the result
  Shape result;
};

/// One entry for each dimension; a mask becomes as many vectors as it has dimensions.
std::vector<Storage> by_dimension(const OpSchema& op, const Storage& input, std::span<const Storage> indices) {
  std::vector<Storage> out;
  for (const Storage& i : indices) {
    if (!i.defined()) {
      out.emplace_back();
      continue;
    }
    if (i.dtype() != Dtype::Bool) {
      out.push_back(index64(op, "an index", i));
      continue;
    }
    for (int k = 0; k < i.dim(); ++k) {
      const int d = int(out.size()) + k;
      if (d >= input.dim() || i.size(k) != input.size(d))
        index_error(op.name, ": the mask of sizes ", i.sizes(), " does not match input of sizes ", input.sizes(), " at dimension ", d);
    }
    const Storage places = nonzero(op, i);
    for (int k = 0; k < i.dim(); ++k) out.push_back(contiguous(select(op, places, 1, k)));
  }
  if (int(out.size()) > input.dim())
    index_error(op.name, ": too many indices: ", out.size(), " for a tensor of ", input.dim(), " dimensions");
  out.resize(std::size_t(input.dim()));
  return out;
}

Plan make_plan(const OpSchema& op, const Storage& input, std::span<const Storage> indices) {
  const std::vector<Storage> at = by_dimension(op, input, indices);
  std::vector<const Storage*> given;
  int first = -1, last = -1;
  for (int d = 0; d < input.dim(); ++d)
    if (at[std::size_t(d)].defined()) {
      given.push_back(&at[std::size_t(d)]);
      if (first < 0) first = d;
      last = d;
    }
  Plan plan;
  Shape shape;
  if (!given.empty()) {
    try {
      shape = broadcast_shapes(op.name, given);
    } catch (const Error&) {
      std::ostringstream sizes;
      for (const Storage* g : given) sizes << (g == given[0] ? "" : ", ") << g->sizes();
      index_error(op.name, ": the index tensors could not be broadcast together: ", sizes.str());
    }
  }
  const std::int64_t places = product(shape);
  plan.offsets.assign(std::size_t(places), 0);
  for (int d = 0; d < input.dim(); ++d) {
    const Storage& one = at[std::size_t(d)];
    if (!one.defined()) continue;
    const Storage wide = contiguous(expand(op, one, shape));
    const std::int64_t* p = wide.data<std::int64_t>();
    const std::int64_t size = input.size(d), stride = input.stride(d);
    for (std::int64_t i = 0; i < places; ++i) {
      const std::int64_t v = p[i];
      if (TP_UNLIKELY(v < -size || v >= size))
        index_error(op.name, ": index ", v, " is out of range for dimension ", d, " with size ", size);
      plan.offsets[std::size_t(i)] += (v < 0 ? v + size : v) * stride;
    }
  }
  // Adjacent index tensors put their dimensions where they stood; otherwise these come first (as in NumPy).
  bool adjacent = true;
  for (int d = first; d >= 0 && d <= last; ++d) adjacent &= at[std::size_t(d)].defined();
  const int front = given.empty() ? 0 : adjacent ? first : 0;
  Dims rest;
  for (int d = 0; d < input.dim(); ++d)
    if (!at[std::size_t(d)].defined()) rest.push_back(d);
  for (int i = 0; i < front; ++i) plan.result.push_back(input.size(int(rest[i])));
  for (std::int64_t v : shape) plan.result.push_back(v);
  for (int i = front; i < rest.size(); ++i) plan.result.push_back(input.size(int(rest[i])));
  const Strides out = contiguous_strides(plan.result);
  plan.index_step = 1;
  for (int i = front; i < rest.size(); ++i) plan.index_step *= input.size(int(rest[i]));
  for (int i = 0; i < rest.size(); ++i) {
    plan.rest_sizes.push_back(input.size(int(rest[i])));
    plan.rest_strides.push_back(input.stride(int(rest[i])));
    plan.rest_out.push_back(out[i < front ? i : i + shape.size()]);
  }
  if (plan.rest_sizes.empty()) {
    plan.rest_sizes.push_back(1);
    plan.rest_strides.push_back(1);
    plan.rest_out.push_back(1);
  }
  return plan;
}

/// f(offset in the indexed tensor, offset in the result, n, strides) for each run along the last kept dimension.
template <class F>
void for_runs(const Plan& plan, std::int64_t begin, std::int64_t end, const F& f) {
  const int last = plan.rest_sizes.size() - 1;
  const std::int64_t n = plan.rest_sizes[last];
  const std::int64_t rows = n ? product(plan.rest_sizes) / n : 0;
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t rest = r, a = plan.offsets[std::size_t(i)], b = i * plan.index_step;
      for (int d = last - 1; d >= 0; --d) {
        const std::int64_t at = rest % plan.rest_sizes[d];
        rest /= plan.rest_sizes[d];
        a += at * plan.rest_strides[d];
        b += at * plan.rest_out[d];
      }
      f(a, b, n, plan.rest_strides[last], plan.rest_out[last]);
    }
}

void put(const OpSchema& op, Storage& target, std::span<const Storage> indices, const Storage& values, bool accumulate) {
  const Plan plan = make_plan(op, target, indices);
  Storage given = cast(values, target.dtype());
  Storage wide;
  try {
    wide = contiguous(expand(op, given, plan.result));
  } catch (const Error&) {
    runtime_error(op.name, ": values of sizes ", values.sizes(), " cannot be broadcast to the indexed sizes ", plan.result);
  }
  const std::int64_t places = std::int64_t(plan.offsets.size());
  if (wide.numel() == 0) return;
  if (!accumulate) {
    by_item_size(target.dtype(), [&](auto word) {
      using W = decltype(word);
      W* to = target.data<W>();
      const W* from = wide.data<W>();
      for_runs(plan, 0, places, [&](std::int64_t a, std::int64_t b, std::int64_t n, std::int64_t sa, std::int64_t sb) {
        for (std::int64_t j = 0; j < n; ++j) to[a + j * sa] = from[b + j * sb];
      });
    });
    return;
  }
  by_compute_type(target.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = target.data<T>();
    const T* from = wide.data<T>();
    for_runs(plan, 0, places, [&](std::int64_t a, std::int64_t b, std::int64_t n, std::int64_t sa, std::int64_t sb) {
      for (std::int64_t j = 0; j < n; ++j) add_to(to[a + j * sa], from[b + j * sb]);
    });
  });
}

bool native(Dtype d) { return dtype_of(compute_type(d)) == d; }

}  // namespace

Storage index(const OpSchema& op, const Storage& input, std::span<const Storage> indices) {
  const Plan plan = make_plan(op, input, indices);
  Storage out = empty(plan.result, input.dtype());
  if (out.numel() == 0) return out;
  const std::int64_t places = std::int64_t(plan.offsets.size());
  const modes::Unlocked unlocked(out.numel() > 65536);
  by_item_size(input.dtype(), [&](auto word) {
    using W = decltype(word);
    const W* from = input.data<W>();
    W* to = out.data<W>();
    const std::int64_t each = std::max<std::int64_t>(1, out.numel() / places);
    parallel_for(0, places, std::max<std::int64_t>(1, 16384 / each), [&](std::int64_t begin, std::int64_t end) {
      for_runs(plan, begin, end, [&](std::int64_t a, std::int64_t b, std::int64_t n, std::int64_t sa, std::int64_t sb) {
        if (sa == 1 && sb == 1 && n > 4)
          std::memcpy(to + b, from + a, std::size_t(n) * sizeof(W));
        else
          for (std::int64_t j = 0; j < n; ++j) to[b + j * sb] = from[a + j * sa];
      });
    });
  });
  return out;
}

void index_put_(const OpSchema& op, Storage& self, std::span<const Storage> indices, const Storage& values, bool accumulate) {
  if (accumulate && !native(self.dtype())) {  // 16-bit sums are formed in float32
    const Storage sum = index_put(op, self, indices, values, true);
    copy_into(self, sum);
    return;
  }
  put(op, self, indices, values, accumulate);
}

Storage index_put(const OpSchema& op, const Storage& input, std::span<const Storage> indices, const Storage& values,
                  bool accumulate) {
  if (accumulate) {
    Storage out = accumulator(input);
    put(op, out, indices, values, true);
    return cast(out, input.dtype());
  }
  Storage out = empty(input.sizes(), input.dtype());
  copy_into(out, input);
  put(op, out, indices, values, false);
  return out;
}

}  // namespace tp::kernels
