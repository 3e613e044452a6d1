// Padding: with a value, or with the input's own elements, one dimension after the other.
#include <algorithm>

#include "core/complex.h"
#include "core/errors.h"
#include "kernels/number.h"
#include "kernels/reduce.h"
#include "kernels/shape.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

struct Amounts {
  std::int64_t before, after;
};

// Pairs are listed from the last dimension backwards.
Amounts amounts(const Dims& pad, int ndim, int dim) {
  const int pair = ndim - 1 - dim;
  if (2 * pair + 1 >= pad.size()) return {0, 0};
  return {pad[2 * pair], pad[2 * pair + 1]};
}

void check_pad(const OpSchema& op, const Dims& pad, int ndim) {
  if (TP_UNLIKELY(pad.size() % 2 != 0)) value_error(op.name, ": pad ", pad, " must hold pairs (before, after)");
  if (TP_UNLIKELY(pad.size() / 2 > ndim))
    value_error(op.name, ": pad ", pad, " names ", pad.size() / 2, " dimensions of a ", ndim, "-d tensor");
}

enum class Mode { Reflect, Replicate, Circular };

Mode mode_of(const OpSchema& op, std::string_view mode) {
  if (mode == "reflect") return Mode::Reflect;
  if (mode == "replicate") return Mode::Replicate;
  if (mode == "circular") return Mode::Circular;
  value_error(op.name, ": mode '", mode, "' is not one of constant, reflect, replicate, circular");
}

void check_amounts(const OpSchema& op, Mode mode, Amounts a, std::int64_t size, int dim) {
  const std::int64_t most = mode == Mode::Reflect ? size - 1 : mode == Mode::Circular ? size : size ? INT64_MAX : 0;
  if (TP_UNLIKELY(a.before > most || a.after > most))
    value_error(op.name, ": padding (", a.before, ", ", a.after, ") is too large for dimension ", dim, " with size ",
                size, mode == Mode::Reflect ? "; reflect needs less than the size" : "");
  if (TP_UNLIKELY(a.before < 0 || a.after < 0))
    value_error(op.name, ": negative padding (", a.before, ", ", a.after, ") is for mode constant only; use narrow");
}

// `length` elements of `dim` from `first`, every `step` of them (0: the same one, -1: backwards).
Storage piece(const Storage& s, int dim, std::int64_t first, std::int64_t length, std::int64_t step) {
  Shape sizes = s.sizes();
  Strides strides = s.strides();
  const std::int64_t offset = s.offset() + (length ? first * strides[dim] : 0);
  sizes[dim] = length;
  strides[dim] *= step;
  return s.with_geometry(std::move(sizes), std::move(strides), offset);
}

// Where the elements before and after come from, in a tensor of `size` along the dimension.
struct Source {
  std::int64_t first, step;
};
Source source_before(Mode m, Amounts a, std::int64_t size) {
  return m == Mode::Reflect ? Source{a.before, -1} : m == Mode::Replicate ? Source{0, 0} : Source{size - a.before, 1};
}
Source source_after(Mode m, std::int64_t size) {
  return m == Mode::Reflect ? Source{size - 2, -1} : m == Mode::Replicate ? Source{size - 1, 0} : Source{0, 1};
}

template <class T>
void add_lines(const Storage& to, const Storage& from) {
  // Few, small slices: an index walk does.
  const int n = to.dim();
  Dims at(n, 0);
  T* p = to.data<T>();
  const T* q = from.data<T>();
  for (std::int64_t i = 0, total = to.numel(); i < total; ++i) {
    *p = *p + *q;
    for (int d = n - 1; d >= 0; --d) {
      p += to.stride(d);
      q += from.stride(d);
      if (++at[d] < to.size(d)) break;
      p -= to.size(d) * to.stride(d);
      q -= to.size(d) * from.stride(d);
      at[d] = 0;
    }
  }
}

void add_to(const OpSchema& op, const Storage& to, const Storage& from) {
  switch (compute_type(to.dtype())) {
    case Compute::I32: return add_lines<std::uint32_t>(to, from);
    case Compute::I64:
    case Compute::U64: return add_lines<std::uint64_t>(to, from);
    case Compute::F32: return add_lines<float>(to, from);
    case Compute::F64: return add_lines<double>(to, from);
    case Compute::C64: return add_lines<c64>(to, from);
    case Compute::C128: return add_lines<c128>(to, from);
    default: type_error(op.name, ": not defined for bool tensors");
  }
}

}  // namespace

