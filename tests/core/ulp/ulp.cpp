// Measures the vector maths against long double references, in the very loops the compiler vectorises.
// Usage: ulp [--stride N] [--count N] [--only NAME] [--limit ULP]. Exit status 1 when a function exceeds its limit or
// breaks a special value, or gives other bits alone than in a block. Compiled once per instruction set by run.sh; knows nothing of tensors.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "kernels/vecmath.h"
#include "reference.h"

namespace m = tp::TP_ISA::m;

namespace {

constexpr int kBlock = 1021;  // odd, so that every block has a scalar tail
using Big = long double;

template <class T>
struct Function {
  const char* name;
  void (*unary)(const T*, T*, int);
  void (*binary)(const T*, const T*, T*, int);
  Big (*unary_reference)(Big);
  Big (*binary_reference)(Big, Big);
  double limit;  // allowed error in units in the last place
  double low, high;  // the range random arguments concentrate on
  double scale;  // results below this size are judged by its ulp: functions with roots they cannot resolve
};

struct Worst {
  double ulps = 0;
  double x = 0, y = 0, got = 0;
  Big want = 0;
  long broken = 0, uneven = 0;  // uneven: the scalar form gave other bits than the vector form
  double broken_x = 0, broken_y = 0, broken_got = 0, broken_want = 0;
};

template <class T>
double ulp_size(T reference) {
  int e;
  frexp(double(reference), &e);
  const int lowest = sizeof(T) == 4 ? -125 : -1021, digits = sizeof(T) == 4 ? 24 : 53;
  return ldexp(1.0, (e < lowest ? lowest : e) - digits);
}

template <class T>
void judge(Worst& worst, double x, double y, T got, Big want, double scale) {
  const T rounded = T(want);
  const bool same_kind =
      isnan(want) ? isnan(got) : !isnan(got) && (signbit(got) == signbit(rounded) || fabsl(want) < scale);
  const bool finite = !isnan(want) && !isinf(rounded) && !isinf(got);
  const T largest = sizeof(T) == 4 ? T(3.40282346638528859812e38) : T(1.7976931348623157e308);
  // Rounding may decide between the largest number and infinity either way.
  const bool edge =
      !isnan(want) && isinf(rounded) != isinf(got) && fabsl(fabsl(want) - Big(largest)) <= 2 * Big(ulp_size(largest));
  if (!same_kind || (!finite && !isnan(want) && got != rounded && !edge)) {
    if (worst.broken++ == 0) {
      worst.broken_x = x, worst.broken_y = y, worst.broken_got = double(got), worst.broken_want = double(want);
    }
    return;
  }
  if (!finite || want == 0) return;
  const double error = double(fabsl(Big(got) - want) / ulp_size(fabs(rounded) < T(scale) ? T(scale) : rounded));
  if (error > worst.ulps) worst.ulps = error, worst.x = x, worst.y = y, worst.got = double(got), worst.want = want;
}

uint64_t random_state = 88172645463325252u;
uint64_t next_random() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}
double uniform(double low, double high) { return low + (high - low) * double(next_random() >> 11) * 0x1p-53; }

template <class T>
T random_bits() {
  if constexpr (sizeof(T) == 4) return __builtin_bit_cast(float, uint32_t(next_random() >> 32));
  return __builtin_bit_cast(double, next_random());
}

// Zero, one, thresholds of rounding and overflow, and their neighbours, with both signs.
template <class T>
int edges(T* out) {
  const double seeds[] = {0,
                          0.25,
                          0.5,
                          0.75,
                          1,
                          1.5,
                          2,
                          3,
                          4,
                          10,
                          16,
                          0.125,
                          0x1p-25,
                          0x1p-27,
                          0x1p-54,
                          0x1p23,
                          0x1p24,
                          0x1p52,
                          88.7,
                          709,
                          104,
                          745,
                          87.3,
                          708.3,
                          1e30,
                          0x1p-126,
                          1e-40,
                          1e-45,
                          0x1p-1022,
                          5e-324,
                          3.4028234e38,
                          1e300,
                          1.7976931348623157e308,
                          3.14159265358979,
                          1.5707963267948966,
                          0.7853981633974483,
                          INFINITY};
  int n = 0;
  for (double s : seeds) {
    const T base = T(s);
    for (T v : {base, T(nextafter(double(base), 0)), T(nextafter(double(base), INFINITY))}) out[n++] = v, out[n++] = -v;
    if constexpr (sizeof(T) == 4) {
      for (float v : {nextafterf(base, 0), nextafterf(base, INFINITY)}) out[n++] = v, out[n++] = -v;
    }
  }
  out[n++] = T(NAN);
  return n;
}

