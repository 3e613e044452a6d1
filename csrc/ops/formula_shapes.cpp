// Arithmetic of sizes and dimension lists that formulas use. Knows no memory.
#include "core/errors.h"
#include "ops/formula.h"

namespace tp::ops {

Dims negative(const Dims& dims) {
  Dims out = dims;
  for (std::int64_t& d : out) d = -d;
  return out;
}

Dims dims_of(std::optional<std::int64_t> dim) { return dim ? Dims{*dim} : Dims(); }

Shape flatten_shape(const Shape& sizes, std::int64_t start, std::int64_t end) {
  const int n = sizes.size();
  if (n == 0) return {1};
  const int a = normal_dim("flatten", start, n), b = normal_dim("flatten", end, n);
  if (a > b) runtime_error("flatten: start_dim ", start, " comes after end_dim ", end);
  Shape out;
  for (int i = 0; i < a; ++i) out.push_back(sizes[i]);
  std::int64_t merged = 1;
  for (int i = a; i <= b; ++i) merged *= sizes[i];
  out.push_back(merged);
  for (int i = b + 1; i < n; ++i) out.push_back(sizes[i]);
  return out;
}

Shape tile_shape(const Shape& sizes, const Dims& repeats) {
  const int lead = repeats.size() - sizes.size();
  Shape out;
  for (int i = 0; i < repeats.size(); ++i) {
    out.push_back(repeats[i]);
    out.push_back(i < lead ? 1 : sizes[i - lead]);
  }
  return out;
}

Dims tile_dims(const Shape& sizes, const Dims& repeats) {
  const int lead = repeats.size() - sizes.size();
  Dims out;
  for (int i = 0; i < repeats.size(); ++i) {
    out.push_back(2 * i);
    if (i < lead) out.push_back(2 * i + 1);
  }
  return out;
}

Dims trailing_pads(const Shape& small, const Shape& large) {
  Dims pads;
  for (int i = small.size() - 1; i >= 0; --i) {
    pads.push_back(0);
    pads.push_back(large[i] - small[i]);
  }
  return pads;
}

Shape along_shape(const Shape& sizes, const Shape& other, std::int64_t dim) {
  const int n = sizes.size();
  if (other.size() != n)
    runtime_error("take_along_dim: input has ", n, " dimensions and indices has ", other.size(),
                  "; they must be equal");
  const int at = normal_dim("take_along_dim", dim, n);
  Shape out = sizes;
  for (int i = 0; i < n; ++i) {
    if (i == at || sizes[i] == other[i] || other[i] == 1) continue;
    if (sizes[i] != 1)
      runtime_error("take_along_dim: sizes ", sizes, " and ", other, " do not broadcast in dimension ", i);
    out[i] = other[i];
  }
  return out;
}

Shape class_shape(const Shape& sizes) {
  Shape out(sizes.size(), 1);
  if (sizes.size()) out[int(class_dim(sizes))] = sizes[int(class_dim(sizes))];
  return out;
}

Dims last_dims(std::int64_t n) {
  Dims out;
  for (std::int64_t i = -n; i < 0; ++i) out.push_back(i);
  return out;
}

Dims other_dims(std::int64_t n) {
  Dims out;
  for (std::int64_t i = 0; i < n; ++i)
    if (i != 1) out.push_back(i);
  return out;
}

Shape channel_sizes(std::int64_t channels, std::int64_t n) {
  Shape out(int(n) + 1, 1);
  out[0] = channels;
  return out;
}

int reduction_code(std::string_view reduction) {
  if (reduction == "none") return 0;
  if (reduction == "mean") return 1;
  if (reduction == "sum") return 2;
  value_error("reduction: expected 'none', 'mean' or 'sum', got '", reduction, "'");
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const int lead = longer.size() - shorter.size();
  for (int i = 0; i < shorter.size(); ++i) {
    const std::int64_t s = shorter[i];
    if (s == 1 || s == out[lead + i]) continue;
    if (out[lead + i] != 1) value_error("sizes ", a, " and ", b, " do not broadcast together");
    out[lead + i] = s;
  }
  return out;
}

}  // namespace tp::ops
