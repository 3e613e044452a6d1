// Quantiles by the distribution function where it is cheap, by an expansion where its error no longer shows.
#include "kernels/quantile.h"

#include <cmath>

#include "core/modes.h"
#include "core/parallel_for.h"
#include "kernels/elementwise.h"
#include "kernels/special_functions.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

constexpr double kSummed = 48, kExact = 1e4;  // rates up to which terms are summed, and the function is consulted

double poisson(double u, double rate) {
  if (!(rate >= 0) || std::isnan(u)) return NAN;
  if (rate == 0 || u <= 0) return 0;
  if (std::isinf(rate) || u >= 1) return INFINITY;
  if (rate < kSummed) {
    double k = 0, p = std::exp(-rate), sum = p;
    // Rounding may keep the sum below a u next to 1: terms that no longer count end it.
    while (sum < u && (k < rate || sum + p > sum)) {
      p *= rate / ++k;
      sum += p;
    }
    return k;
  }
  // Giles 2016, section 2.2: off by O(1 / rate) before it is rounded down.
  const double z = tp::special::normal_quantile(std::fmax(u, 0x1p-54)), root = std::sqrt(rate);
  const double near = rate + root * z + (1.0 / 3 + z * z / 6) - z * (1.0 / 36 + z * z / 72) / root;
  double k = std::fmax(0, std::floor(near));
  if (rate >= kExact) return k;
  double below = tp::special::igammac(k + 1, rate);  // P(X <= k)
  double p = std::exp(k * std::log(rate) - rate - std::lgamma(k + 1));
  for (; below < u && below + p * rate / (k + 1) > below; below += p) p *= rate / ++k;
  for (; k > 0 && below - p >= u; --k) {
    below -= p;
    p *= k / rate;
  }
  return k;
}

}  // namespace

Storage poisson_quantile(const OpSchema& op, const Storage& u, const Storage& rate) {
  const Storage* both[] = {&u, &rate};
  const Shape sizes = broadcast_shapes(op.name, both);
  Storage out = empty(sizes, Dtype::F64), rates = empty(sizes, Dtype::F64);
  copy_broadcast(op.name, out, u);
  copy_broadcast(op.name, rates, rate);
  double* to = out.data<double>();
  const double* r = rates.data<double>();
  modes::Unlocked unlocked(out.numel() > 1000);
  parallel_for(0, out.numel(), 1000, [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) to[i] = poisson(to[i], r[i]);
  });
  return out;
}

}  // namespace tp::kernels
