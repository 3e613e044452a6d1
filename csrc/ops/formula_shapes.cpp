// Arithmetic of sizes and dimension lists that formulas use. Knows no memory.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/errors.h"
#include "ops/formula.h"

namespace tp::ops {

Dims negative(const Dims& dims) {
  Dims out = dims;
  for (std::int64_t& d : out) d = -d;
  return out;
}

Dims dims_of(std::optional<std::int64_t> dim) { return dim ? Dims{*dim} : Dims(); }

namespace {
Dims part(const Dims& sizes, std::int64_t from, std::int64_t to) {
  const std::int64_t n = sizes.size();
  Dims out;
  for (std::int64_t i = std::max<std::int64_t>(from, 0); i < std::min(to, n); ++i) out.push_back(sizes[int(i)]);
  return out;
}
}  // namespace

Shape flatten_shape(const Shape& sizes, std::int64_t start, std::int64_t end) {
  const int n = sizes.size();
  if (n == 0) return {1};
  const int a = normal_dim("flatten", start, n), b = normal_dim("flatten", end, n);
  if (a > b) runtime_error("flatten: start_dim ", start, " comes after end_dim ", end);
  return joined(joined(part(sizes, 0, a), {product_of(part(sizes, a, b + 1))}), part(sizes, b + 1, n));
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
  std::int64_t* place = out.end() - shorter.size();
  for (const std::int64_t s : shorter) {
    std::int64_t& size = *place++;
    if (s == 1 || s == size) continue;
    if (size != 1) value_error("sizes ", a, " and ", b, " do not broadcast together");
    size = s;
  }
  return out;
}

Dims fft_dims(const std::optional<Dims>& dim, const std::optional<Dims>& s, std::int64_t n) {
  if (dim) return *dim;
  Dims out;
  for (std::int64_t d = s && s->size() ? n - s->size() : 0; d < n; ++d) out.push_back(d);
  return out;
}
Dims fft_sizes(const Shape& sizes, const Dims& dim, const std::optional<Dims>& s) {
  Dims out;
  for (int i = 0; i < dim.size(); ++i) {
    const bool given = s && i < s->size() && (*s)[i] != -1;
    if (!given && sizes.size() == 0) index_error("dimension ", dim[i], " is out of range for 0 dimensions");
    out.push_back(given ? (*s)[i] : sizes[int(wrap_dim(dim[i], sizes.size()))]);
  }
  return out;
}
std::string_view flip_norm(std::optional<std::string_view> norm) {
  if (norm == "ortho") return "ortho";
  return norm == "forward" ? "backward" : "forward";
}
Dims halves(const Dims& sizes) {
  Dims out = sizes;
  for (std::int64_t& n : out) n /= 2;
  return out;
}

Dims first_sizes(const Dims& sizes, std::int64_t n) { return part(sizes, 0, n < 0 ? sizes.size() + n : n); }
Dims last_sizes(const Dims& sizes, std::int64_t n) { return part(sizes, n < 0 ? sizes.size() + n : n, sizes.size()); }
std::int64_t product_of(const Dims& sizes) {
  std::int64_t out = 1;
  for (const std::int64_t n : sizes) out *= n;
  return out;
}
Dims joined(const Dims& a, const Dims& b) {
  Dims out = a;
  for (const std::int64_t d : b) out.push_back(d);
  return out;
}
Dims without_dims(std::int64_t n, const std::optional<Dims>& dim) {
  Dims out;
  for (std::int64_t i = 0; i < n; ++i) {
    bool gone = false;
    for (const std::int64_t d : dim.value_or(Dims())) gone |= (d < 0 ? d + n : d) == i;
    if (!gone) out.push_back(i);
  }
  return out;
}

std::int64_t first_of_size(const Dims& sizes, std::int64_t n) {
  return std::find(sizes.begin(), sizes.end(), n) - sizes.begin();
}
bool within_sizes(const Dims& sizes, std::int64_t least) {
  return std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t n) { return n >= least; });
}
std::int64_t wrap_dim(std::int64_t dim, std::int64_t n) {
  const std::int64_t most = std::max<std::int64_t>(n, 1);
  if (dim < -most || dim >= most) index_error("dimension ", dim, " is out of range for ", n, " dimensions");
  return dim < 0 ? dim + most : dim;
}
Dims per_dim(const Dims& given, std::int64_t n) {
  if (given.size() == n) return given;
  if (given.size() != 1) value_error(given, " has ", given.size(), " numbers for ", n, " dimensions");
  return Dims(int(n), given[0]);
}
Dims starts(const Dims& lengths) {
  Dims out{0};
  for (const std::int64_t n : lengths) out.push_back(out[out.size() - 1] + n);
  return out;
}
Dims kept_sizes(const Dims& given, const Dims& sizes) {
  Dims out = per_dim(given, sizes.size());
  std::transform(out.begin(), out.end(), sizes.begin(), out.begin(),
                 [](std::int64_t n, std::int64_t own) { return n == kOwnSize ? own : n; });
  return out;
}
Dims resized(const Dims& sizes, const std::optional<Dims>& size, const std::optional<std::vector<double>>& scale) {
  const int n = sizes.size();
  Dims out;
  if (size) {
    out = size->size() == 1 ? per_dim(*size, n) : *size;
  } else if (scale) {
    if (scale->size() != 1 && int(scale->size()) != n)
      value_error(scale->size(), " factors for ", n, " dimensions of space");
    for (int i = 0; i < n; ++i)
      out.push_back(std::int64_t(std::floor(double(sizes[i]) * (*scale)[scale->size() == 1 ? 0 : std::size_t(i)])));
  }
  if (out.size() != n || !within_sizes(out, 1))
    value_error("sizes ", out, " for ", n, " dimensions of space; every one must be positive");
  return out;
}
std::vector<double> kept_scales(std::int64_t n, const std::optional<std::vector<double>>& scale, bool recompute) {
  if (!scale || recompute) return {};
  return scale->size() == 1 ? std::vector<double>(std::size_t(n), (*scale)[0]) : *scale;
}
Dims unpool_sizes(const Dims& natural, const Dims& step, const std::optional<Dims>& wanted) {
  const Dims out = last_sizes(*wanted, -natural.size());
  if (out.size() != natural.size())
    value_error("output_size=", *wanted, " names fewer than ", natural.size(), " sizes");
  const std::int64_t *n = natural.begin(), *s = step.begin();
  for (const std::int64_t size : out) {
    const std::int64_t low = *n - *s, high = *n++ + *s++;
    if (size <= low || size >= high)
      value_error("output_size=", *wanted, ": ", size, " is not between ", low, " and ", high);
  }
  return out;
}
double largest_of(Dtype dtype) {
  switch (real_dtype(dtype)) {
    case Dtype::F16: return 65504;
    case Dtype::BF16: return 0x1.FEp127;
    case Dtype::F32: return std::numeric_limits<float>::max();
    case Dtype::F64: return std::numeric_limits<double>::max();
    default: return 0;
  }
}
std::int64_t whole_limit(Dtype dtype) {
  switch (dtype) {
    case Dtype::Bool: return 2;
    case Dtype::U8: return 0xFF;
    case Dtype::I8: return 0x7F;
    case Dtype::I16: return 0x7FFF;
    case Dtype::U16: return 0xFFFF;
    case Dtype::I32: return 0x7FFFFFFF;
    case Dtype::U32: return 0xFFFFFFFF;
    case Dtype::F16: return 1 << 11;
    case Dtype::BF16: return 1 << 8;
    case Dtype::F32: return 1 << 24;
    case Dtype::F64: return std::int64_t(1) << 53;
    default: return INT64_MAX;
  }
}

double epsilon(Dtype dtype) {
  switch (real_dtype(dtype)) {
    case Dtype::F16: return 0x1p-10;
    case Dtype::BF16: return 0x1p-7;
    case Dtype::F32: return 0x1p-23;
    default: return 0x1p-52;
  }
}

}  // namespace tp::ops
