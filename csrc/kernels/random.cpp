// The generator, and the kernels that fill a tensor from one distribution.
#include "kernels/random.h"

#include <random>

#include "core/errors.h"
#include "kernels/random_fill.h"
#include "kernels/staging.h"

namespace tp {

namespace {
std::uint64_t system_seed() {
  std::random_device device;
  return std::uint64_t(device()) << 32 | device();
}
}  // namespace

Generator::Generator() : state_{system_seed(), 0} {}

std::uint64_t Generator::reseed() {
  state_ = {system_seed(), 0};
  return state_.seed;
}

Generator& default_generator() {
  static Generator g;
  return g;
}

namespace kernels {
namespace {

using std::int64_t;

Dtype floating(const OpSchema& op, std::optional<Dtype> dtype) {
  const Dtype d = dtype ? *dtype : default_float();
  if (TP_UNLIKELY(!is_differentiable(d)))
    type_error(op.name, ": dtype must be floating or complex; it is ", dtype_name(d));
  return d;
}

/// Contiguous memory of float or double to draw into: `s` itself where its dtype allows, else a stand-in.
Storage drawing_room(const Shape& sizes, Dtype d) { return empty(sizes, dtype_of(compute_type(d))); }
Storage finish(Storage s, Dtype d) { return s.dtype() == d ? s : cast(s, d); }

// Numbers of a 16-bit type: no more bits than it holds, or rounding would give the upper end.
int uniform_bits(Dtype d) { return d == Dtype::F16 ? 11 : d == Dtype::BF16 ? 8 : 24; }

void fill_uniform(Storage& s, Dtype d, double low, double width, Generator* g) {
  const int64_t parts = is_complex(d) ? 2 : 1, n = s.numel() * parts;
  if (real_dtype(s.dtype()) == Dtype::F64)
    draw(g, n, 32, [&](RandomStream r, int64_t at, int64_t count) {
      random_loops().uniform_f64(r, count, low, width, s.data<double>() + at);
    });
  else
    draw(g, n, 64, [&](RandomStream r, int64_t at, int64_t count) {
      random_loops().uniform_f32(r, count, uniform_bits(d), float(low), float(width), s.data<float>() + at);
    });
}

void fill_normal(Storage& s, Dtype d, double mean, double deviation, Generator* g) {
  const int64_t parts = is_complex(d) ? 2 : 1, n = s.numel() * parts;
  // A complex number has its variance in two equal parts.
  if (parts == 2) deviation *= 0.70710678118654752440;
  if (real_dtype(s.dtype()) == Dtype::F64)
    draw(g, n, 32, [&](RandomStream r, int64_t at, int64_t count) {
      random_loops().normal_f64(r, count, mean, deviation, s.data<double>() + at);
    });
  else
    draw(g, n, 64, [&](RandomStream r, int64_t at, int64_t count) {
      random_loops().normal_f32(r, count, float(mean), float(deviation), s.data<float>() + at);
    });
}

void fill_integers(Storage& s, int64_t low, std::uint64_t range, Generator* g) {
  int64_t* out = s.data<int64_t>();
  if (range != 0 && range <= 65536) {
    draw(g, s.numel(), 64, [&](RandomStream r, int64_t at, int64_t count) {
      random_loops().small_int(r, count, low, std::uint32_t(range), out + at);
    });
    return;
  }
  draw(g, s.numel(), 32, [&](RandomStream r, int64_t at, int64_t count) {
    std::uint64_t* words = reinterpret_cast<std::uint64_t*>(out + at);
    random_loops().bits64(r, count, words);
    // A range of 0 stands for 2^64.
    if (range != 0)
      for (int64_t i = 0; i < count; ++i)
        words[i] = std::uint64_t(low) + std::uint64_t((unsigned __int128)(words[i]) * range >> 64);
  });
}

/// Draws into self directly where it is contiguous memory of its compute type, else through a copy.
template <class Fill>
void in_place(Storage& self, Dtype room, const Fill& fill) {
  if (self.dtype() == room && self.is_contiguous()) return fill(self);
  Storage s = empty(self.sizes(), room);
  fill(s);
  copy_into(self, s);
}

void need_floating(const OpSchema& op, const Storage& self, bool complex_too) {
  if (TP_UNLIKELY(!(is_float(self.dtype()) || (complex_too && is_complex(self.dtype())))))
    type_error(op.name, ": not defined for ", dtype_name(self.dtype()), " tensors; expected a floating dtype");
}

}  // namespace

Storage rand(const OpSchema& op, const Dims& size, Generator* generator, std::optional<Dtype> dtype) {
  const Dtype d = floating(op, dtype);
  Storage s = drawing_room(size, d);
  fill_uniform(s, d, 0, 1, generator);
  return finish(s, d);
}

Storage randn(const OpSchema& op, const Dims& size, Generator* generator, std::optional<Dtype> dtype) {
  const Dtype d = floating(op, dtype);
  Storage s = drawing_room(size, d);
  fill_normal(s, d, 0, 1, generator);
  return finish(s, d);
}

Storage rand_like(const OpSchema& op, const Storage& input, Generator* generator, std::optional<Dtype> dtype) {
  return rand(op, input.sizes(), generator, dtype ? *dtype : input.dtype());
}
Storage randn_like(const OpSchema& op, const Storage& input, Generator* generator, std::optional<Dtype> dtype) {
  return randn(op, input.sizes(), generator, dtype ? *dtype : input.dtype());
}

Storage randint(const OpSchema& op, int64_t low, int64_t high, const Dims& size, Generator* generator,
                std::optional<Dtype> dtype) {
  if (TP_UNLIKELY(low >= high)) value_error(op.name, ": low must be below high; they are ", low, " and ", high);
  const Dtype d = dtype ? *dtype : Dtype::I64;
  if (TP_UNLIKELY(is_complex(d))) type_error(op.name, ": dtype must not be complex; it is ", dtype_name(d));
  Storage s = empty(size, Dtype::I64);
  fill_integers(s, low, std::uint64_t(high) - std::uint64_t(low), generator);
  return finish(s, d);
}
Storage randint_high(const OpSchema& op, int64_t high, const Dims& size, Generator* generator,
                     std::optional<Dtype> dtype) {
  return randint(op, 0, high, size, generator, dtype);
}

Storage randint_like(const OpSchema& op, const Storage& input, int64_t low, int64_t high, Generator* generator,
                     std::optional<Dtype> dtype) {
  return randint(op, low, high, input.sizes(), generator, dtype.value_or(input.dtype()));
}
Storage randint_like_high(const OpSchema& op, const Storage& input, int64_t high, Generator* generator,
                          std::optional<Dtype> dtype) {
  return randint_like(op, input, 0, high, generator, dtype);
}

Storage randperm(const OpSchema& op, int64_t n, Generator* generator, std::optional<Dtype> dtype) {
  if (TP_UNLIKELY(n < 0)) value_error(op.name, ": n must not be negative; it is ", n);
  Storage s = empty({n}, Dtype::I64), words = empty({n}, Dtype::I64);
  fill_integers(words, 0, 0, generator);
  int64_t* p = s.data<int64_t>();
  const std::uint64_t* w = words.data<std::uint64_t>();
  modes::Unlocked unlocked(n > 20000);
  for (int64_t i = 0; i < n; ++i) {
    // Inside out: each step places i and needs one index of [0, i].
    const int64_t j = int64_t((unsigned __int128)(w[i]) * std::uint64_t(i + 1) >> 64);
    p[i] = p[j];
    p[j] = i;
  }
  return finish(s, dtype ? *dtype : Dtype::I64);
}

void uniform_(const OpSchema& op, Storage& self, double from, double to, Generator* generator) {
  need_floating(op, self, true);
  if (TP_UNLIKELY(!(from <= to))) value_error(op.name, ": from must not exceed to; they are ", from, " and ", to);
  const Dtype d = self.dtype();
  in_place(self, dtype_of(compute_type(d)), [&](Storage& s) { fill_uniform(s, d, from, to - from, generator); });
}

void normal_(const OpSchema& op, Storage& self, double mean, double std, Generator* generator) {
  need_floating(op, self, true);
  if (TP_UNLIKELY(!(std >= 0))) value_error(op.name, ": std must not be negative; it is ", std);
  const Dtype d = self.dtype();
  in_place(self, dtype_of(compute_type(d)), [&](Storage& s) { fill_normal(s, d, mean, std, generator); });
}

void exponential_(const OpSchema& op, Storage& self, double lambd, Generator* generator) {
  need_floating(op, self, false);
  if (TP_UNLIKELY(!(lambd > 0))) value_error(op.name, ": lambd must be positive; it is ", lambd);
  in_place(self, dtype_of(compute_type(self.dtype())), [&](Storage& s) {
    if (s.dtype() == Dtype::F64)
      draw(generator, s.numel(), 32, [&](RandomStream r, int64_t at, int64_t count) {
        random_loops().exponential_f64(r, count, 1 / lambd, s.data<double>() + at);
      });
    else
      draw(generator, s.numel(), 64, [&](RandomStream r, int64_t at, int64_t count) {
        random_loops().exponential_f32(r, count, float(1 / lambd), s.data<float>() + at);
      });
  });
}

void bernoulli_(const OpSchema& op, Storage& self, double p, Generator* generator) {
  if (TP_UNLIKELY(!(p >= 0 && p <= 1))) value_error(op.name, ": p must be between 0 and 1; it is ", p);
  in_place(self, Dtype::Bool, [&](Storage& s) {
    const std::uint64_t threshold = std::uint64_t((1 - p) * 0x1p32 + 0.5);
    draw(generator, s.numel(), 64, [&](RandomStream r, int64_t at, int64_t count) {
      random_loops().mask(r, count, threshold, s.data<std::uint8_t>() + at);
    });
  });
}

void random_(const OpSchema& op, Storage& self, int64_t from, std::optional<int64_t> to, Generator* generator) {
  const Dtype d = self.dtype();
  if (TP_UNLIKELY(is_complex(d))) type_error(op.name, ": not defined for ", dtype_name(d), " tensors");
  if (TP_UNLIKELY(to && from >= *to)) value_error(op.name, ": from must be below to; they are ", from, " and ", *to);
  std::uint64_t end;
  if (to) {
    end = std::uint64_t(*to);
  } else {
    // One past the largest integer the dtype holds with all smaller ones.
    const int bits = d == Dtype::F64 ? 53
        : d == Dtype::F32            ? 24
        : d == Dtype::F16            ? 11
        : d == Dtype::BF16           ? 8
        : d == Dtype::Bool           ? 1
                                     : int(item_size(d)) * 8 - (is_signed(d) ? 1 : 0);
    end = bits == 64 ? 0 : (std::uint64_t(1) << bits) + (is_float(d) ? 1 : 0);
  }
  in_place(self, Dtype::I64, [&](Storage& s) { fill_integers(s, from, end - std::uint64_t(from), generator); });
}

}  // namespace kernels
}  // namespace tp
