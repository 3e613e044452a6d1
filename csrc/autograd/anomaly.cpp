// Anomaly mode: nan checks of gradients and the place where a node's forward ran.
#include <cmath>

#include "autograd/pass.h"
#include "core/half.h"

namespace tp {

bool anomaly_check_nan = true;
std::string (*forward_location)() = nullptr;

namespace {

template <class T, class IsNan>
bool scan(const Storage& s, IsNan is_nan) {
  const int n = s.dim();
  Dims at(std::span<const std::int64_t>{});
  at.resize(n);
  std::fill(at.begin(), at.end(), 0);
  const T* base = s.data<T>();
  std::int64_t offset = 0;
  for (std::int64_t k = 0; k < s.numel(); ++k) {
    if (is_nan(base[offset])) return true;
    for (int d = n - 1; d >= 0; --d) {
      offset += s.stride(d);
      if (++at[d] < s.size(d)) break;
      offset -= s.stride(d) * s.size(d);
      at[d] = 0;
    }
  }
  return false;
}

struct Pair32 {
  float re, im;
};
struct Pair64 {
  double re, im;
};

bool has_nan(const Storage& s) {
  switch (s.dtype()) {
    case Dtype::F32: return scan<float>(s, [](float v) { return std::isnan(v); });
    case Dtype::F64: return scan<double>(s, [](double v) { return std::isnan(v); });
    case Dtype::F16: return scan<std::uint16_t>(s, [](std::uint16_t v) { return (v & 0x7fff) > 0x7c00; });
    case Dtype::BF16: return scan<std::uint16_t>(s, [](std::uint16_t v) { return (v & 0x7fff) > 0x7f80; });
    case Dtype::C64: return scan<Pair32>(s, [](Pair32 v) { return std::isnan(v.re) || std::isnan(v.im); });
    case Dtype::C128: return scan<Pair64>(s, [](Pair64 v) { return std::isnan(v.re) || std::isnan(v.im); });
    default: return false;
  }
}

}  // namespace

void check_nan(const Node& n, std::span<const GradSlot> grads) {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    const Storage& s = grads[i].tensor ? grads[i].tensor->storage() : grads[i].value;
    if (has_nan(s)) runtime_error("Function '", n.name(), "' returned nan values in its ", i, "th output.");
  }
}

void warn_anomaly(const Node& n) {
  std::string where = n.meta() ? n.meta()->anomaly : std::string();
  if (where.empty()) where = "(no forward was recorded: run it inside detect_anomaly() too)";
  modes::warn(
      ("Error detected in " + n.name() + ". Traceback of forward call that caused the error:\n" + where).c_str());
}

}  // namespace tp
