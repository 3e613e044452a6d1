// Shapes, promotion and batching of matrix products.
#include "kernels/matmul.h"

#include <vector>

#include "core/errors.h"
#include "core/modes.h"
#include "core/parallel_for.h"
#include "kernels/gemm.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

using std::int64_t;

Dtype product_dtype(const OpSchema& op, std::initializer_list<const Storage*> operands) {
  Promotion p;
  for (const Storage* s : operands)
    if (s->defined()) p.add(s->dtype(), s->dim() == 0, s->wrapped_number());
  const Dtype d = p.result();
  if (TP_UNLIKELY(d == Dtype::Bool))
    type_error(op.name, ": bool has no product of sums; convert the inputs to an integer or floating dtype");
  return d;
}

Dtype work_dtype(Dtype d) { return dtype_of(compute_type(d)); }
Storage as_dtype(const Storage& s, Dtype d) { return s.dtype() == d ? s : cast(s, d); }
Storage finish(Storage out, Dtype d) { return out.dtype() == d ? out : cast(out, d); }

/// One operand seen as a batch of matrices.
struct Operand {
  const Storage* s;
  int64_t rows, cols, rs, cs;
  int batch_dims;
  template <class T>
  MatRef<T> ref() const {
    return {s->data<T>(), rs, cs};
  }
};
Operand as_matrices(const Storage& s) {
  const int d = s.dim();
  return {&s, s.size(d - 2), s.size(d - 1), s.stride(d - 2), s.stride(d - 1), d - 2};
}
Operand as_row(const Storage& s) { return {&s, 1, s.size(0), s.size(0) * s.stride(0), s.stride(0), 0}; }
Operand as_column(const Storage& s) { return {&s, s.size(0), 1, s.stride(0), 1, 0}; }

Shape batch_shape(const OpSchema& op, const Storage& a, int na, const Storage& b, int nb) {
  Shape out(na > nb ? na : nb, 1);
  const int n = out.size();
  for (int i = 0; i < n; ++i) {
    const int64_t x = i >= n - na ? a.size(i - (n - na)) : 1, y = i >= n - nb ? b.size(i - (n - nb)) : 1;
    if (TP_UNLIKELY(x != y && x != 1 && y != 1))
      value_error(op.name, ": batch sizes do not broadcast: input is ", a.sizes(), ", other is ", b.sizes());
    out[i] = x == 1 ? y : x;
  }
  return out;
}

/// Where each matrix of the batch starts: one step when the batch dimensions collapse, a list otherwise.
struct Starts {
  std::vector<int64_t> list;
  int64_t step = 0;
  BatchOffsets offsets() const { return {list.empty() ? nullptr : list.data(), step}; }
};
Starts starts(const Operand& x, const Shape& batch, int64_t count) {
  const int n = batch.size(), skip = n - x.batch_dims;
  Strides stride(n, 0);
  for (int i = skip; i < n; ++i) stride[i] = x.s->size(i - skip) == 1 ? 0 : x.s->stride(i - skip);
  Starts r;
  bool collapses = true, first = true;
  int64_t expected = 0;
  for (int i = n - 1; i >= 0; --i) {
    if (batch[i] == 1) continue;
    if (first)
      r.step = stride[i];
    else if (stride[i] != expected)
      collapses = false;
    first = false;
    expected = stride[i] * batch[i];
  }
  if (collapses) return r;
  r.list.resize(std::size_t(count));
  Dims at(n, 0);
  int64_t offset = 0;
  for (int64_t& o : r.list) {
    o = offset;
    for (int i = n - 1; i >= 0; --i) {
      offset += stride[i];
      if (++at[i] < batch[i]) break;
      offset -= stride[i] * batch[i];
      at[i] = 0;
    }
  }
  return r;
}

bool is_broadcast(const Operand& x) {
  for (int i = 0; i < x.batch_dims; ++i)
    if (x.s->size(i) != 1 && x.s->stride(i) != 0) return false;
  return true;
}

