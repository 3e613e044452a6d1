// Cholesky, LU and what follows from them: systems, inverses, determinants.
#include <cmath>

#include "kernels/linalg.h"
#include "kernels/linalg_support.h"

namespace tp::kernels {
namespace {

using lapack::Real;
using std::int64_t;

template <class T>
T one() {
  if constexpr (lapack::kComplex<T>)
    return T{1, 0};
  else
    return T(1);
}
template <class T>
Real<T> magnitude(T x) {
  if constexpr (lapack::kComplex<T>)
    return std::hypot(x.re, x.im);
  else
    return std::abs(x);
}

void check_info(const OpSchema& op, const Storage& info, const char* what) {
  const std::int32_t* v = info.data<std::int32_t>();
  for (int64_t i = 0; i < info.numel(); ++i)
    if (TP_UNLIKELY(v[i] != 0))
      throw LinalgError(
          parts_text(op.name, ": the input is ", what, place(i, info.numel()), "; first seen at row ", v[i] - 1));
}

struct Lu {
  Storage lu, pivots, info;  // lu column-major
};
Lu factor(const OpSchema& op, const Storage& a, Dtype work) {
  const Shape batch = batch_of(op, "A", a);
  const int64_t m = rows_of(a), n = cols_of(a), k = std::min(m, n), count = product(batch);
  Lu f{columns_of(op, a, batch, work), empty(with_size(batch, k), Dtype::I32), empty(batch, Dtype::I32)};
  with_linalg_type(work, [&]<class T>(T) {
    T* p = f.lu.data<T>();
    std::int32_t *pivots = f.pivots.data<std::int32_t>(), *info = f.info.data<std::int32_t>();
    over_matrices(count, cube(m, n), [&](int64_t i) {
      info[i] = k == 0
          ? 0
          : apart(cube(m, n), {array(p + i * m * n, m * n), array(pivots + i * k, k, Array::Out)},
                  [=](void* const* at) {
                    return lapack::getrf(int(m), int(n), static_cast<T*>(at[0]), leading(m), static_cast<int*>(at[1]));
                  });
    });
  });
  return f;
}

/// Whether B stands for one right-hand side per matrix of A.
bool is_vector(const Storage& a, const Storage& b) {
  if (b.dim() == 1) return true;
  if (b.dim() != a.dim() - 1) return false;
  for (int i = 0; i < b.dim(); ++i)
    if (b.size(i) != a.size(i)) return false;
  return true;
}
Storage as_column(const Storage& b) {
  Shape sizes = b.sizes();
  sizes.push_back(1);
  return reshaped(b, sizes);
}
Storage transposed(const Storage& s) {
  Shape sizes = s.sizes();
  Strides strides = s.strides();
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return s.with_geometry(sizes, strides, s.offset());
}

Dtype common(const Storage& a, const Storage& b) {
  Promotion p;
  p.add(a.dtype(), false, false);
  p.add(b.dtype(), false, false);
  return p.result();
}

void need_matching(const OpSchema& op, const Storage& a, const Storage& b, bool left) {
  need_square(op, "A", a);
  batch_of(op, "B", b);
  if (TP_UNLIKELY((left ? rows_of(b) : cols_of(b)) != rows_of(a)))
    value_error(op.name, ": sizes do not match: A is ", a.sizes(), ", B is ", b.sizes(),
                left ? "; B needs as many rows as A" : "; B needs as many columns as A");
}

/// X with op(A) X = B, B column-major and overwritten; lu over the same batch.
void solve_columns(const Storage& lu, const Storage& pivots, Storage& b, char trans) {
  const int64_t n = rows_of(lu), rhs = cols_of(b), count = n == 0 ? 0 : lu.numel() / (n * n);
  with_linalg_type(lu.dtype(), [&]<class T>(T) {
    const T* a = lu.data<T>();
    T* x = b.data<T>();
    const std::int32_t* p = pivots.data<std::int32_t>();
    over_matrices(count, double(n) * double(n) * double(rhs), [&](int64_t i) {
      apart(2 * double(n) * double(n) * double(rhs),
            {array(a + i * n * n, n * n, Array::In), array(p + i * n, n, Array::In), array(x + i * n * rhs, n * rhs)},
            [=](void* const* at) {
              return lapack::getrs(trans, int(n), int(rhs), static_cast<T*>(at[0]), leading(n),
                                   static_cast<int*>(at[1]), static_cast<T*>(at[2]), leading(n));
            });
    });
  });
}

/// For X A = B: the transposed system A^T X^T = B^T.
Storage solve_with(const OpSchema& op, const Storage& lu, const Storage& pivots, const Storage& b, const Shape& batch,
                   bool left, bool adjoint) {
  if (left) {
    Storage x = columns_of(op, b, batch, lu.dtype());
    solve_columns(lu, pivots, x, adjoint ? 'C' : 'N');
    return x;
  }
  Storage x = columns_of(op, transposed(b), batch, lu.dtype());
  if (!adjoint) {
    solve_columns(lu, pivots, x, 'T');
    return transposed(x);
  }
  // X A^H = B is conj(A) X^T = B^T: conjugated on both sides of A X' = B'.
  const auto conjugate = [&] {
    if (lu.dtype() == Dtype::C64)
      for (int64_t i = 0; i < x.numel(); ++i) x.data<c64>()[i].im = -x.data<c64>()[i].im;
    if (lu.dtype() == Dtype::C128)
      for (int64_t i = 0; i < x.numel(); ++i) x.data<c128>()[i].im = -x.data<c128>()[i].im;
  };
  conjugate();
  solve_columns(lu, pivots, x, 'N');
  conjugate();
  return transposed(x);
}

}  // namespace

std::array<Storage, 2> linalg_cholesky_ex(const OpSchema& op, const Storage& input, bool upper) {
  need_square(op, "input", input);
  const LinalgDtype d = linalg_dtype(input.dtype());
  const Shape batch = batch_of(op, "input", input);
  const int64_t n = rows_of(input), count = product(batch);
  Storage c = columns_of(op, input, batch, d.work), info = empty(batch, Dtype::I32);
  with_linalg_type(d.work, [&]<class T>(T) {
    T* p = c.data<T>();
    std::int32_t* v = info.data<std::int32_t>();
    over_matrices(count, cube(n, n) / 3, [&](int64_t i) {
      T* a = p + i * n * n;
      v[i] = n == 0 ? 0 : apart(cube(n, n) / 3, {array(a, n * n)}, [=](void* const* at) {
        return lapack::potrf(upper ? 'U' : 'L', int(n), static_cast<T*>(at[0]), leading(n));
      });
      for (int64_t col = 0; col < n; ++col)
        upper ? std::fill(a + col * n + col + 1, a + (col + 1) * n, T{})
              : std::fill(a + col * n, a + col * n + col, T{});
    });
  });
  return {in_result(c, d.result), info};
}

Storage linalg_cholesky(const OpSchema& op, const Storage& input, bool upper) {
  auto r = linalg_cholesky_ex(op, input, upper);
  check_info(op, r[1], "not positive definite");
  return r[0];
}

std::array<Storage, 3> linalg_lu_factor_ex(const OpSchema& op, const Storage& input) {
  const LinalgDtype d = linalg_dtype(input.dtype());
  Lu f = factor(op, input, d.work);
  return {in_result(f.lu, d.result), f.pivots, f.info};
}
std::array<Storage, 2> linalg_lu_factor(const OpSchema& op, const Storage& input) {
  auto r = linalg_lu_factor_ex(op, input);
  return {r[0], r[1]};
}

std::array<Storage, 3> linalg_lu(const OpSchema& op, const Storage& input) {
  const LinalgDtype d = linalg_dtype(input.dtype());
  const Lu f = factor(op, input, d.work);
  const Shape batch = batch_of(op, "input", input);
  const int64_t m = rows_of(input), n = cols_of(input), k = std::min(m, n), count = product(batch);
  Storage p = zeros_storage(with_matrix(batch, m, m), d.work), l = empty(with_matrix(batch, m, k), d.work),
          u = empty(with_matrix(batch, k, n), d.work);
  with_linalg_type(d.work, [&]<class T>(T) {
    Scratch<int64_t> order(m);
    for (int64_t b = 0; b < count; ++b) {
      const T* a = f.lu.data<T>() + b * m * n;
      T *pl = l.data<T>() + b * m * k, *pu = u.data<T>() + b * k * n, *pp = p.data<T>() + b * m * m;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < k; ++j) pl[i * k + j] = i > j ? a[j * m + i] : i == j ? one<T>() : T{};
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) pu[i * n + j] = i <= j ? a[j * m + i] : T{};
      for (int64_t i = 0; i < m; ++i) order[i] = i;
      for (int64_t i = 0; i < k; ++i) std::swap(order[i], order[f.pivots.data<std::int32_t>()[b * k + i] - 1]);
      for (int64_t i = 0; i < m; ++i) pp[order[i] * m + i] = one<T>();
    }
  });
  return {in_result(p, d.result), in_result(l, d.result), in_result(u, d.result)};
}

