// Orthogonal factorisations and spectra: QR, eigenvalues, singular values, least squares.
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/linalg.h"
#include "kernels/linalg_support.h"

namespace tp::kernels {
namespace {

using lapack::Real;
using std::int64_t;

// LAPACK's iterations need not end on infinite values, and it looks for NaN alone.
constexpr int kNotFinite = std::numeric_limits<int>::min();

template <class T>
bool all_finite(const T* x, int64_t n) {
  const Real<T>* parts = reinterpret_cast<const Real<T>*>(x);
  bool ok = true;
  for (int64_t i = 0; i < n * int64_t(sizeof(T) / sizeof(Real<T>)); ++i) ok &= std::isfinite(parts[i]);
  return ok;
}
// Of the triangle that is read; columns of n.
template <class T>
bool triangle_finite(const T* x, int64_t n, bool lower) {
  for (int64_t j = 0; j < n; ++j)
    if (!all_finite(x + j * n + (lower ? j : 0), lower ? n - j : j + 1)) return false;
  return true;
}

[[noreturn]] void no_convergence(const OpSchema& op, int64_t i, int64_t count, int info) {
  if (info == kNotFinite)
    throw LinalgError(
        parts_text(op.name, ": the input", place(i, count), " holds NaN or infinite values; it needs finite ones"));
  throw LinalgError(
      parts_text(op.name, ": the computation did not converge", place(i, count), "; LAPACK reports ", info));
}
void check_infos(const OpSchema& op, const std::vector<int>& infos) {
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (TP_UNLIKELY(infos[i] != 0)) no_convergence(op, int64_t(i), int64_t(infos.size()), infos[i]);
}

struct Eigh {
  Storage w, v;
};
Eigh hermitian(const OpSchema& op, const Storage& A, std::string_view UPLO, bool vectors) {
  need_square(op, "A", A);
  if (TP_UNLIKELY(UPLO != "L" && UPLO != "U")) value_error(op.name, ": UPLO must be 'L' or 'U'; it is '", UPLO, "'");
  const LinalgDtype d = linalg_dtype(A.dtype());
  const Shape batch = batch_of(op, "A", A);
  const int64_t n = rows_of(A), count = product(batch);
  Storage v = columns_of(op, A, batch, d.work), w = empty(with_size(batch, n), real_dtype(d.work));
  std::vector<int> infos(static_cast<std::size_t>(count), 0);
  with_linalg_type(d.work, [&]<class T>(T) {
    T* p = v.data<T>();
    Real<T>* pw = w.data<Real<T>>();
    over_matrices(n == 0 ? 0 : count, 9 * cube(n, n), [&](int64_t i) {
      if (!triangle_finite(p + i * n * n, n, UPLO == "L")) {
        infos[std::size_t(i)] = kNotFinite;
        return;
      }
      const char job = vectors ? 'V' : 'N', part = UPLO[0];
      infos[std::size_t(i)] =
          apart(9 * cube(n, n), {array(p + i * n * n, n * n), array(pw + i * n, n, Array::Out)}, [=](void* const* at) {
            return lapack::eigh(job, part, int(n), static_cast<T*>(at[0]), leading(n), static_cast<Real<T>*>(at[1]));
          });
    });
  });
  check_infos(op, infos);
  return {in_result(w, real_dtype(d.result)), vectors ? in_result(v, d.result) : Storage()};
}

Eigh general(const OpSchema& op, const Storage& A, bool vectors) {
  need_square(op, "A", A);
  const LinalgDtype d = linalg_dtype(A.dtype());
  const Shape batch = batch_of(op, "A", A);
  const int64_t n = rows_of(A), count = product(batch);
  const Dtype complex = complex_dtype(d.work);
  Storage a = columns_of(op, A, batch, d.work), w = empty(with_size(batch, n), complex);
  Storage v = column_major(batch, vectors ? n : 0, n, complex);
  std::vector<int> infos(static_cast<std::size_t>(count), 0);
  with_linalg_type(d.work, [&]<class T>(T) {
    using C = std::conditional_t<sizeof(Real<T>) == 4, c64, c128>;
    T* p = a.data<T>();
    C *pw = w.data<C>(), *pv = v.data<C>();
    over_matrices(n == 0 ? 0 : count, 25 * cube(n, n), [&](int64_t i) {
      const char job = vectors ? 'V' : 'N';
      int& info = infos[std::size_t(i)];
      if (!all_finite(p + i * n * n, n * n)) {
        info = kNotFinite;
        return;
      }
      if constexpr (lapack::kComplex<T>) {
        info = apart(25 * cube(n, n),
                     {array(p + i * n * n, n * n), array(pw + i * n, n, Array::Out),
                      array(pv + i * n * n, vectors ? n * n : 0, Array::Out)},
                     [=](void* const* at) {
                       return lapack::geev(job, int(n), static_cast<T*>(at[0]), leading(n), static_cast<C*>(at[1]),
                                           static_cast<C*>(at[2]), leading(n));
                     });
      } else {
        Scratch<T> parts(2 * n), real(vectors ? n * n : 0);
        T *re = parts.get(), *im = re + n;
        info = apart(25 * cube(n, n),
                     {array(p + i * n * n, n * n), array(re, 2 * n, Array::Out),
                      array(real.get(), vectors ? n * n : 0, Array::Out)},
                     [=](void* const* at) {
                       T* parts = static_cast<T*>(at[1]);
                       return lapack::geev(job, int(n), static_cast<T*>(at[0]), leading(n), parts, parts + n,
                                           static_cast<T*>(at[2]), leading(n));
                     });
        for (int64_t j = 0; j < n; ++j) pw[i * n + j] = {re[j], im[j]};
        if (!vectors || info != 0) return;
        for (int64_t j = 0; j < n; ++j) {
          C* to = pv + i * n * n + j * n;
          // A conjugate pair shares two columns: real part, imaginary part.
          const bool pair = im[j] != 0 && j + 1 < n;
          for (int64_t r = 0; r < n; ++r) {
            const T x = real[j * n + r], y = pair ? real[(j + 1) * n + r] : T(0);
            to[r] = {x, y};
            if (pair) to[n + r] = {x, -y};
          }
          if (pair) ++j;
        }
      }
    });
  });
  check_infos(op, infos);
  const Dtype result = complex_dtype(d.result);
  return {in_result(w, result), vectors ? in_result(v, result) : Storage()};
}

struct Svd {
  Storage u, s, vh;
};
Svd singular(const OpSchema& op, const Storage& A, bool vectors, bool full) {
  const Shape batch = batch_of(op, "A", A);
  const LinalgDtype d = linalg_dtype(A.dtype());
  const int64_t m = rows_of(A), n = cols_of(A), k = std::min(m, n), count = product(batch);
  const int64_t uc = !vectors ? 0 : full ? m : k, vr = !vectors ? 0 : full ? n : k;
  Storage a = columns_of(op, A, batch, d.work), s = empty(with_size(batch, k), real_dtype(d.work));
  Storage u = column_major(batch, m, uc, d.work), vh = column_major(batch, vr, n, d.work);
  std::vector<int> infos(static_cast<std::size_t>(count), 0);
  with_linalg_type(d.work, [&]<class T>(T) {
    T *p = a.data<T>(), *pu = u.data<T>(), *pv = vh.data<T>();
    Real<T>* ps = s.data<Real<T>>();
    const auto unit = [](T* x, int64_t size) {
      for (int64_t i = 0; i < size * size; ++i) {
        x[i] = T{};
        if (i % (size + 1) == 0) reinterpret_cast<Real<T>*>(x + i)[0] = 1;
      }
    };
    if (k == 0) {
      for (int64_t i = 0; i < count; ++i) {
        if (uc == m) unit(pu + i * m * m, m);
        if (vr == n) unit(pv + i * n * n, n);
      }
      return;
    }
    over_matrices(count, 20 * cube(m, n), [&](int64_t i) {
      if (!all_finite(p + i * m * n, m * n)) {
        infos[std::size_t(i)] = kNotFinite;
        return;
      }
      const char job = vectors ? (full ? 'A' : 'S') : 'N';
      infos[std::size_t(i)] = apart(
          20 * cube(m, n),
          {array(p + i * m * n, m * n), array(ps + i * k, k, Array::Out), array(pu + i * m * uc, m * uc, Array::Out),
           array(pv + i * vr * n, vr * n, Array::Out)},
          [=](void* const* at) {
            return lapack::gesdd(job, int(m), int(n), static_cast<T*>(at[0]), leading(m), static_cast<Real<T>*>(at[1]),
                                 static_cast<T*>(at[2]), leading(m), static_cast<T*>(at[3]), leading(vr));
          });
    });
  });
  check_infos(op, infos);
  return {in_result(u, d.result), in_result(s, real_dtype(d.result)), in_result(vh, d.result)};
}

}  // namespace

std::array<Storage, 2> linalg_qr(const OpSchema& op, const Storage& A, std::string_view mode) {
  const bool complete = mode == "complete", only_r = mode == "r";
  if (TP_UNLIKELY(!complete && !only_r && mode != "reduced"))
    value_error(op.name, ": mode must be 'reduced', 'complete' or 'r'; it is '", mode, "'");
  const Shape batch = batch_of(op, "A", A);
  const LinalgDtype d = linalg_dtype(A.dtype());
  const int64_t m = rows_of(A), n = cols_of(A), k = std::min(m, n), count = product(batch);
  const int64_t qc = only_r ? 0 : complete ? m : k, rr = complete ? m : k;
  const Storage a = columns_of(op, A, batch, d.work);
  Storage q = only_r ? empty({0}, d.work) : column_major(batch, m, qc, d.work), r = column_major(batch, rr, n, d.work);
  with_linalg_type(d.work, [&]<class T>(T) {
    T *p = a.data<T>(), *pq = q.data<T>(), *pr = r.data<T>();
    over_matrices(count, 4 * double(m) * double(std::max(n, qc)) * double(std::max<int64_t>(k, 1)), [&](int64_t i) {
      T *x = p + i * m * n, *to_r = pr + i * rr * n, *to_q = pq + i * m * qc;
      Scratch<T> tau(k);
      const double flops = 2 * cube(m, n);
      if (k > 0)
        apart(flops, {array(x, m * n), array(tau.get(), k, Array::Out)}, [=](void* const* at) {
          return lapack::geqrf(int(m), int(n), static_cast<T*>(at[0]), leading(m), static_cast<T*>(at[1]));
        });
      for (int64_t c = 0; c < n; ++c)
        for (int64_t row = 0; row < rr; ++row) to_r[c * rr + row] = row <= c && row < k ? x[c * m + row] : T{};
      if (qc == 0 || m == 0) return;
      for (int64_t c = 0; c < qc; ++c)
        for (int64_t row = 0; row < m; ++row) to_q[c * m + row] = c < k ? x[c * m + row] : T{};
      apart(flops, {array(to_q, m * qc), array(tau.get(), k, Array::In)}, [=](void* const* at) {
        return lapack::orgqr(int(m), int(qc), int(k), static_cast<T*>(at[0]), leading(m), static_cast<T*>(at[1]));
      });
    });
  });
  return {in_result(q, d.result), in_result(r, d.result)};
}

std::array<Storage, 2> linalg_eigh(const OpSchema& op, const Storage& A, std::string_view UPLO) {
  Eigh e = hermitian(op, A, UPLO, true);
  return {e.w, e.v};
}
Storage linalg_eigvalsh(const OpSchema& op, const Storage& A, std::string_view UPLO) {
  return hermitian(op, A, UPLO, false).w;
}
std::array<Storage, 2> linalg_eig(const OpSchema& op, const Storage& A) {
  Eigh e = general(op, A, true);
  return {e.w, e.v};
}
Storage linalg_eigvals(const OpSchema& op, const Storage& A) { return general(op, A, false).w; }

std::array<Storage, 3> linalg_svd(const OpSchema& op, const Storage& A, bool full_matrices) {
  Svd s = singular(op, A, true, full_matrices);
  return {s.u, s.s, s.vh};
}
Storage linalg_svdvals(const OpSchema& op, const Storage& A) { return singular(op, A, false, false).s; }

std::array<Storage, 4> linalg_lstsq(const OpSchema& op, const Storage& A, const Storage& B,
                                    std::optional<double> rcond) {
  batch_of(op, "A", A);
  const bool vector = B.dim() == A.dim() - 1;
  Storage b = B;
  if (vector) {
    Shape sizes = B.sizes();
    sizes.push_back(1);
    b = reshaped(B, sizes);
  }
  if (TP_UNLIKELY(b.dim() < 2 || rows_of(b) != rows_of(A)))
    value_error(op.name, ": B needs as many rows as A: A is ", A.sizes(), ", B is ", B.sizes());
  Promotion promotion;
  promotion.add(A.dtype(), false, false);
  promotion.add(B.dtype(), false, false);
  const LinalgDtype d = linalg_dtype(promotion.result());
  const Shape batch = joined_batch(op, A, b);
  const int64_t m = rows_of(A), n = cols_of(A), k = std::min(m, n), rhs = cols_of(b), count = product(batch);
  const int64_t tall = std::max(m, n);
  const Storage a = columns_of(op, A, batch, d.work);
  Storage x = column_major(batch, tall, rhs, d.work);
  std::fill_n(x.raw(), x.nbytes(), char(0));
  Shape upper = with_matrix(batch, m, rhs);
  Storage rows = x.with_geometry(upper, x.strides(), x.offset());
  copy_broadcast(op.name, rows, b);
  Storage rank = empty(batch, Dtype::I64), values = empty(with_size(batch, k), real_dtype(d.work));
  std::vector<int> infos(static_cast<std::size_t>(count), 0);
  bool full_rank = true;
  with_linalg_type(d.work, [&]<class T>(T) {
    const double machine = sizeof(Real<T>) == 4 ? 0x1p-23 : 0x1p-52;
    const Real<T> limit = Real<T>(rcond ? *rcond : machine * double(tall));
    T *pa = a.data<T>(), *px = x.data<T>();
    Real<T>* ps = values.data<Real<T>>();
    over_matrices(count, 20 * cube(m, n), [&](int64_t i) {
      int found = 0;
      if (!all_finite(pa + i * m * n, m * n) || !all_finite(px + i * tall * rhs, tall * rhs))
        infos[std::size_t(i)] = kNotFinite;
      else if (k > 0)
        infos[std::size_t(i)] = apart(
            20 * cube(m, n),
            {array(pa + i * m * n, m * n), array(px + i * tall * rhs, tall * rhs), array(ps + i * k, k, Array::Out),
             array(&found, 1, Array::Out)},
            [=](void* const* at) {
              return lapack::gelsd(int(m), int(n), int(rhs), static_cast<T*>(at[0]), leading(m), static_cast<T*>(at[1]),
                                   leading(tall), static_cast<Real<T>*>(at[2]), limit, static_cast<int*>(at[3]));
            });
      else
        std::fill_n(px + i * tall * rhs, tall * rhs, T{});
      rank.data<int64_t>()[i] = found;
    });
    for (int64_t i = 0; i < count; ++i) full_rank &= rank.data<int64_t>()[i] == n;
  });
  check_infos(op, infos);
  // Residuals exist where every system is overdetermined and of full rank; they are left in the rows below the solution.
  Storage residuals = empty({0}, real_dtype(d.work));
  if (m > n && full_rank) {
    residuals = empty(with_size(batch, rhs), real_dtype(d.work));
    with_linalg_type(d.work, [&]<class T>(T) {
      for (int64_t i = 0; i < count * rhs; ++i) {
        Real<T> s = 0;
        const Real<T>* v = reinterpret_cast<const Real<T>*>(x.data<T>() + i * tall + n);
        for (int64_t j = 0; j < (m - n) * int64_t(sizeof(T) / sizeof(Real<T>)); ++j) s += v[j] * v[j];
        residuals.data<Real<T>>()[i] = s;
      }
    });
  }
  Storage solution = x.with_geometry(with_matrix(batch, n, rhs), x.strides(), x.offset());
  if (vector) solution = reshaped(solution, with_size(batch, n));
  return {in_result(solution, d.result), in_result(residuals, real_dtype(d.result)), rank,
          in_result(values, real_dtype(d.result))};
}

}  // namespace tp::kernels
