// Functions of matrices: pseudoinverse, exponential; and the small pieces that the formulas of factorisations need.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/linalg.h"
#include "kernels/linalg_support.h"

namespace tp::kernels {

LinalgError::~LinalgError() = default;

namespace {

using lapack::Real;
using std::int64_t;

template <class T>
Real<T> magnitude(T x) {
  if constexpr (lapack::kComplex<T>)
    return std::hypot(x.re, x.im);
  else
    return std::abs(x);
}
template <class T>
T number(double x) {
  if constexpr (lapack::kComplex<T>)
    return T{Real<T>(x), 0};
  else
    return T(x);
}
template <class T>
T conjugated(T x) {
  if constexpr (lapack::kComplex<T>)
    return T{x.re, -x.im};
  else
    return x;
}

// exp of one column-major matrix by the diagonal Pade approximant of order 13, scaled and squared (Higham 2005).
// work: 6 n n elements.
template <class T>
void exponential(int64_t n, T* a, T* work, int* pivots) {
  static constexpr double kCoefficients[] = {64764752532480000.,
                                             32382376266240000.,
                                             7771770303897600.,
                                             1187353796428800.,
                                             129060195264000.,
                                             10559470521600.,
                                             670442572800.,
                                             33522128640.,
                                             1323241920.,
                                             40840800.,
                                             960960.,
                                             16380.,
                                             182.,
                                             1.};
  const int64_t nn = n * n;
  double norm = 0;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += double(magnitude(a[j * n + i]));
    norm = sum > norm || sum != sum ? sum : norm;
  }
  if (!std::isfinite(norm)) {
    std::fill_n(a, nn, number<T>(std::numeric_limits<double>::quiet_NaN()));
    return;
  }
  if (norm == 0) {
    for (int64_t i = 0; i < n; ++i) a[i * (n + 1)] = number<T>(1);
    return;
  }
  int squarings = 0;
  if (norm > 5.371920351148152) squarings = std::max(0, int(std::ceil(std::log2(norm / 5.371920351148152))));
  const T scale = number<T>(std::ldexp(1.0, -squarings));
  for (int64_t i = 0; i < nn; ++i) a[i] = a[i] * scale;
  T *a2 = work, *a4 = a2 + nn, *a6 = a4 + nn, *u = a6 + nn, *v = u + nn, *t = v + nn;
  // Column-major products: the transposes multiply in the other order.
  const auto product = [&](const T* x, const T* y, T* to) {
    gemm_serial<T>(n, n, n, number<T>(1), {y, n, 1}, {x, n, 1}, number<T>(0), to, n);
  };
  const auto c = [&](int i) { return number<T>(kCoefficients[i]); };
  product(a, a, a2);
  product(a2, a2, a4);
  product(a4, a2, a6);
  for (int64_t i = 0; i < nn; ++i) t[i] = a6[i] * c(13) + a4[i] * c(11) + a2[i] * c(9);
  product(a6, t, v);
  for (int64_t i = 0; i < nn; ++i) v[i] = v[i] + a6[i] * c(7) + a4[i] * c(5) + a2[i] * c(3);
  for (int64_t i = 0; i < n; ++i) v[i * (n + 1)] = v[i * (n + 1)] + c(1);
  product(a, v, u);
  for (int64_t i = 0; i < nn; ++i) t[i] = a6[i] * c(12) + a4[i] * c(10) + a2[i] * c(8);
  product(a6, t, v);
  for (int64_t i = 0; i < nn; ++i) v[i] = v[i] + a6[i] * c(6) + a4[i] * c(4) + a2[i] * c(2);
  for (int64_t i = 0; i < n; ++i) v[i * (n + 1)] = v[i * (n + 1)] + c(0);
  for (int64_t i = 0; i < nn; ++i) {
    a[i] = v[i] + u[i];
    t[i] = v[i] - u[i];
  }
  lapack::getrf(int(n), int(n), t, int(n), pivots);
  lapack::getrs('N', int(n), int(n), t, int(n), pivots, a, int(n));
  for (int k = 0; k < squarings; ++k) {
    product(a, a, t);
    std::copy_n(t, nn, a);
  }
}

}  // namespace

Storage linalg_matrix_exp(const OpSchema& op, const Storage& input) {
  need_square(op, "input", input);
  const LinalgDtype d = linalg_dtype(input.dtype());
  const Shape batch = batch_of(op, "input", input);
  const int64_t n = rows_of(input), count = product(batch);
  Storage a = columns_of(op, input, batch, d.work);
  with_linalg_type(d.work, [&]<class T>(T) {
    T* p = a.data<T>();
    over_matrices(n == 0 ? 0 : count, 16 * cube(n, n), [&](int64_t i) {
      Scratch<T> work(6 * n * n);
      Scratch<int> pivots(n);
      exponential(n, p + i * n * n, work.get(), pivots.get());
    });
  });
  return in_result(a, d.result);
}

