// Smoke test of the kernels room on raw storages: layouts, dtypes, aliasing, threads. Exits with the number of failures.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "kernels/elementwise.h"
#include "kernels/factories.h"
#include "kernels/index.h"
#include "kernels/reduce.h"
#include "kernels/scan.h"
#include "kernels/search.h"
#include "kernels/shape.h"
#include "kernels/staging.h"
#include "kernels/views.h"

using namespace tp;
namespace k = tp::kernels;

namespace {

int failures = 0;
const OpSchema kOp{"test_op", "test_op()"};

void check(bool ok, const std::string& what) {
  if (ok) return;
  ++failures;
  std::printf("FAILED: %s\n", what.c_str());
}

void check_raises(const std::function<void()>& f, ErrorKind kind, const std::string& part) {
  try {
    f();
  } catch (const Error& e) {
    check(e.kind() == kind && std::string(e.what()).find(part) != std::string::npos,
          std::string("message: ") + e.what());
    return;
  }
  check(false, "nothing raised; expected: " + part);
}

// Values as doubles in index order, whatever the dtype and strides.
std::vector<double> values(const Storage& s) {
  const Storage d = k::contiguous(k::cast(s, Dtype::F64));
  return {d.data<double>(), d.data<double>() + d.numel()};
}

Storage make(const Shape& sizes, const std::vector<double>& v, Dtype dtype = Dtype::F32) {
  Storage s = empty(sizes, Dtype::F64);
  if (!v.empty()) std::memcpy(s.raw(), v.data(), v.size() * sizeof(double));
  return k::cast(s, dtype);
}

Storage ramp(const Shape& sizes, Dtype dtype = Dtype::F32) {
  std::vector<double> v(std::size_t(product(sizes)));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = double(i % 97) - 13;
  return make(sizes, v, dtype);
}

Storage swapped(const Storage& s, int a, int b) {
  Shape sizes = s.sizes();
  Strides strides = s.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return s.with_geometry(sizes, strides, s.offset());
}

template <class T>
void add_loop(std::int64_t n, char* const* data, const Scalar*) {
  T* out = reinterpret_cast<T*>(data[0]);
  const T* a = reinterpret_cast<const T*>(data[1]);
  const T* b = reinterpret_cast<const T*>(data[2]);
  for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}
const LoopSet kAddLoops{{nullptr, add_loop<std::int32_t>, add_loop<std::int64_t>, nullptr, add_loop<float>,
                         add_loop<double>, add_loop<c64>, add_loop<c128>}};
constexpr ElementwiseSpec kAdd{&kOp, 2};

std::vector<double> added(const Storage& a, const Storage& b) {
  std::vector<double> x = values(a), y = values(b);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  return x;
}

Storage add(const Storage& a, const Storage& b) { return k::elementwise(kAdd, kAddLoops, {&a, &b}); }

Storage broadcast(const Storage& s, const Shape& sizes) {
  Storage target = empty(sizes, s.dtype());
  k::copy_broadcast("test", target, s);
  return target;
}

void test_elementwise() {
  const std::vector<Shape> shapes = {{},        {0}, {1}, {7}, {3, 5}, {64, 65}, {2, 0, 3}, {33, 40, 3}, {4, 3, 70, 71},
                                     {300, 257}};
  for (const Shape& sizes : shapes) {
    for (Dtype d : {Dtype::F32, Dtype::F64, Dtype::F16, Dtype::BF16, Dtype::I16, Dtype::I64, Dtype::C64}) {
      const Storage x = ramp(sizes, d), y = ramp(sizes, Dtype::F32);
      check(values(add(x, x)) == added(x, x), "x + x");
      if (d != Dtype::F16 && d != Dtype::BF16) check(values(add(x, y)) == added(x, y), "x + y of two dtypes");
      if (sizes.size() >= 2) {
        const int n = sizes.size();
        Shape turned = sizes;
        std::swap(turned[n - 1], turned[n - 2]);
        const Storage t = swapped(ramp(turned, d), n - 1, n - 2);
        check(values(add(x, t)) == added(x, t), "x + y.T");
        check(values(add(t, t)) == added(t, t), "y.T + y.T");
        check(add(t, t).numel() < 2 || add(t, t).strides() == t.strides() || !t.is_dense(), "layout kept");
        check(values(k::contiguous(t)) == values(t), "contiguous");
        Shape row(n, 1), col = sizes;
        row[n - 1] = sizes[n - 1];
        col[n - 1] = 1;
        const Storage r = ramp(row, d), c = ramp(col, d);
        check(values(add(x, r)) == added(x, broadcast(r, sizes)), "x + row");
        check(values(add(c, x)) == added(broadcast(c, sizes), x), "col + x");
        const Storage last = ramp(Shape{sizes[n - 1]}, d);
        check(values(add(last, t)) == added(broadcast(last, sizes), t), "row + y.T");
        Storage into = swapped(k::contiguous(ramp(turned, d)), n - 1, n - 2);
        k::elementwise_into(kAdd, kAddLoops, into, {&x, &t});
        check(values(into) == added(x, t), "into transposed");
      }
      Storage number = make({}, {3}, d);
      check(values(add(x, number)) == added(x, broadcast(number, sizes)), "x + 0-d");
    }
  }
  Storage i = ramp({10}, Dtype::I64), f = ramp({10});
  Storage number = make({}, {0.5}, Dtype::F64);
  number.set_wrapped_number(true);
  check(add(i, number).dtype() == Dtype::F32 && values(add(i, number))[0] == -12.5, "int + 0.5");
  check(add(f, number).dtype() == Dtype::F32, "float32 + 0.5");
  check_raises([&] { k::elementwise_into(kAdd, kAddLoops, i, {&i, &f}); }, ErrorKind::Type,
               "test_op_: result type float32 can't be cast to int64");
  check_raises([&] { add(ramp({3}), ramp({4})); }, ErrorKind::Value, "shapes [3] and [4] do not broadcast");
  check_raises(
      [&] { add(ramp({3}, Dtype::Bool), ramp({3}, Dtype::Bool)); }, ErrorKind::Type,
      "not defined for dtype bool; it takes uint8, int8, int16, int32, int64, uint16, uint32, float16, bfloat16, "
      "float32, float64, complex64, complex128. Convert");
  // Overlap: out = x[1:] computed from x[:-1].
  Storage x = ramp({5000});
  Storage low = x.with_geometry({4999}, {1}, 0), high = x.with_geometry({4999}, {1}, 1);
  const std::vector<double> want = added(low, high);
  k::elementwise_into(kAdd, kAddLoops, high, {&low, &high});
  check(values(high) == want, "overlapping in-place");
  // Reversed: x += x.flip
  Storage y = ramp({4096});
  Storage back = y.with_geometry({4096}, {-1}, 4095);
  const std::vector<double> sum = added(y, back);
  k::elementwise_into(kAdd, kAddLoops, y, {&y, &back});
  check(values(y) == sum, "x += flipped x");
  Storage wide = ramp({1}).with_geometry({4}, {0}, 0);
  check_raises([&] { k::elementwise_into(kAdd, kAddLoops, wide, {&wide, &wide}); }, ErrorKind::Runtime,
               "share one memory");
}

void test_staging() {
  const Storage x = make({4}, {-1, 0, 2.7, 300}, Dtype::F64);
  check(values(k::cast(x, Dtype::U8)) == std::vector<double>{255, 0, 2, 44}, "float64 to uint8");
  check(values(k::cast(x, Dtype::Bool)) == std::vector<double>{1, 0, 1, 1}, "float64 to bool");
  for (int a = 0; a < kNumDtypes; ++a)
    for (int b = 0; b < kNumDtypes; ++b) {
      const Storage s = make({1500}, std::vector<double>(1500, 1), Dtype(a));
      check(values(k::cast(s, Dtype(b))) == std::vector<double>(1500, 1), "cast of ones");
    }
  Storage m = zeros_storage({50, 60}, Dtype::F16);
  Storage part = m.with_geometry({50, 7}, {60, 2}, 3);
  k::fill(part, Scalar(2.5));
  double total = 0;
  for (double v : values(m)) total += v;
  check(total == 2.5 * 350, "strided fill");
  float odd[40];
  for (int i = 0; i < 40; ++i) odd[i] = float(i);
  double got[13];
  k::load_fn(Dtype::F32, Compute::F64)(reinterpret_cast<char*>(got), reinterpret_cast<const char*>(odd), 3, 13);
  check(got[12] == 36, "load with stride");
  Storage s = ramp({100});
  Storage to = s.with_geometry({60}, {1}, 30), from = s.with_geometry({60}, {1}, 0);
  const std::vector<double> want = values(from);
  k::copy_into(to, from);
  check(values(to) == want, "overlapping copy");
}

using Values = std::vector<double>;

void test_views_and_shapes() {
  const Storage x = make({2, 3}, {1, 2, 3, 4, 5, 6});
  const Storage t = k::transpose(kOp, x, 0, -1);
  check(values(t) == Values{1, 4, 2, 5, 3, 6}, "transpose");
  check(values(k::reshape(kOp, t, {-1})) == values(t), "reshape copies where it must");
  check_raises([&] { k::view(kOp, t, {6}); }, ErrorKind::Runtime, "use reshape");
  check_raises([&] { k::transpose(kOp, x, 3, 0); }, ErrorKind::Index,
               "dim 3 out of range for a 2-d tensor (expected -2..1)");
  check(values(k::slice(kOp, x, 1, -2, std::nullopt, 1)) == Values{2, 3, 5, 6}, "slice");
  check(values(k::flip(kOp, x, {0, 1})) == Values{6, 5, 4, 3, 2, 1}, "flip");
  check(values(k::roll(kOp, x, {1}, {1})) == Values{3, 1, 2, 6, 4, 5}, "roll");
  check(values(k::repeat(kOp, x, {1, 2})) == Values{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}, "repeat");
  const std::vector<Storage> both{x, t};
  check_raises([&] { k::cat(kOp, both, 0); }, ErrorKind::Value, "differs from");
  const std::vector<Storage> twice{x, x};
  check(k::cat(kOp, twice, 1).sizes() == Shape({2, 6}) && k::stack(kOp, twice, -1).sizes() == Shape({2, 3, 2}),
        "cat, stack");
  const Storage row = make({4}, {1, 2, 3, 4});
  check(values(k::pad_by_index(kOp, row, {2, 1}, "reflect")) == Values{3, 2, 1, 2, 3, 4, 3}, "reflect");
  check(values(k::constant_pad_nd(kOp, row, {-1, 1}, Scalar(9))) == Values{2, 3, 4, 9}, "crop and pad");
  check(values(k::arange(kOp, Scalar(5), Scalar(0), Scalar(-2), std::nullopt)) == Values{5, 3, 1}, "arange");
}

void test_reductions() {
  const double nan = std::nan("");
  const Storage x = make({2, 3}, {3, 1, 2, nan, 5, 4});
  check(values(k::sum(kOp, make({2, 3}, {1, 2, 3, 4, 5, 6}), {0}, false, std::nullopt)) == Values{5, 7, 9}, "sum");
  check(std::isnan(values(k::amax(kOp, x, {}, false))[0]), "nan wins");
  check(values(k::argmax(kOp, x, 1, false)) == Values{0, 0}, "the first nan is the maximum");
  check_raises([&] { k::amax(kOp, ramp({0, 3}), {0}, false); }, ErrorKind::Index, "has no elements");
  check(k::sum(kOp, ramp({5}, Dtype::I16), {}, false, std::nullopt).dtype() == Dtype::I64, "integers sum as int64");
  check(values(k::cumsum(kOp, make({4}, {1, 2, 3, 4}), 0, std::nullopt)) == Values{1, 3, 6, 10}, "cumsum");
  check(values(k::median(kOp, make({4}, {4, 1, 3, 2}))) == Values{2}, "median");
  // Chunks follow from sizes, never from threads.
  const Storage big = ramp({700, 1000});
  std::vector<Values> seen;
  const int before = num_threads();
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    seen.push_back(values(k::var(kOp, big, std::nullopt, Scalar(1), false)));
    seen.back().push_back(values(k::sum(kOp, big, {}, false, std::nullopt))[0]);
  }
  set_num_threads(before);
  check(seen[0] == seen[1] && seen[0] == seen[2], "the same bits on every number of threads");
}