/// Whether the batch dimensions and the rows of x are one run of rows with a single stride.
bool rows_chain(const Operand& x, int64_t* stride) {
  int64_t expected = 0;
  bool first = true;
  for (int i = x.batch_dims; i >= 0; --i) {
    if (x.s->size(i) == 1 || (i == x.batch_dims && x.rows == 1)) continue;
    if (first)
      *stride = x.s->stride(i);
    else if (x.s->stride(i) != expected)
      return false;
    first = false;
    expected = x.s->stride(i) * x.s->size(i);
  }
  if (first) *stride = x.cols;
  return true;
}

/// out = beta * out + alpha * a @ b, all of dtype `work`; out contiguous with sizes batch + [rows, cols].
void multiply(const Operand& a, const Operand& b, const Shape& batch, Storage& out, const Scalar& beta,
              const Scalar& alpha) {
  const int64_t count = product(batch);
  // One matrix times many columns is, transposed, many rows times one matrix; the memory of the result is the same.
  if (count > 1 && b.cols == 1 && a.rows > 1 && b.s->dim() >= 2 && is_broadcast(a))
    return multiply({b.s, 1, b.rows, b.cs, b.rs, b.batch_dims}, {a.s, a.cols, a.rows, a.cs, a.rs, a.batch_dims}, batch,
                    out, beta, alpha);
  // Many matrices times one: a single product over all rows, of a copy where they have no common stride.
  int64_t stride = 0;
  Storage dense;
  const bool fold = count > 1 && is_broadcast(b) && a.s->dim() >= 2 && count * a.rows * a.cols == a.s->numel();
  const bool chained = fold && rows_chain(a, &stride);
  if (fold && !chained && b.cols * 4 >= a.rows) {
    dense = contiguous(*a.s);
    stride = a.cols;
  }
  const bool single = count == 1 || chained || dense.defined();
  const Starts sa = single ? Starts() : starts(a, batch, count), sb = single ? Starts() : starts(b, batch, count);
  modes::Unlocked unlocked(2.0 * double(count) * double(a.rows) * double(b.cols) * double(a.cols) > 1e7);
  with_product_type(out.dtype(), [&]<class T>(T) {
    const T al = scalar_to<T>(alpha), be = scalar_to<T>(beta);
    const MatRef<T> ra = a.ref<T>(), rb = b.ref<T>();
    T* c = out.data<T>();
    if (count == 1) return gemm<T>(a.rows, b.cols, a.cols, al, ra, rb, be, c, b.cols);
    if (dense.defined())
      return gemm<T>(count * a.rows, b.cols, a.cols, al, {dense.data<T>(), stride, 1}, rb, be, c, b.cols);
    if (chained) return gemm<T>(count * a.rows, b.cols, a.cols, al, {ra.p, stride, a.cs}, rb, be, c, b.cols);
    gemm_batched<T>(count, a.rows, b.cols, a.cols, al, ra, sa.offsets(), rb, sb.offsets(), be, c);
  });
}

void expect_dim(const OpSchema& op, const char* name, const Storage& s, int dim) {
  if (TP_UNLIKELY(s.dim() != dim))
    value_error(op.name, ": ", name, " must have ", dim, dim == 1 ? " dimension" : " dimensions", "; it is ",
                s.sizes());
}

Storage simple(const OpSchema& op, const Storage& x, const Storage& y, const char* y_name, bool x_vector,
               bool y_vector) {
  const Dtype d = product_dtype(op, {&x, &y}), work = work_dtype(d);
  const Storage a = as_dtype(x, work), b = as_dtype(y, work);
  const Operand oa = x_vector ? as_row(a) : as_matrices(a), ob = y_vector ? as_column(b) : as_matrices(b);
  if (TP_UNLIKELY(oa.cols != ob.rows))
    value_error(op.name, ": inner sizes differ: input is ", x.sizes(), ", ", y_name, " is ", y.sizes());
  const Shape batch = batch_shape(op, a, oa.batch_dims, b, ob.batch_dims);
  Shape sizes = batch;
  if (!x_vector) sizes.push_back(oa.rows);
  if (!y_vector) sizes.push_back(ob.cols);
  Storage out = empty(sizes, work);
  if (out.numel() == 0) return finish(out, d);
  multiply(oa, ob, batch, out, Scalar(0), Scalar(1));
  return finish(out, d);
}