Storage linalg_lu_solve(const OpSchema& op, const Storage& LU, const Storage& pivots, const Storage& B, bool left,
                        bool adjoint) {
  need_matching(op, LU, B, left);
  if (TP_UNLIKELY(pivots.dim() != LU.dim() - 1 || pivots.size(pivots.dim() - 1) != rows_of(LU)))
    value_error(op.name, ": pivots of sizes ", pivots.sizes(), " do not belong to LU of ", LU.sizes());
  const LinalgDtype d = linalg_dtype(common(LU, B));
  const Shape batch = joined_batch(op, LU, B);
  Storage p = empty(with_size(batch, rows_of(LU)), Dtype::I32);
  copy_broadcast(op.name, p, pivots);
  const int64_t n = rows_of(LU);
  for (int64_t i = 0; i < p.numel(); ++i)
    if (TP_UNLIKELY(p.data<std::int32_t>()[i] < 1 || p.data<std::int32_t>()[i] > n))
      value_error(op.name, ": pivots must lie between 1 and ", n, "; one is ", p.data<std::int32_t>()[i]);
  return in_result(solve_with(op, columns_of(op, LU, batch, d.work), p, B, batch, left, adjoint), d.result);
}

Storage linalg_solve(const OpSchema& op, const Storage& A, const Storage& B, bool left) {
  need_square(op, "A", A);
  const bool vector = is_vector(A, B);
  if (TP_UNLIKELY(vector && !left)) value_error(op.name, ": left=False needs a matrix B; it is ", B.sizes());
  const Storage b = vector ? as_column(B) : B;
  need_matching(op, A, b, left);
  const LinalgDtype d = linalg_dtype(common(A, B));
  const Shape batch = joined_batch(op, A, b);
  Storage wide = A;
  if (!(batch_of(op, "A", A) == batch)) wide = expanded(A, with_matrix(batch, rows_of(A), cols_of(A)));
  const Lu f = factor(op, wide, d.work);
  check_info(op, f.info, "singular");
  Storage x = solve_with(op, f.lu, f.pivots, b, batch, left, false);
  if (vector) {
    Shape sizes = x.sizes();
    sizes.resize(sizes.size() - 1);
    x = reshaped(x, sizes);
  }
  return in_result(x, d.result);
}

