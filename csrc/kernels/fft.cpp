// Arguments of the transforms, and lines of strided memory through the plans: complex to complex, real to half spectrum and
// back. Real lines of even length are transformed as complex ones of half the length.
#include "kernels/fft.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/complex.h"
#include "core/modes.h"
#include "kernels/fft_plan.h"
#include "kernels/scratch.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"
#include "kernels/staging_table.h"

namespace tp::kernels {
namespace {

using std::int64_t;

Dtype work_dtype(const OpSchema& op, Dtype d) {
  if (TP_UNLIKELY(d == Dtype::F16 || d == Dtype::BF16))
    type_error(op.name, ": ", dtype_name(d), " is not supported; cast the input to float32");
  return is_differentiable(d) ? d : default_float();
}

Storage fitted(const Storage& x, const Shape& sizes) {
  if (x.sizes() == sizes) return x;
  Storage out = zeros_storage(sizes, x.dtype());
  Shape both = sizes;
  for (int d = 0; d < both.size(); ++d) both[d] = std::min(both[d], x.size(d));
  Storage to = out.with_geometry(both, out.strides(), out.offset());
  copy_into(to, x.with_geometry(both, x.strides(), x.offset()));
  return out;
}

// ---- lines -----------------------------------------------------------------------------------------------------------

// Contiguous memory seen as [outer, length, inner]; a line runs through the middle.
struct Lines {
  int64_t outer = 1, length = 1, inner = 1;
  Lines(const Shape& sizes, int dim) {
    for (int d = 0; d < sizes.size(); ++d) (d < dim ? outer : d == dim ? length : inner) *= sizes[d];
  }
  int64_t count() const { return outer * inner; }
  int64_t begin(int64_t line) const { return line / inner * length * inner + line % inner; }
};

// Neighbouring lines that go through a plan together: enough for vectors, few enough for the cache.
int64_t columns_for(int64_t n, int64_t count) {
  int64_t columns = 16;
  while (columns > 1 && (columns * n > 8192 || columns > count)) columns /= 2;
  return columns;
}

/// f(first line, columns, re, im, work, pairs): planes of plan.size() rows of `columns`, and room for `rows` of pairs.
template <class T, class F>
void over_lines(const FftPlan<T>& plan, int64_t count, int64_t rows, const F& f) {
  if (count == 0) return;
  const int64_t n = plan.size(), columns = columns_for(n, count), blocks = (count + columns - 1) / columns;
  modes::Unlocked unlocked(plan.cost() * double(count) > 50000);
  parallel_tiles(blocks, grain_for(plan.cost() * double(columns)), [&](int64_t b, int64_t e) {
    Scratch<T> memory(2 * (n + rows) * columns + plan.work(columns));
    T *re = memory.get(), *im = re + n * columns, *pairs = im + n * columns, *work = pairs + 2 * rows * columns;
    for (int64_t i = b; i < e; ++i) f(i * columns, std::min(columns, count - i * columns), re, im, work, pairs);
  });
}

/// g(element of the line, its offset in memory, its place in the plane) over `s` lines from `first`; the inner loop runs
/// along whatever is contiguous in memory.
template <class G>
void walk(const Lines& l, int64_t first, int64_t s, int64_t length, const G& g) {
  if (l.inner == 1) {
    for (int64_t q = 0; q < s; ++q) {
      const int64_t at = (first + q) * l.length;
      for (int64_t k = 0; k < length; ++k) g(k, at + k, k * s + q);
    }
    return;
  }
  int64_t at[16];
  for (int64_t q = 0; q < s; ++q) at[q] = l.begin(first + q);
  for (int64_t k = 0; k < length; ++k)
    for (int64_t q = 0; q < s; ++q) g(k, at[q] + k * l.inner, k * s + q);
}

/// s whole lines from `first` as rows of s; a single contiguous line is used where it lies.
template <class C, class T>
const T* rows_of_lines(const Lines& l, int64_t first, int64_t s, const C* x, T* pairs) {
  C* to = reinterpret_cast<C*>(pairs);
  if (l.inner > 1)
    walk(l, first, s, l.length, [&](int64_t, int64_t at, int64_t place) { to[place] = x[at]; });
  else if (s == 1)
    return reinterpret_cast<const T*>(x + first * l.length);
  else
    staging->copy2d[copy2d_index(sizeof(C))](reinterpret_cast<char*>(to),
                                             reinterpret_cast<const char*>(x + first * l.length), {s, 1, 1, l.length},
                                             l.length, s);
  return pairs;
}
/// Where rows of s for lines_from_rows are to be written.
template <class C, class T>
T* place_of_rows(const Lines& l, int64_t first, int64_t s, C* y, T* pairs) {
  return l.inner == 1 && s == 1 ? reinterpret_cast<T*>(y + first * l.length) : pairs;
}
template <class C, class T>
void lines_from_rows(const Lines& l, int64_t first, int64_t s, const T* pairs, C* y) {
  const C* from = reinterpret_cast<const C*>(pairs);
  if (l.inner > 1)
    walk(l, first, s, l.length, [&](int64_t, int64_t at, int64_t place) { y[at] = from[place]; });
  else if (s > 1)
    staging->copy2d[copy2d_index(sizeof(C))](reinterpret_cast<char*>(y + first * l.length),
                                             reinterpret_cast<const char*>(from), {l.length, 1, 1, s}, s, l.length);
}
/// Contiguous lines of an even number of reals as lines of half as many pairs.
Lines paired(Lines l) {
  l.length /= 2;
  return l;
}

template <class C, class T>
void complex_lines(const Storage& from, const Storage& to, int dim, bool forward, T scale) {
  const Lines l(from.sizes(), dim);
  const auto plan = FftPlan<T>::of(l.length);
  const C* x = from.data<C>();
  C* y = to.data<C>();
  over_lines(*plan, l.count(), l.length, [&](int64_t first, int64_t s, T* re, T* im, T* work, T* pairs) {
    fft_ends<T>().split(l.length * s, rows_of_lines(l, first, s, x, pairs), re, im);
    forward ? plan->run(re, im, work, s) : plan->run(im, re, work, s);
    T* rows = place_of_rows(l, first, s, y, pairs);
    fft_ends<T>().pair(l.length * s, re, im, rows, scale);
    lines_from_rows(l, first, s, rows, y);
  });
}

// The roots exp(-2 pi i k / n) for k <= n / 4, which join the two halves of a real line.
template <class T>
std::vector<T> joining_roots(int64_t n) {
  std::vector<T> w(std::size_t(2 * (n / 4 + 1)));
  for (int64_t k = 0; k <= n / 4; ++k) {
    const RootOfUnity r = root_of_unity(k, n);
    w[std::size_t(2 * k)] = T(r.re);
    w[std::size_t(2 * k + 1)] = T(r.im);
  }
  return w;
}

/// Half spectra (n / 2 + 1 values), or whole ones where `to` has n.
template <class C, class T>
void real_lines(const Storage& from, const Storage& to, int dim, bool forward, T scale) {
  const Lines l(from.sizes(), dim), out(to.sizes(), dim);
  const int64_t n = l.length, h = n / 2;
  const bool even = n % 2 == 0, whole = out.length == n && n > 1;
  const auto plan = FftPlan<T>::of(even ? h : n);
  const std::vector<T> roots = even ? joining_roots<T>(n) : std::vector<T>();
  const T* x = from.data<T>();
  C* y = to.data<C>();
  const T turn = forward ? scale : -scale;
  over_lines(*plan, l.count(), even ? out.length : 0, [&](int64_t first, int64_t s, T* re, T* im, T* work, T* pairs) {
    if (!even) {
      std::fill_n(im, n * s, T(0));
      walk(l, first, s, n, [&](int64_t, int64_t at, int64_t place) { re[place] = x[at]; });
      plan->run(re, im, work, s);
      for (int64_t q = 0; q < s; ++q) {
        C* line = y + out.begin(first + q);
        for (int64_t k = 0; k <= h; ++k) {
          const T a = re[k * s + q], b = k == 0 ? T(0) : im[k * s + q];
          line[k * out.inner] = {a * scale, b * turn};
          if (whole && k > 0) line[(n - k) * out.inner] = {a * scale, -b * turn};
        }
      }
      return;
    }
    if (l.inner == 1)
      fft_ends<T>().split(h * s, rows_of_lines(paired(l), first, s, reinterpret_cast<const C*>(x), pairs), re, im);
    else
      walk(l, first, s, n,
           [&](int64_t k, int64_t at, int64_t place) { (k % 2 ? im : re)[place - (k + 1) / 2 * s] = x[at]; });
    plan->run(re, im, work, s);
    T* rows = place_of_rows(out, first, s, y, pairs);
    fft_ends<T>().spectrum(h, s, re, im, roots.data(), scale, turn, whole, rows);
    lines_from_rows(out, first, s, rows, y);
  });
}

/// Real lines of length n from half spectra.
template <class C, class T>
void half_lines(const Storage& from, const Storage& to, int dim, bool forward, T scale) {
  const Lines l(from.sizes(), dim), out(to.sizes(), dim);
  const int64_t n = out.length, h = n / 2;
  const bool even = n % 2 == 0;
  const auto plan = FftPlan<T>::of(even ? h : n);
  const std::vector<T> roots = even ? joining_roots<T>(n) : std::vector<T>();
  const C* x = from.data<C>();
  T* y = to.data<T>();
  const T turn = forward ? T(-1) : T(1);  // a forward transform reads the conjugate
  over_lines(*plan, l.count(), even ? h + 1 : 0, [&](int64_t first, int64_t s, T* re, T* im, T* work, T* pairs) {
    if (!even) {
      for (int64_t q = 0; q < s; ++q) {
        const C* line = x + l.begin(first + q);
        re[q] = line[0].re;
        im[q] = T(0);
        for (int64_t k = 1; k <= h; ++k) {
          const C v = line[k * l.inner];
          re[k * s + q] = re[(n - k) * s + q] = v.re;
          im[k * s + q] = v.im * turn;
          im[(n - k) * s + q] = -v.im * turn;
        }
      }
      plan->run(im, re, work, s);  // the inverse
      walk(out, first, s, n, [&](int64_t, int64_t at, int64_t place) { y[at] = re[place] * scale; });
      return;
    }
    fft_ends<T>().halves(h, s, rows_of_lines(l, first, s, x, pairs), roots.data(), turn, re, im);
    plan->run(im, re, work, s);
    if (out.inner > 1) {
      walk(out, first, s, n,
           [&](int64_t k, int64_t at, int64_t place) { y[at] = (k % 2 ? im : re)[place - (k + 1) / 2 * s] * scale; });
      return;
    }
    C* y_pairs = reinterpret_cast<C*>(y);
    T* rows = place_of_rows(paired(out), first, s, y_pairs, pairs);
    fft_ends<T>().pair(h * s, re, im, rows, scale);
    lines_from_rows(paired(out), first, s, rows, y_pairs);
  });
}

// ---- arguments -------------------------------------------------------------------------------------------------------

struct Axes {
  Dims dims;  // from the front, in the order given
  Dims sizes;  // of the transform
  int64_t points = 1;
};

enum class Kind { Complex, FromReal, ToReal };

Axes axes_of(const OpSchema& op, const Storage& x, const std::optional<Dims>& s, const std::optional<Dims>& dim,
             Kind kind) {
  Axes a;
  if (TP_UNLIKELY(s && dim && s->size() != dim->size()))
    value_error(op.name, ": s has ", s->size(), " sizes and dim ", dim->size(), " dimensions; they must be as many");
  if (TP_UNLIKELY(s && s->size() > x.dim()))
    value_error(op.name, ": s has ", s->size(), " sizes; the input only has ", x.dim(), " dimensions");
  if (dim)
    for (int64_t d : *dim) a.dims.push_back(wrap_dim(op.name, d, x.dim()));
  else
    for (int d = s ? x.dim() - int(s->size()) : 0; d < x.dim(); ++d) a.dims.push_back(d);
  for (int i = 0; i < a.dims.size(); ++i)
    for (int j = 0; j < i; ++j)
      if (TP_UNLIKELY(a.dims[i] == a.dims[j]))
        value_error(op.name, ": dim names dimension ", a.dims[i], " twice; each may be transformed once");
  if (TP_UNLIKELY(a.dims.empty() && kind != Kind::Complex))
    value_error(op.name, ": at least one dimension must be transformed; the input has ", x.dim(), " dimensions");
  for (int i = 0; i < a.dims.size(); ++i) {
    const bool half = kind == Kind::ToReal && i + 1 == a.dims.size(), given = s && (*s)[i] != -1;
    const int64_t own = x.dim() == 0 ? 1 : x.size(int(a.dims[i])), n = given ? (*s)[i] : half ? 2 * (own - 1) : own;
    if (TP_UNLIKELY(n < 1))
      value_error(op.name, ": dimension ", a.dims[i], " would be transformed over ", n,
                  " points; at least one is needed (the input has sizes ", x.sizes(), ")");
    a.sizes.push_back(n);
    a.points *= n;
  }
  return a;
}

double scale_of(const OpSchema& op, std::optional<std::string_view> norm, double points, bool forward) {
  const std::string_view how = norm.value_or("backward");
  if (how == "ortho") return 1 / std::sqrt(points);
  if (TP_UNLIKELY(how != "backward" && how != "forward"))
    value_error(op.name, ": norm must be 'backward', 'forward', 'ortho' or None; it is '", how, "'");
  return (how == "forward") == forward ? 1 / points : 1.0;
}

template <class F>
void with_types(Dtype complex, const F& f) {
  complex == Dtype::C64 ? f(c64(), float()) : f(c128(), double());
}

Shape with_axes(const Shape& sizes, const Axes& a, bool half) {
  Shape out = sizes;
  for (int i = 0; i < a.dims.size(); ++i)
    out[int(a.dims[i])] = half && i + 1 == a.dims.size() ? a.sizes[i] / 2 + 1 : a.sizes[i];
  return out;
}

Storage transform(const OpSchema& op, const Storage& input, const std::optional<Dims>& s,
                  const std::optional<Dims>& dim, std::optional<std::string_view> norm, Kind kind, bool forward) {
  const Dtype dtype = work_dtype(op, input.dtype()), complex = complex_dtype(dtype), real = real_dtype(dtype);
  if (TP_UNLIKELY(kind == Kind::FromReal && is_complex(dtype)))
    type_error(op.name, ": the input must be real; it is ", dtype_name(input.dtype()), ". Use ",
               forward ? "fft" : "ifft", " for complex input");
  if (TP_UNLIKELY(input.dim() == 0 && kind != Kind::Complex))
    value_error(op.name, ": the input needs at least one dimension; it has none");
  Storage x = input.dim() == 0 ? reshaped(input, {1}) : input;
  const Axes a = axes_of(op, x, s, dim, kind);
  const double scale = scale_of(op, norm, double(a.points), forward);
  const int last = a.dims.size() - 1;
  x = fitted(x, with_axes(x.sizes(), a, kind == Kind::ToReal));
  Storage out;
  // The scale is applied once, in the last dimension that is transformed.
  with_types(complex, [&]<class C, class T>(C, T) {
    if (kind == Kind::Complex && a.dims.empty()) {
      out = contiguous(cast(x, complex));
      if (out.data<C>() == x.data<C>()) {
        Storage fresh = empty(out.sizes(), complex);
        copy_into(fresh, out);
        out = fresh;
      }
    } else if (kind == Kind::Complex && !is_complex(dtype)) {
      const Storage from = contiguous(cast(x, real));
      out = empty(x.sizes(), complex);
      real_lines<C, T>(from, out, int(a.dims[last]), forward, T(last == 0 ? scale : 1.0));
      for (int i = last - 1; i >= 0; --i)
        complex_lines<C, T>(out, out, int(a.dims[i]), forward, T(i == 0 ? scale : 1.0));
    } else if (kind == Kind::Complex) {
      Storage from = contiguous(cast(x, complex));
      out = empty(x.sizes(), complex);
      for (int i = last; i >= 0; --i) {
        complex_lines<C, T>(from, out, int(a.dims[i]), forward, T(i == 0 ? scale : 1.0));
        from = out;
      }
    } else if (kind == Kind::FromReal) {
      const Storage from = contiguous(cast(x, real));
      out = empty(with_axes(x.sizes(), a, true), complex);
      real_lines<C, T>(from, out, int(a.dims[last]), forward, T(last == 0 ? scale : 1.0));
      for (int i = last - 1; i >= 0; --i)
        complex_lines<C, T>(out, out, int(a.dims[i]), forward, T(i == 0 ? scale : 1.0));
    } else {
      Storage from = contiguous(cast(x, complex));
      if (last > 0) {
        const Storage between = empty(from.sizes(), complex);
        for (int i = 0; i < last; ++i) {
          complex_lines<C, T>(from, between, int(a.dims[i]), forward, T(1));
          from = between;
        }
      }
      out = empty(with_axes(x.sizes(), a, false), real);
      half_lines<C, T>(from, out, int(a.dims[last]), forward, T(scale));
    }
  });
  return input.dim() == 0 ? reshaped(out, {}) : out;
}

std::optional<Dims> size_of(std::optional<int64_t> n) { return n ? std::optional<Dims>(Dims{*n}) : std::nullopt; }

}  // namespace

#define TP_FFT(stem, kind, forward)                                                                   \
  Storage fft_##stem(const OpSchema& op, const Storage& input, std::optional<int64_t> n, int64_t dim, \
                     std::optional<std::string_view> norm) {                                          \
    if (TP_UNLIKELY(n && *n < 1)) value_error(op.name, ": n must be at least 1; it is ", *n);         \
    return transform(op, input, size_of(n), Dims{dim}, norm, Kind::kind, forward);                    \
  }                                                                                                   \
  Storage fft_##stem##n(const OpSchema& op, const Storage& input, const std::optional<Dims>& s,       \
                        const std::optional<Dims>& dim, std::optional<std::string_view> norm) {       \
    return transform(op, input, s, dim, norm, Kind::kind, forward);                                   \
  }
TP_FFT(fft, Complex, true)
TP_FFT(ifft, Complex, false)
TP_FFT(rfft, FromReal, true)
TP_FFT(irfft, ToReal, false)
TP_FFT(hfft, ToReal, true)
TP_FFT(ihfft, FromReal, false)
#undef TP_FFT

Storage fit_size(const OpSchema& op, const Storage& input, const Dims& size) {
  if (TP_UNLIKELY(size.size() != input.dim()))
    value_error(op.name, ": size ", size, " does not belong to an input of sizes ", input.sizes());
  if (!(input.sizes() == size)) return fitted(input, size);
  Storage out = empty(size, input.dtype());
  copy_into(out, input);
  return out;
}

}  // namespace tp::kernels