Storage constant_pad_nd(const OpSchema& op, const Storage& input, const Dims& pad, const Scalar& value) {
  const int n = input.dim();
  check_pad(op, pad, n);
  Shape sizes = input.sizes(), common = input.sizes();
  std::int64_t from = input.offset();
  Dims first(n, 0);
  for (int d = 0; d < n; ++d) {
    const Amounts a = amounts(pad, n, d);
    sizes[d] += a.before + a.after;
    if (TP_UNLIKELY(sizes[d] < 0))
      value_error(op.name, ": padding (", a.before, ", ", a.after, ") leaves dimension ", d, " with size ", sizes[d]);
    const std::int64_t crop_before = std::max<std::int64_t>(0, -a.before),
                       crop_after = std::max<std::int64_t>(0, -a.after);
    common[d] = std::max<std::int64_t>(0, common[d] - crop_before - crop_after);
    from += crop_before * input.stride(d);
    first[d] = std::max<std::int64_t>(0, a.before);
  }
  check_held(op.name, value, input.dtype());
  Storage out = empty(sizes, input.dtype());
  if (!(common == sizes)) fill(out, value);
  if (product(common) == 0) return out;
  std::int64_t to = 0;
  for (int d = 0; d < n; ++d) to += first[d] * out.stride(d);
  Storage place = out.with_geometry(common, out.strides(), to);
  copy_into(place, input.with_geometry(common, input.strides(), from));
  return out;
}

Storage pad_by_index(const OpSchema& op, const Storage& input, const Dims& pad, std::string_view mode_name) {
  const int n = input.dim();
  check_pad(op, pad, n);
  const Mode mode = mode_of(op, mode_name);
  for (int d = 0; d < n; ++d) check_amounts(op, mode, amounts(pad, n, d), input.size(d), d);
  Shape sizes = input.sizes();
  for (int d = 0; d < n; ++d) sizes[d] += amounts(pad, n, d).before + amounts(pad, n, d).after;
  Storage out = empty(sizes, input.dtype());
  // The input in the middle; then, dimension by dimension, edges from what is already there, so that no element is
  // written twice.
  Storage there = out;
  for (int d = 0; d < n; ++d) there = piece(there, d, amounts(pad, n, d).before, input.size(d), 1);
  copy_into(there, input);
  for (int d = n - 1; d >= 0; --d) {
    const Amounts a = amounts(pad, n, d);
    const std::int64_t size = input.size(d);
    const Source before = source_before(mode, a, size), after = source_after(mode, size);
    // `there` begins at the input's first element along d, whose neighbours ahead have negative places.
    Storage head = piece(there, d, -a.before, a.before, 1), tail = piece(there, d, size, a.after, 1);
    if (a.before) copy_into(head, piece(there, d, before.first, a.before, before.step));
    if (a.after) copy_into(tail, piece(there, d, after.first, a.after, after.step));
    there = piece(there, d, -a.before, sizes[d], 1);
  }
  return out;
}

Storage pad_by_index_backward(const OpSchema& op, const Storage& grad, const Dims& size, const Dims& pad,
                              std::string_view mode_name) {
  const int n = size.size();
  check_pad(op, pad, n);
  const Mode mode = mode_of(op, mode_name);
  // Sums are taken in the compute type; the dimensions are undone in the opposite order.
  Storage g = cast(grad, dtype_of(compute_type(grad.dtype())));
  for (int d = 0; d < n; ++d) {
    const Amounts a = amounts(pad, n, d);
    if (a.before == 0 && a.after == 0) continue;
    Shape sizes = g.sizes();
    sizes[d] = size[d];
    Storage out = empty(sizes, g.dtype());
    copy_into(out, piece(g, d, a.before, size[d], 1));
    const auto give_back = [&](Source s, std::int64_t first, std::int64_t length) {
      if (length == 0) return;
      Storage part = piece(g, d, first, length, 1);
      if (s.step == 0) {
        part = sum(op, part, Dims{d}, true, part.dtype());
        length = 1;
      }
      add_to(op, piece(out, d, s.first, length, s.step), part);
    };
    give_back(source_before(mode, a, size[d]), 0, a.before);
    give_back(source_after(mode, size[d]), a.before + size[d], a.after);
    g = out;
  }
  return cast(g, grad.dtype());
}

}  // namespace tp::kernels