template <class T>
class Run {
 public:
  explicit Run(const Function<T>& f) : f_(f) {}
  void add(T x, T y = 0) {
    x_[n_] = x, y_[n_] = y;
    if (++n_ == kBlock) flush();
  }
  void flush() {
    f_.unary ? f_.unary(x_, out_, n_) : f_.binary(x_, y_, out_, n_);
    for (int i = 0; i < n_; ++i) {
      const Big want = f_.unary ? f_.unary_reference(x_[i]) : f_.binary_reference(x_[i], y_[i]);
      judge(worst, double(x_[i]), double(y_[i]), out_[i], want, f_.scale);
      T alone;
      f_.unary ? f_.unary(x_ + i, &alone, 1) : f_.binary(x_ + i, y_ + i, &alone, 1);
      worst.uneven += memcmp(&alone, out_ + i, sizeof(T)) != 0 && !(isnan(alone) && isnan(out_[i]));
    }
    n_ = 0;
  }
  Worst worst;

 private:
  const Function<T>& f_;
  T x_[kBlock], y_[kBlock], out_[kBlock];
  int n_ = 0;
};

template <class T>
Worst measure(const Function<T>& f, uint64_t stride, long count) {
  Run<T> run(f);
  static T special[512];
  const int specials = edges(special);
  if (f.unary) {
    for (int i = 0; i < specials; ++i) run.add(special[i]);
    if constexpr (sizeof(T) == 4) {
      for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += stride)
        run.add(__builtin_bit_cast(float, uint32_t(bits)));
    } else {
      for (long i = 0; i < count / 4; ++i) run.add(random_bits<T>());
      for (long i = 0; i < count / 4; ++i) run.add(T(exp(uniform(-30, 8)) * (next_random() & 1 ? 1 : -1)));
    }
    for (long i = 0; i < count / 2; ++i) run.add(T(uniform(f.low, f.high)));
  } else {
    for (int i = 0; i < specials; ++i)
      for (int j = 0; j < specials; ++j) run.add(special[i], special[j]);
    for (long i = 0; i < count / 4; ++i) run.add(random_bits<T>(), random_bits<T>());
    for (long i = 0; i < count / 4; ++i) run.add(T(exp(uniform(-3, 3))), T(uniform(-100, 100)));
    for (long i = 0; i < count / 2; ++i) run.add(T(uniform(f.low, f.high)), T(uniform(f.low, f.high)));
  }
  run.flush();
  return run.worst;
}

#define LOOP1(f)                                                                             \
  template <class T>                                                                         \
  __attribute__((noinline)) void loop_##f(const T* __restrict x, T* __restrict out, int n) { \
    for (int i = 0; i < n; ++i) out[i] = m::f(x[i]);                                         \
  }
#define LOOP2(f)                                                                                                    \
  template <class T>                                                                                                \
  __attribute__((noinline)) void loop_##f(const T* __restrict x, const T* __restrict y, T* __restrict out, int n) { \
    for (int i = 0; i < n; ++i) out[i] = m::f(x[i], y[i]);                                                          \
  }