Storage inner(const OpSchema& op, const Storage& x, const Storage& y, bool conj) {
  expect_dim(op, "input", x, 1);
  expect_dim(op, "tensor", y, 1);
  if (TP_UNLIKELY(x.size(0) != y.size(0)))
    value_error(op.name, ": sizes differ: input is ", x.sizes(), ", tensor is ", y.sizes());
  const Dtype d = product_dtype(op, {&x, &y}), work = work_dtype(d);
  const Storage a = as_dtype(x, work), b = as_dtype(y, work);
  Storage out = empty({}, work);
  with_product_type(work, [&]<class T>(T) {
    *out.data<T>() = dot<T>(a.numel(), a.data<T>(), a.stride(0), b.data<T>(), b.stride(0), conj);
  });
  return finish(out, d);
}

void expect_whole(const OpSchema& op, Dtype d, const Scalar& beta, const Scalar& alpha) {
  if (TP_UNLIKELY(category(d) <= Category::Integer && !(beta.is_integral() && alpha.is_integral())))
    type_error(op.name, ": beta and alpha must be integers for integer inputs");
}

/// The tensor that alpha * product is added to: beta * input broadcast to `sizes`, or nothing when beta is 0.
Storage start_from(const OpSchema& op, const Storage& input, const Shape& sizes, Dtype work, const Scalar& beta) {
  const int skip = sizes.size() - input.dim();
  bool ok = skip >= 0;
  for (int i = 0; ok && i < input.dim(); ++i) ok = input.size(i) == 1 || input.size(i) == sizes[skip + i];
  if (TP_UNLIKELY(!ok))
    value_error(op.name, ": input does not broadcast to the product: input is ", input.sizes(), ", the product is ",
                sizes);
  Storage out = empty(sizes, work);
  if (beta.to_bool()) copy_broadcast(op.name, out, input);
  return out;
}

Storage add_product(const OpSchema& op, const Storage& input, const Storage& x, const Storage& y, const char* x_name,
                    const char* y_name, int x_dim, int y_dim, const Scalar& beta, const Scalar& alpha) {
  expect_dim(op, x_name, x, x_dim);
  expect_dim(op, y_name, y, y_dim);
  const bool vector = y_dim == 1;
  if (TP_UNLIKELY(x.size(x_dim - 1) != y.size(vector ? 0 : y_dim - 2) || (x_dim == 3 && x.size(0) != y.size(0))))
    value_error(op.name, ": sizes do not match: ", x_name, " is ", x.sizes(), ", ", y_name, " is ", y.sizes());
  const Dtype d = product_dtype(op, {&input, &x, &y}), work = work_dtype(d);
  expect_whole(op, d, beta, alpha);
  const Storage a = as_dtype(x, work), b = as_dtype(y, work);
  const Operand oa = as_matrices(a), ob = vector ? as_column(b) : as_matrices(b);
  Shape sizes = x_dim == 3 ? Shape{x.size(0), oa.rows} : Shape{oa.rows};
  if (!vector) sizes.push_back(ob.cols);
  Storage out = start_from(op, input, sizes, work, beta);
  if (out.numel() != 0) multiply(oa, ob, x_dim == 3 ? Shape{x.size(0)} : Shape{}, out, beta, alpha);
  return finish(out, d);
}

}  // namespace

Storage matmul(const OpSchema& op, const Storage& input, const Storage& other) {
  if (TP_UNLIKELY(input.dim() == 0 || other.dim() == 0))
    value_error(op.name, ": both inputs need at least one dimension; input is ", input.sizes(), ", other is ",
                other.sizes(), "; multiply scalars with *");
  if (input.dim() == 1 && other.dim() == 1) {
    if (TP_UNLIKELY(input.size(0) != other.size(0)))
      value_error(op.name, ": inner sizes differ: input is ", input.sizes(), ", other is ", other.sizes());
    return inner(op, input, other, false);
  }
  return simple(op, input, other, "other", input.dim() == 1, other.dim() == 1);
}

