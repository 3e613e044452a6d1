// Plans of Fourier transforms of one length, over planes of real and imaginary parts. Knows raw memory only.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/fft_table.h"

namespace tp::kernels {

/// Forward transforms of length n, unscaled. Lengths with a prime factor above 13 go through a convolution (Bluestein).
template <class T>
class FftPlan {
 public:
  explicit FftPlan(std::int64_t n);
  std::int64_t size() const { return n_; }
  /// Elements of working memory that `run` wants for `s` columns.
  std::int64_t work(std::int64_t s) const;
  /// Transforms s columns that lie as rows of s in the planes re and im, which are overwritten; the inverse exchanges
  /// the planes.
  void run(T* re, T* im, T* work, std::int64_t s) const;
  /// Rough time of one column in nanoseconds.
  double cost() const;

  /// The plan of a length from a small cache that threads share.
  static std::shared_ptr<const FftPlan> of(std::int64_t n);

 private:
  struct Pass {
    FftPassFn<T> fn;
    std::int64_t m;
    int radix;
    std::vector<T> twiddles;
  };
  void chirp(T* re, T* im, T* work, std::int64_t s) const;

  std::int64_t n_;
  std::vector<Pass> passes_;
  // Of the convolution: its plan, the chirp exp(-i pi k^2 / n), the transformed conjugate chirp over its length.
  std::shared_ptr<const FftPlan> inner_;
  std::vector<T> chirp_, filter_;
};

/// The moves of the active instruction set.
template <class T>
const FftEnds<T>& fft_ends();

/// exp(-2 pi i k / n), to the last place.
struct RootOfUnity {
  double re, im;
};
RootOfUnity root_of_unity(std::int64_t k, std::int64_t n);

extern template class FftPlan<float>;
extern template class FftPlan<double>;

}  // namespace tp::kernels