Storage linalg_pinv(const OpSchema& op, const Storage& A, std::optional<double> atol, std::optional<double> rtol,
                    bool hermitian) {
  if (hermitian) need_square(op, "A", A);
  const Shape batch = batch_of(op, "A", A);
  const LinalgDtype d = linalg_dtype(A.dtype());
  const int64_t m = rows_of(A), n = cols_of(A), k = std::min(m, n), count = product(batch);
  Storage out = column_major(batch, n, m, d.work);
  if (k == 0) {
    std::fill_n(out.raw(), out.nbytes(), char(0));
    return in_result(out, d.result);
  }
  // A hermitian matrix is U diag(w) U^H: its singular values are |w|, and the sign goes with one side.
  Storage u, s, vh;
  if (hermitian) {
    auto r = linalg_eigh(op, cast(A, d.work), "L");
    s = contiguous(r[0]);
    u = contiguous(r[1]);
  } else {
    auto r = linalg_svd(op, cast(A, d.work), false);
    u = contiguous(r[0]);
    s = contiguous(r[1]);
    vh = contiguous(r[2]);
  }
  const double machine = real_dtype(d.result) == Dtype::F64 ? 0x1p-52
      : real_dtype(d.result) == Dtype::F32                  ? 0x1p-23
                                                            : 0x1p-10;
  const double relative = rtol ? *rtol : atol && *atol > 0 ? 0.0 : machine * double(std::max(m, n));
  with_linalg_type(d.work, [&]<class T>(T) {
    const T *pu = u.data<T>(), *pv = hermitian ? nullptr : vh.data<T>();
    Real<T>* ps = s.data<Real<T>>();
    T* to = out.data<T>();
    over_matrices(count, 2 * double(m) * double(n) * double(k), [&](int64_t i) {
      Real<T>* values = ps + i * k;
      Real<T> largest = 0;
      for (int64_t j = 0; j < k; ++j) largest = std::max(largest, std::abs(values[j]));
      const double cut = std::max(atol.value_or(0.0), relative * double(largest));
      // Column r of the result (n by m): the sum over j of conj(vh[j, :]) / s_j * conj(u[r, j]).
      Scratch<T> scaled(k * n);
      for (int64_t j = 0; j < k; ++j) {
        const bool zero = !(double(std::abs(values[j])) > cut);
        const T inverse = zero ? T{} : number<T>(1 / double(values[j]));
        for (int64_t c = 0; c < n; ++c)
          scaled[j * n + c] = (hermitian ? pu[i * n * n + c * n + j] : conjugated(pv[i * k * n + j * n + c])) * inverse;
      }
      // conj(u) times scaled, row-major m by n: the column-major result.
      Scratch<T> left(m * k);
      for (int64_t r = 0; r < m * k; ++r) left[r] = conjugated(pu[i * m * k + r]);
      gemm_serial<T>(m, n, k, number<T>(1), {left.get(), k, 1}, {scaled.get(), n, 1}, number<T>(0), to + i * m * n, n);
    });
  });
  return in_result(out, d.result);
}

Storage linalg_checked_info(const OpSchema&, const Storage& info, bool check, std::string_view caller,
                            std::string_view what) {
  Storage out = empty(info.sizes(), info.dtype());
  copy_into(out, info);
  const std::int32_t* v = out.data<std::int32_t>();
  for (int64_t i = 0; check && i < out.numel(); ++i)
    if (TP_UNLIKELY(v[i] != 0))
      throw LinalgError(
          parts_text(caller, ": the input is ", what, place(i, out.numel()), "; first seen at row ", v[i] - 1));
  return out;
}

Storage linalg_permutation(const OpSchema& op, const Storage& pivots, int64_t n, Dtype dtype) {
  if (TP_UNLIKELY(pivots.dim() == 0 || pivots.dtype() != Dtype::I32))
    value_error(op.name, ": pivots must be int32 rows of exchanges, as linalg.lu_factor gives them");
  const Storage p = contiguous(pivots);
  const int64_t k = p.size(p.dim() - 1);
  Shape batch = p.sizes();
  batch.resize(p.dim() - 1);
  const int64_t count = product(batch);
  Storage out = zeros_storage(with_matrix(batch, n, n), Dtype::F32);
  Scratch<int64_t> order(n);
  for (int64_t b = 0; b < count; ++b) {
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t other = p.data<std::int32_t>()[b * k + i] - 1;
      if (TP_UNLIKELY(other < 0 || other >= n))
        value_error(op.name, ": pivots must lie between 1 and ", n, "; one is ", other + 1);
      std::swap(order[i], order[other]);
    }
    for (int64_t i = 0; i < n; ++i) out.data<float>()[(b * n + order[i]) * n + i] = 1;
  }
  return cast(out, dtype);
}

Storage linalg_checked_pivots(const OpSchema& op, const Storage& pivots, const Storage& info, std::string_view caller) {
  linalg_checked_info(op, info, true, caller, "singular");
  Storage out = empty(pivots.sizes(), pivots.dtype());
  copy_into(out, pivots);
  return out;
}

std::array<Storage, 3> linalg_lu_core(const OpSchema& op, const Storage& A, bool pivot) {
  if (TP_UNLIKELY(!pivot)) runtime_error("linalg.lu: pivot=False is not available on the CPU; leave pivot at True");
  return linalg_lu_factor_ex(op, A);
}

Storage linalg_refused(const OpSchema&, const Storage&, std::string_view message) { runtime_error(message); }

}  // namespace tp::kernels