Storage mm(const OpSchema& op, const Storage& input, const Storage& mat2) {
  expect_dim(op, "input", input, 2);
  expect_dim(op, "mat2", mat2, 2);
  return simple(op, input, mat2, "mat2", false, false);
}

Storage bmm(const OpSchema& op, const Storage& input, const Storage& mat2) {
  expect_dim(op, "input", input, 3);
  expect_dim(op, "mat2", mat2, 3);
  if (TP_UNLIKELY(input.size(0) != mat2.size(0)))
    value_error(op.name, ": batch sizes differ: input is ", input.sizes(), ", mat2 is ", mat2.sizes());
  return simple(op, input, mat2, "mat2", false, false);
}

Storage mv(const OpSchema& op, const Storage& input, const Storage& vec) {
  expect_dim(op, "input", input, 2);
  expect_dim(op, "vec", vec, 1);
  return simple(op, input, vec, "vec", false, true);
}

Storage dot(const OpSchema& op, const Storage& input, const Storage& tensor) { return inner(op, input, tensor, false); }
Storage vdot(const OpSchema& op, const Storage& input, const Storage& tensor) { return inner(op, input, tensor, true); }

Storage addmm(const OpSchema& op, const Storage& input, const Storage& mat1, const Storage& mat2, const Scalar& beta,
              const Scalar& alpha) {
  return add_product(op, input, mat1, mat2, "mat1", "mat2", 2, 2, beta, alpha);
}
Storage addmv(const OpSchema& op, const Storage& input, const Storage& mat, const Storage& vec, const Scalar& beta,
              const Scalar& alpha) {
  return add_product(op, input, mat, vec, "mat", "vec", 2, 1, beta, alpha);
}
Storage baddbmm(const OpSchema& op, const Storage& input, const Storage& batch1, const Storage& batch2,
                const Scalar& beta, const Scalar& alpha) {
  return add_product(op, input, batch1, batch2, "batch1", "batch2", 3, 3, beta, alpha);
}

Storage addr(const OpSchema& op, const Storage& input, const Storage& vec1, const Storage& vec2, const Scalar& beta,
             const Scalar& alpha) {
  expect_dim(op, "vec1", vec1, 1);
  expect_dim(op, "vec2", vec2, 1);
  // One product for an element, no sum of them: bool stays bool.
  Promotion p;
  for (const Storage* s : {&input, &vec1, &vec2})
    if (s->defined()) p.add(s->dtype(), s->dim() == 0, s->wrapped_number());
  const Dtype d = p.result(), work = d == Dtype::Bool ? Dtype::I32 : work_dtype(d);
  expect_whole(op, d, beta, alpha);
  const Storage a = as_dtype(vec1, work), b = as_dtype(vec2, work);
  const Shape sizes{a.size(0), b.size(0)};
  Storage out = input.defined() ? start_from(op, input, sizes, work, beta) : empty(sizes, work);
  if (out.numel() == 0) return finish(out, d);
  with_product_type(work, [&]<class T>(T) {
    const Storage dense = contiguous(b);
    const T al = scalar_to<T>(alpha), be = scalar_to<T>(beta);
    const bool read = input.defined() && beta.to_bool();
    const T *x = a.data<T>(), *y = dense.data<T>();
    T* c = out.data<T>();
    const int64_t n = sizes[1], inc = a.stride(0);
    parallel_for(0, sizes[0], 1 + 65536 / n, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) {
        const T f = al * x[i * inc];
        T* row = c + i * n;
        if (read)
          for (int64_t j = 0; j < n; ++j) row[j] = be * row[j] + f * y[j];
        else
          for (int64_t j = 0; j < n; ++j) row[j] = f * y[j];
      }
    });
  });
  return finish(out, d);
}

