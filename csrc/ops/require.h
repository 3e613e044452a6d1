// What formulas ask of their arguments: the error of a condition that does not hold, facts of lists of tensors, and values
// that are read. Inside vmap values differ from sample to sample, so a check of them is left out.
#pragma once
#include "core/errors.h"
#include "core/scalar.h"
#include "ops/formula.h"

namespace tp::ops {

/// A value in a message. Refers to what it shows.
class Shown {
 public:
  Shown(bool v) : Shown(std::string_view(v ? "True" : "False")) {}
  Shown(std::int64_t v) : kind_(Int), int_(v) {}
  Shown(double v) : kind_(Float), float_(v) {}
  Shown(std::string_view v) : kind_(Text), text_(v) {}
  Shown(Dtype v) : Shown(std::string_view(dtype_name(v))) {}
  Shown(const Dims& v) : kind_(Sizes), sizes_(&v) {}
  Shown(const Scalar& v) : kind_(Number), number_(&v) {}
  Shown(const std::vector<double>& v) : kind_(Floats), floats_(&v) {}
  template <class T>
  Shown(const std::optional<T>& v) : Shown(v ? Shown(*v) : Shown(std::string_view("None"))) {}
  TP_API void put(std::string& out) const;

 private:
  enum { Int, Float, Text, Sizes, Number, Floats } kind_;
  union {
    std::int64_t int_;
    double float_;
    std::string_view text_;
    const Dims* sizes_;
    const Scalar* number_;
    const std::vector<double>* floats_;
  };
};

/// Raises `text` with the values in place of {}, after "op: " unless `op` is empty (the caller's name comes in front).
[[noreturn]] TP_API void refuse(std::string_view op, ErrorKind kind, std::string_view text,
                                std::initializer_list<Shown> values = {});

/// Whether the elements can be read: not inside vmap.
inline bool readable(const Storage&) { return true; }
inline bool readable(const TensorRef& x) { return !x->is_batched(); }
/// Whether every element lies between two numbers, both included; true where the elements can't be read.
TP_API bool within(const Storage& x, double low, double high);
TP_API bool within(const TensorRef& x, double low, double high);
TP_API double least(const Storage& x);
TP_API double least(const TensorRef& x);
TP_API double greatest(const Storage& x);
TP_API double greatest(const TensorRef& x);

/// The table, whose rows that index names were brought to at most a norm: in place, without history.
TP_API const Storage& shorten_rows(const Storage& table, const Storage& index, double max_norm, double norm_type);
TP_API const TensorRef& shorten_rows(const TensorRef& table, const TensorRef& index, double max_norm, double norm_type);

// Of lists of tensors: the size they have together; the first with less or more dimensions, and the first whose dtype is
// not that of the first one (-1: none).
template <class List>
Shape broadcast_sizes(const List& tensors) {
  Shape sizes;
  for (const auto& x : tensors) sizes = broadcast_shape(sizes, shape(x));
  return sizes;
}
template <class List>
std::int64_t odd_one(const List& tensors, std::int64_t least_dims, std::int64_t most_dims) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (shape(tensors[i]).size() < least_dims || shape(tensors[i]).size() > most_dims) return std::int64_t(i);
  return -1;
}
template <class List>
std::int64_t first_unlike(const List& tensors) {
  for (std::size_t i = 1; i < tensors.size(); ++i)
    if (dtype(tensors[i]) != dtype(tensors[0])) return std::int64_t(i);
  return -1;
}

/// [make(k) for k in range(n)], [make(x) for x in list], and the same for a list of numbers.
template <class V, class F>
std::vector<V> each(std::int64_t n, const F& make) {
  std::vector<V> out;
  for (std::int64_t k = 0; k < n; ++k) out.push_back(make(k));
  return out;
}
template <class V, class List, class F>
  requires requires(const List& l) { l.begin(); }
std::vector<V> each(const List& list, const F& make) {
  std::vector<V> out;
  for (const auto& x : list) out.push_back(make(x));
  return out;
}
template <class F>
Dims each_int(std::int64_t n, const F& make) {
  Dims out;
  for (std::int64_t k = 0; k < n; ++k) out.push_back(make(k));
  return out;
}
template <class List, class F>
  requires requires(const List& l) { l.begin(); }
Dims each_int(const List& list, const F& make) {
  Dims out;
  for (const auto& x : list) out.push_back(make(x));
  return out;
}

}  // namespace tp::ops
