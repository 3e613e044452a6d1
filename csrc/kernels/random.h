// Random numbers: the generator (Philox, counter-based) and the kernels that draw from it. The same seed gives the same
// numbers whatever the number of threads and the instruction set. A null generator stands for the default one.
#pragma once
#include <array>
#include <optional>

#include "core/op_schema.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace tp {

/// A position in a random stream. Drawing moves the offset on; guarded by the host's lock.
class Generator {
 public:
  struct State {
    std::uint64_t seed, offset;
  };

  TP_API Generator();  // seeded from the system
  explicit Generator(std::uint64_t seed) : state_{seed, 0} {}

  void manual_seed(std::uint64_t seed) { state_ = {seed, 0}; }
  /// Seeds from the system and returns the seed.
  TP_API std::uint64_t reseed();
  std::uint64_t initial_seed() const { return state_.seed; }
  State state() const { return state_; }
  void set_state(const State& s) { state_ = s; }

  /// Takes `blocks` of the stream; returns the first one's number.
  std::uint64_t take(std::uint64_t blocks) {
    const std::uint64_t first = state_.offset;
    state_.offset += blocks;
    return first;
  }

 private:
  State state_;
};

TP_API Generator& default_generator();

namespace kernels {

// kernel: rand
TP_API Storage rand(const OpSchema& op, const Dims& size, Generator* generator, std::optional<Dtype> dtype);
// kernel: randn
TP_API Storage randn(const OpSchema& op, const Dims& size, Generator* generator, std::optional<Dtype> dtype);
/// Integers of [low, high).
// kernel: randint
TP_API Storage randint(const OpSchema& op, std::int64_t low, std::int64_t high, const Dims& size, Generator* generator,
                       std::optional<Dtype> dtype);
// kernel: randint_high
TP_API Storage randint_high(const OpSchema& op, std::int64_t high, const Dims& size, Generator* generator,
                            std::optional<Dtype> dtype);
// kernel: randperm
TP_API Storage randperm(const OpSchema& op, std::int64_t n, Generator* generator, std::optional<Dtype> dtype);
/// randint in the sizes, and where no dtype is given the dtype, of another tensor.
// kernel: randint_like
TP_API Storage randint_like(const OpSchema& op, const Storage& input, std::int64_t low, std::int64_t high,
                            Generator* generator, std::optional<Dtype> dtype);
// kernel: randint_like_high
TP_API Storage randint_like_high(const OpSchema& op, const Storage& input, std::int64_t high, Generator* generator,
                                 std::optional<Dtype> dtype);
// kernel: rand_like
TP_API Storage rand_like(const OpSchema& op, const Storage& input, Generator* generator, std::optional<Dtype> dtype);
// kernel: randn_like
TP_API Storage randn_like(const OpSchema& op, const Storage& input, Generator* generator, std::optional<Dtype> dtype);
/// 1 with the probability that each element states.
// kernel: bernoulli
TP_API Storage bernoulli(const OpSchema& op, const Storage& input, Generator* generator);
/// Normal numbers with an element's mean and deviation; the two broadcast.
// kernel: normal (internal)
TP_API Storage normal(const OpSchema& op, const Storage& mean, const Storage& std, Generator* generator);
/// Indices drawn in proportion to the weights of a row, [m] or [n, m].
// kernel: multinomial
TP_API Storage multinomial(const OpSchema& op, const Storage& input, std::int64_t num_samples, bool replacement,
                           Generator* generator);
/// (out, mask): elements are zeroed with probability p, the others divided by 1 - p.
// kernel: native_dropout
TP_API std::array<Storage, 2> native_dropout(const OpSchema& op, const Storage& input, double p, Generator* generator);

// kernel: uniform_ (internal)
TP_API void uniform_(const OpSchema& op, Storage& self, double from, double to, Generator* generator);
// kernel: normal_ (internal)
TP_API void normal_(const OpSchema& op, Storage& self, double mean, double std, Generator* generator);
// kernel: exponential_ (internal)
TP_API void exponential_(const OpSchema& op, Storage& self, double lambd, Generator* generator);
// kernel: bernoulli_ (internal)
TP_API void bernoulli_(const OpSchema& op, Storage& self, double p, Generator* generator);
/// Integers of [from, to); without `to`, up to the largest the dtype holds exactly.
// kernel: random_ (internal)
TP_API void random_(const OpSchema& op, Storage& self, std::int64_t from, std::optional<std::int64_t> to,
                    Generator* generator);

}  // namespace kernels
}  // namespace tp
