// Anomaly mode: nan checks of gradients and the place where a node's forward ran.
#include <algorithm>
#include <cmath>

#include "autograd/pass.h"
#include "kernels/staging.h"

namespace tp {

bool anomaly_check_nan = true;
std::string (*forward_location)() = nullptr;

namespace {

bool has_nan(const Storage& s) {
  const Storage values = kernels::contiguous(kernels::cast(s, is_complex(s.dtype()) ? Dtype::C128 : Dtype::F64));
  const double* p = values.data<double>();
  return std::any_of(p, p + values.nbytes() / sizeof(double), [](double v) { return std::isnan(v); });
}

}  // namespace

void check_nan(const Node& n, std::span<const GradSlot> grads) {
  for (std::size_t i = 0; const GradSlot& g : grads) {
    if (g.defined() && has_nan(g.tensor ? g.tensor->storage() : g.value))
      runtime_error("Function '", n.name(), "' returned nan values in its ", i, "th output.");
    ++i;
  }
}

void warn_anomaly(const Node& n) {
  std::string where = n.meta() ? n.meta()->anomaly : std::string();
  if (where.empty()) where = "(no forward was recorded: run it inside detect_anomaly() too)";
  modes::warn(
      ("Error detected in " + n.name() + ". Traceback of forward call that caused the error:\n" + where).c_str());
}

}  // namespace tp
