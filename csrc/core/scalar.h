// Scalar: a Python bool, int, float or complex passed to an op. Knows nothing of tensors.
#pragma once
#include <cstdint>

#include "core/complex.h"
#include "core/dtype.h"

namespace tp {

class Scalar {
 public:
  Scalar() : category_(Category::Integer) { v_.i = 0; }
  Scalar(bool v) : category_(Category::Bool) { v_.i = v; }
  Scalar(int v) : category_(Category::Integer) { v_.i = v; }
  Scalar(std::int64_t v) : category_(Category::Integer) { v_.i = v; }
  Scalar(double v) : category_(Category::Float) { v_.d[0] = v, v_.d[1] = 0; }
  Scalar(double re, double im) : category_(Category::Complex) { v_.d[0] = re, v_.d[1] = im; }

  Category category() const { return category_; }
  bool is_integral() const { return category_ <= Category::Integer; }
  bool is_complex() const { return category_ == Category::Complex; }
  std::int64_t to_int() const { return is_integral() ? v_.i : std::int64_t(v_.d[0]); }
  double to_double() const { return is_integral() ? double(v_.i) : v_.d[0]; }
  double imag() const { return is_complex() ? v_.d[1] : 0; }
  bool to_bool() const { return is_integral() ? v_.i != 0 : v_.d[0] != 0 || imag() != 0; }
  /// The dtype a Python number stands for in promotion.
  Dtype dtype() const {
    switch (category_) {
      case Category::Bool: return Dtype::Bool;
      case Category::Integer: return Dtype::I64;
      case Category::Float: return default_float();
      default: return complex_dtype(default_float());
    }
  }

 private:
  union {
    std::int64_t i;
    double d[2];
  } v_;
  Category category_;
};

/// Converts a scalar argument to a loop's type; kernels call it once per block, not per element.
template <class T>
T scalar_to(const Scalar& s) {
  if constexpr (std::is_same_v<T, c64> || std::is_same_v<T, c128>)
    return T{decltype(T::re)(s.to_double()), decltype(T::re)(s.imag())};
  else if constexpr (std::is_same_v<T, bool>)
    return s.to_bool();
  else if constexpr (std::is_integral_v<T>)
    return T(s.to_int());
  else
    return T(s.to_double());
}

}  // namespace tp