void test_indexing() {
  const Storage x = make({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Storage rows = make({2}, {2, 0}, Dtype::I64), cols = make({2}, {-1, 1}, Dtype::I64);
  const std::vector<Storage> pair{rows, cols}, second{Storage(), cols};
  check(values(k::index(kOp, x, pair)) == Values{11, 1}, "x[rows, cols]");
  check(values(k::index(kOp, x, second)) == Values{3, 1, 7, 5, 11, 9}, "x[:, cols]");
  check(values(k::index_select(kOp, x, 0, rows)) == Values{8, 9, 10, 11, 0, 1, 2, 3}, "index_select");
  check_raises([&] { k::gather(kOp, x, 1, make({1, 1}, {7}, Dtype::I64)); }, ErrorKind::Index,
               "index 7 is out of range for dimension 1 with size 4");
  const Storage same = make({3}, {1, 1, 1}, Dtype::I64);
  check(values(k::index_add(kOp, make({3}, {0, 0, 0}), 0, same, make({3}, {1, 2, 3}), Scalar(1))) == Values{0, 6, 0},
        "repeated indices add up");
  Storage untouched = make({2}, {1, 2});
  const std::vector<Storage> bad{make({2}, {0, 9}, Dtype::I64)};
  check_raises([&] { k::index_put_(kOp, untouched, bad, make({2}, {7, 8}), false); }, ErrorKind::Index, "index 9");
  check(values(untouched) == Values{1, 2}, "nothing is written when an index is wrong");
  const Storage mask = make({3, 4}, {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, Dtype::Bool);
  check(values(k::masked_select(kOp, x, mask)) == Values{0, 7}, "masked_select");
  check(values(k::nonzero(kOp, mask)) == Values{0, 0, 1, 3}, "nonzero");
  check(values(k::unique(kOp, make({4}, {3, 1, 3, 2}))[0]) == Values{1, 2, 3}, "unique");
}

}  // namespace

int main() {
  for (int threads : {1, 4}) {
    set_num_threads(threads);
    test_elementwise();
    test_staging();
    test_views_and_shapes();
    test_reductions();
    test_indexing();
  }
  std::printf(failures ? "%d failures\n" : "kernels: all checks passed\n", failures);
  return failures ? 1 : 0;
}