Storage linalg_solve_triangular(const OpSchema& op, const Storage& A, const Storage& B, bool upper, bool left,
                                bool unitriangular) {
  need_matching(op, A, B, left);
  const LinalgDtype d = linalg_dtype(common(A, B));
  const Shape batch = joined_batch(op, A, B);
  const Storage a = columns_of(op, A, batch, d.work);
  Storage x = columns_of(op, left ? B : transposed(B), batch, d.work);
  const int64_t n = rows_of(a), rhs = cols_of(x), count = product(batch);
  with_linalg_type(d.work, [&]<class T>(T) {
    const T* pa = a.data<T>();
    T* px = x.data<T>();
    over_matrices(n == 0 || rhs == 0 ? 0 : count, double(n) * double(n) * double(rhs), [&](int64_t i) {
      const int info =
          apart(double(n) * double(n) * double(rhs),
                {array(pa + i * n * n, n * n, Array::In), array(px + i * n * rhs, n * rhs)}, [=](void* const* at) {
                  return lapack::trtrs(upper ? 'U' : 'L', left ? 'N' : 'T', unitriangular ? 'U' : 'N', int(n), int(rhs),
                                       static_cast<T*>(at[0]), leading(n), static_cast<T*>(at[1]), leading(n));
                });
      if (info <= 0) return;
      // A zero on the diagonal: the library leaves B alone; substitution would divide by it.
      for (int64_t j = 0; j < n * rhs; ++j)
        px[i * n * rhs + j] = px[i * n * rhs + j] / pa[i * n * n + (info - 1) * (n + 1)];
    });
  });
  return in_result(left ? x : transposed(x), d.result);
}