Storage addbmm(const OpSchema& op, const Storage& input, const Storage& batch1, const Storage& batch2,
               const Scalar& beta, const Scalar& alpha) {
  expect_dim(op, "batch1", batch1, 3);
  expect_dim(op, "batch2", batch2, 3);
  if (TP_UNLIKELY(batch1.size(0) != batch2.size(0) || batch1.size(2) != batch2.size(1)))
    value_error(op.name, ": sizes do not match: batch1 is ", batch1.sizes(), ", batch2 is ", batch2.sizes());
  const Dtype d = product_dtype(op, {&input, &batch1, &batch2}), work = work_dtype(d);
  const Storage a = as_dtype(batch1, work), b = as_dtype(batch2, work);
  Storage out = start_from(op, input, {a.size(1), b.size(2)}, work, beta);
  if (out.numel() == 0) return finish(out, d);
  if (a.size(0) == 0) {
    // Nothing is added: the product of an empty inner size scales by beta alone.
    Storage none_a = empty({a.size(1), 0}, work), none_b = empty({0, b.size(2)}, work);
    multiply(as_matrices(none_a), as_matrices(none_b), {}, out, beta, alpha);
  }
  for (int64_t i = 0; i < a.size(0); ++i) {
    const Storage ai =
        a.with_geometry({a.size(1), a.size(2)}, {a.stride(1), a.stride(2)}, a.offset() + i * a.stride(0));
    const Storage bi =
        b.with_geometry({b.size(1), b.size(2)}, {b.stride(1), b.stride(2)}, b.offset() + i * b.stride(0));
    multiply(as_matrices(ai), as_matrices(bi), {}, out, i == 0 ? beta : Scalar(1), alpha);
  }
  return finish(out, d);
}

Storage linear(const OpSchema& op, const Storage& input, const Storage& weight, const Storage& bias) {
  if (TP_UNLIKELY(input.dim() == 0)) value_error(op.name, ": input needs at least one dimension; it is []");
  if (TP_UNLIKELY(weight.dim() != 1 && weight.dim() != 2))
    value_error(op.name, ": weight must have sizes [out, in] or [in]; it is ", weight.sizes());
  const bool vector = weight.dim() == 1;
  const int64_t in = weight.size(vector ? 0 : 1), width = vector ? 1 : weight.size(0);
  if (TP_UNLIKELY(input.size(input.dim() - 1) != in))
    value_error(op.name, ": the last size of input must be the last size of weight: input is ", input.sizes(),
                ", weight is ", weight.sizes());
  if (TP_UNLIKELY(bias.defined() && (bias.numel() != width || bias.dim() > 1)))
    value_error(op.name, ": bias must have sizes [", width, "]; it is ", bias.sizes(), " with weight ", weight.sizes());
  const Dtype d = product_dtype(op, {&input, &weight, &bias}), work = work_dtype(d);
  Storage a = as_dtype(input, work);
  const Storage w = as_dtype(weight, work), c = bias.defined() ? contiguous(as_dtype(bias, work)) : Storage();
  Shape sizes = input.sizes();
  sizes.resize(sizes.size() - 1);
  const int64_t rows = product(sizes);
  if (!vector) sizes.push_back(width);
  Storage out = empty(sizes, work);
  if (out.numel() == 0) return finish(out, d);
  int64_t stride = in;
  if (a.dim() >= 2) {
    if (!rows_chain(as_matrices(a), &stride)) {
      a = contiguous(a);
      stride = in;
    }
  }
  modes::Unlocked unlocked(2.0 * double(out.numel()) * double(in) > 1e7);
  with_product_type(work, [&]<class T>(T) {
    const MatRef<T> right =
        vector ? MatRef<T>{w.data<T>(), w.stride(0), 1} : MatRef<T>{w.data<T>(), w.stride(1), w.stride(0)};
    gemm<T>(rows, width, in, scalar_to<T>(Scalar(1)), {a.data<T>(), stride, a.stride(a.dim() - 1)}, right,
            scalar_to<T>(Scalar(0)), out.data<T>(), width, c.defined() ? c.data<T>() : nullptr);
  });
  return finish(out, d);
}

}  // namespace tp::kernels
