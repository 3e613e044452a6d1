// Factors, twiddles, the convolution for large primes, and the cache of plans.
#include "kernels/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <type_traits>

namespace tp::kernels {
namespace {

using std::int64_t;

const FftTable* const table = &TP_PICK_TABLE(fft_table);

// Factors from kFftRadices whose product is n; empty where a larger prime remains (and for n < 2).
std::vector<int> factors_of(int64_t n) {
  std::vector<int> out;
  const auto take = [&](int r) {
    while (n % r == 0) {
      out.push_back(r);
      n /= r;
    }
  };
  for (int r : {13, 11, 7, 5, 3}) take(r);
  // Powers of two: eights, with fours where a remainder of 2 would need a pass of its own.
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  if (n != 1) return {};
  for (; twos % 3 == 1 && twos >= 4; twos -= 4) out.insert(out.end(), {4, 4});
  for (; twos >= 3; twos -= 3) out.push_back(8);
  if (twos == 2) out.push_back(4);
  if (twos == 1) out.push_back(2);
  // The largest power of two first: its pass has no neighbouring columns, and interleaves its stores.
  std::stable_sort(out.begin(), out.end(), [](int a, int b) { return a % 2 == 0 && b % 2 == 1; });
  return out;
}

// The least length >= n with factors 2, 3 and 5.
int64_t smooth_length(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  for (int64_t five = 1; five < best; five *= 5)
    for (int64_t odd = five; odd < best; odd *= 3) {
      int64_t x = odd;
      while (x < n) x *= 2;
      best = std::min(best, x);
    }
  return best;
}

}  // namespace

RootOfUnity root_of_unity(int64_t k, int64_t n) {
  // Reduced to an eighth of the circle in integers, so that only a small angle is rounded.
  k %= n;
  int64_t a = 8 * k, sign_s = 1, sign_c = 1;
  if (a > 4 * n) {
    a = 8 * n - a;
    sign_s = -1;
  }
  if (a > 2 * n) {
    a = 4 * n - a;
    sign_c = -1;
  }
  const bool swap = a > n;
  if (swap) a = 2 * n - a;
  const double angle = 0.78539816339744830962 * (double(a) / double(n));
  double c = std::cos(angle), s = std::sin(angle);
  if (swap) std::swap(c, s);
  return {double(sign_c) * c, -double(sign_s) * s};
}

template <class T>
FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  if (n < 2) return;
  const std::vector<int> factors = factors_of(n);
  if (factors.empty()) {
    inner_ = of(smooth_length(2 * n - 1));
    const int64_t size = inner_->size();
    chirp_.resize(std::size_t(2 * n));
    filter_.assign(std::size_t(2 * size), T(0));
    T *fr = filter_.data(), *fi = fr + size;
    int64_t square = 0;  // k^2 mod 2n
    for (int64_t k = 0; k < n; ++k) {
      const RootOfUnity w = root_of_unity(square, 2 * n);
      chirp_[std::size_t(k)] = T(w.re);
      chirp_[std::size_t(n + k)] = T(w.im);
      fr[k] = fr[k == 0 ? 0 : size - k] = T(w.re / double(size));
      fi[k] = fi[k == 0 ? 0 : size - k] = T(-w.im / double(size));
      square = (square + 2 * k + 1) % (2 * n);
    }
    std::vector<T> work(std::size_t(inner_->work(1)));
    inner_->run(fr, fi, work.data(), 1);
    return;
  }
  int64_t length = n;
  for (int radix : factors) {
    const int64_t m = length / radix;
    const auto at =
        std::size_t(std::find(std::begin(kFftRadices), std::end(kFftRadices), radix) - std::begin(kFftRadices));
    Pass p{nullptr, m, radix, std::vector<T>(std::size_t(2 * (radix - 1) * m))};
    if constexpr (std::is_same_v<T, float>)
      p.fn = table->f32[at];
    else
      p.fn = table->f64[at];
    T *wr = p.twiddles.data(), *wi = wr + (radix - 1) * m;
    for (int j = 1; j < radix; ++j)
      for (int64_t i = 0; i < m; ++i) {
        const RootOfUnity w = root_of_unity(j * i, length);
        wr[(j - 1) * m + i] = T(w.re);
        wi[(j - 1) * m + i] = T(w.im);
      }
    passes_.push_back(std::move(p));
    length = m;
  }
}

template <class T>
int64_t FftPlan<T>::work(int64_t s) const {
  return inner_ ? 2 * inner_->size() * s + inner_->work(s) : 2 * n_ * s;
}

template <class T>
double FftPlan<T>::cost() const {
  if (inner_) return 2 * inner_->cost() + 4 * double(inner_->size());
  return 20 + double(n_) * (1 + 1.2 * double(passes_.size()));
}

template <class T>
void FftPlan<T>::run(T* re, T* im, T* work, int64_t s) const {
  if (inner_) return chirp(re, im, work, s);
  T *xr = re, *xi = im, *yr = work, *yi = work + n_ * s;
  int64_t columns = s;
  for (const Pass& p : passes_) {
    p.fn(p.m, columns, xr, xi, yr, yi, p.twiddles.data());
    std::swap(xr, yr);
    std::swap(xi, yi);
    columns *= p.radix;
  }
  if (xr != re) {
    std::copy_n(xr, n_ * s, re);
    std::copy_n(xi, n_ * s, im);
  }
}

template <class T>
void FftPlan<T>::chirp(T* re, T* im, T* work, int64_t s) const {
  const int64_t size = inner_->size();
  T *ar = work, *ai = ar + size * s, *rest = ai + size * s;
  const T *cr = chirp_.data(), *ci = cr + n_, *fr = filter_.data(), *fi = fr + size;
  const FftEnds<T>& own = fft_ends<T>();
  own.turn(n_, s, re, im, cr, ci, ar, ai);
  std::fill(ar + n_ * s, ar + size * s, T(0));
  std::fill(ai + n_ * s, ai + size * s, T(0));
  inner_->run(ar, ai, rest, s);
  own.turn(size, s, ar, ai, fr, fi, ar, ai);
  inner_->run(ai, ar, rest, s);  // the inverse
  own.turn(n_, s, ar, ai, cr, ci, re, im);
}

template <class T>
std::shared_ptr<const FftPlan<T>> FftPlan<T>::of(int64_t n) {
  constexpr std::size_t kKept = 24;
  static std::mutex mutex;
  static std::list<std::shared_ptr<const FftPlan>>& kept = *new std::list<std::shared_ptr<const FftPlan>>;
  const auto found = [&]() -> std::shared_ptr<const FftPlan> {
    for (auto it = kept.begin(); it != kept.end(); ++it)
      if ((*it)->size() == n) {
        kept.splice(kept.begin(), kept, it);
        return kept.front();
      }
    return nullptr;
  };
  {
    const std::lock_guard lock(mutex);
    if (auto plan = found()) return plan;
  }
  auto plan = std::make_shared<const FftPlan>(n);  // outside the lock: it may ask for another plan
  const std::lock_guard lock(mutex);
  if (auto other = found()) return other;
  kept.push_front(plan);
  if (kept.size() > kKept) kept.pop_back();
  return plan;
}

template <class T>
const FftEnds<T>& fft_ends() {
  if constexpr (std::is_same_v<T, float>)
    return table->ends_f32;
  else
    return table->ends_f64;
}

template class FftPlan<float>;
template class FftPlan<double>;
template const FftEnds<float>& fft_ends();
template const FftEnds<double>& fft_ends();

}  // namespace tp::kernels