std::array<Storage, 2> linalg_inv_ex(const OpSchema& op, const Storage& A) {
  need_square(op, "A", A);
  const LinalgDtype d = linalg_dtype(A.dtype());
  Lu f = factor(op, A, d.work);
  const int64_t n = rows_of(A), count = f.info.numel();
  with_linalg_type(d.work, [&]<class T>(T) {
    T* p = f.lu.data<T>();
    over_matrices(n == 0 ? 0 : count, 2 * cube(n, n), [&](int64_t i) {
      if (f.info.data<std::int32_t>()[i] == 0)
        apart(2 * cube(n, n), {array(p + i * n * n, n * n), array(f.pivots.data<std::int32_t>() + i * n, n, Array::In)},
              [=](void* const* at) {
                return lapack::getri(int(n), static_cast<T*>(at[0]), leading(n), static_cast<int*>(at[1]));
              });
    });
  });
  return {in_result(f.lu, d.result), f.info};
}

Storage linalg_inv(const OpSchema& op, const Storage& A) {
  auto r = linalg_inv_ex(op, A);
  check_info(op, r[1], "singular");
  return r[0];
}

std::array<Storage, 2> linalg_slogdet(const OpSchema& op, const Storage& A) {
  need_square(op, "A", A);
  const LinalgDtype d = linalg_dtype(A.dtype());
  const Lu f = factor(op, A, d.work);
  const int64_t n = rows_of(A), count = f.info.numel();
  Storage sign = empty(f.info.sizes(), d.work), log = empty(f.info.sizes(), real_dtype(d.work));
  with_linalg_type(d.work, [&]<class T>(T) {
    for (int64_t b = 0; b < count; ++b) {
      const T* a = f.lu.data<T>() + b * n * n;
      T s = one<T>();
      Real<T> sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        const T v = a[i * (n + 1)];
        const Real<T> m = magnitude(v);
        sum += std::log(m);
        s = m == 0 ? T{} : s * (v / m);
        if (f.pivots.data<std::int32_t>()[b * n + i] != i + 1) s = -s;
      }
      sign.data<T>()[b] = s;
      log.data<Real<T>>()[b] = sum;
    }
  });
  return {in_result(sign, d.result), in_result(log, real_dtype(d.result))};
}

Storage linalg_det(const OpSchema& op, const Storage& A) {
  need_square(op, "A", A);
  const LinalgDtype d = linalg_dtype(A.dtype());
  const Lu f = factor(op, A, d.work);
  const int64_t n = rows_of(A);
  Storage det = empty(f.info.sizes(), d.work);
  with_linalg_type(d.work, [&]<class T>(T) {
    for (int64_t b = 0; b < det.numel(); ++b) {
      T v = one<T>();
      for (int64_t i = 0; i < n; ++i) {
        v = v * f.lu.data<T>()[b * n * n + i * (n + 1)];
        if (f.pivots.data<std::int32_t>()[b * n + i] != i + 1) v = -v;
      }
      det.data<T>()[b] = v;
    }
  });
  return in_result(det, d.result);
}

}  // namespace tp::kernels