// name, limit, low, high, scale; clang-format finds no fixed point for these
// clang-format off
#define UNARY(X) \
  X(exp, 2, -104, 89, 0) X(exp2, 2, -150, 128, 0) X(expm1, 2, -2, 2, 0) X(log, 2, 0, 3, 0) X(log2, 2, 0, 3, 0) \
  X(log10, 2, 0, 3, 0) X(log1p, 2, -1, 2, 0) X(sigmoid, 2, -105, 20, 0) X(log_sigmoid, 2, -20, 20, 0) \
  X(tanh, 2, -4, 4, 0) X(sinh, 2, -4, 4, 0) X(cosh, 2, -4, 4, 0) X(asinh, 2, -4, 4, 0) X(acosh, 2, 1, 4, 0) \
  X(atanh, 2, -1, 1, 0) X(sin, 2, -100, 100, 0) X(cos, 2, -100, 100, 0) X(tan, 2, -100, 100, 0) \
  X(sinc, 2, -10, 10, 0) X(asin, 2, -1, 1, 0) X(acos, 2, -1, 1, 0) X(atan, 2, -5, 5, 0) X(erf, 2, -4, 4, 0) \
  X(erfc, 2, -5, 27, 0) X(erfinv, 3, -1, 1, 0) X(ndtr, 2, -38, 8, 0) X(log_ndtr, 3, -40, 8, 0) X(entr, 2, 0, 3, 0) \
  X(rsqrt, 2, 0, 10, 0) X(reciprocal, 0.5, -5, 5, 0) X(sqrt, 0.5, 0, 10, 0) X(lgamma, 6, -5, 30, 0) \
  X(digamma, 4, 0.1, 20, 32) X(trigamma, 5, 0.1, 20, 0) X(i0, 4, -20, 20, 0) X(i0e, 3, -20, 20, 0) \
  X(i1, 4, -20, 20, 0) X(i1e, 3, -20, 20, 0) X(round, 0, -9, 9, 0) X(floor, 0, -9, 9, 0) X(ceil, 0, -9, 9, 0) \
  X(trunc, 0, -9, 9, 0)
#define BINARY(X) \
  X(pow, 2, 0, 10, 0) X(atan2, 2, -3, 3, 0) X(hypot, 2, -9, 9, 0) X(fmod, 0, -99, 9, 0) \
  X(remainder, 0.5, -99, 9, 0) X(xlogy, 2, 0, 9, 0) X(xlog1py, 2, 0, 9, 0) X(logaddexp, 2, -9, 9, 1) \
  X(logaddexp2, 2, -9, 9, 1) X(nextafter, 0, -9, 9, 0) X(copysign, 0, -9, 9, 0)
// clang-format on

#define DECLARE1(f, limit, low, high, scale) LOOP1(f)
#define DECLARE2(f, limit, low, high, scale) LOOP2(f)
UNARY(DECLARE1)
BINARY(DECLARE2)

template <class T>
int report(const char* type, uint64_t stride, long count, const char* only) {
#define ROW1(f, limit, low, high, scale) {#f, loop_##f<T>, nullptr, reference::f, nullptr, limit, low, high, scale},
#define ROW2(f, limit, low, high, scale) {#f, nullptr, loop_##f<T>, nullptr, reference::f, limit, low, high, scale},
  static const Function<T> functions[] = {UNARY(ROW1) BINARY(ROW2)};
  int failures = 0;
  for (const auto& f : functions) {
    if (only && strcmp(only, f.name) != 0) continue;
    reference::current_bits = sizeof(T) * 8;
    const Worst w = measure(f, stride, f.unary ? count : count / 2);
    const bool bad = w.ulps > f.limit || w.broken > 0 || w.uneven > 0;
    failures += bad;
    printf("%-9s %-3s %-12s %8.3f ulp  at %-24.17g", TP_ISA_NAME, type, f.name, w.ulps, w.x);
    if (f.binary) printf(" %-24.17g", w.y);
    if (w.broken)
      printf("  %ld special values wrong, first f(%.9g, %.9g) = %.9g, not %.9g", w.broken, w.broken_x, w.broken_y,
             w.broken_got, w.broken_want);
    if (w.uneven) printf("  %ld results depend on the position in the block", w.uneven);
    printf("%s\n", bad ? "  FAIL" : "");
    fflush(stdout);
  }
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t stride = 10007;
  long count = 200000;
  const char *only = nullptr, *type = nullptr;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--stride")) stride = strtoull(argv[i + 1], nullptr, 10);
    if (!strcmp(argv[i], "--count")) count = atol(argv[i + 1]);
    if (!strcmp(argv[i], "--only")) only = argv[i + 1];
    if (!strcmp(argv[i], "--type")) type = argv[i + 1];
  }
  int failures = 0;
  if (!type || !strcmp(type, "f32")) failures += report<float>("f32", stride, count, only);
  if (!type || !strcmp(type, "f64")) failures += report<double>("f64", stride, count, only);
  if (failures) printf("%s: %d functions outside their limits\n", TP_ISA_NAME, failures);
  return failures != 0;
}
