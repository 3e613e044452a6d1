// split_sizes: the split op by lengths, under the name formulas call it by.
#include "ops/formula.h"

namespace tp::ops {

std::vector<Storage> split(const Storage& input, const Dims& split_size, std::int64_t dim);
std::vector<TensorRef> split(const TensorRef& input, const Dims& split_size, std::int64_t dim);

std::vector<Storage> split_sizes(const Storage& x, const Dims& lengths, std::int64_t dim) {
  return split(x, lengths, dim);
}
std::vector<TensorRef> split_sizes(const TensorRef& x, const Dims& lengths, std::int64_t dim) {
  return split(x, lengths, dim);
}

}  // namespace tp::ops
