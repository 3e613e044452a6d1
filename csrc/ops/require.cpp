// The compiled half of require.h.
#include "ops/require.h"

#include <cmath>
#include <set>
#include <sstream>
#include <utility>

#include "kernels/staging.h"

namespace tp::ops {

Storage amin(const Storage& input, const Dims& dim, bool keepdim);
Storage amax(const Storage& input, const Dims& dim, bool keepdim);
Storage select(const Storage& input, std::int64_t dim, std::int64_t index);
Storage mul(const Storage& input, const Storage& other);
Storage vector_norm(const Storage& input, const Scalar& ord, const Dims& dim, bool keepdim, std::optional<Dtype> dtype);

void Shown::put(std::string& out) const {
  std::ostringstream text;
  switch (kind_) {
    case Int: text << int_; break;
    case Float: text << float_; break;
    case Text: text << text_; break;
    case Sizes: text << *sizes_; break;
    case Number: number_->is_integral() ? text << number_->to_int() : text << number_->to_double(); break;
    case Floats:
      text << '[';
      for (const char* between = ""; const double v : *floats_) text << std::exchange(between, ", ") << v;
      text << ']';
  }
  out += text.str();
}

void refuse(std::string_view op, ErrorKind kind, std::string_view text, std::initializer_list<Shown> values) {
  std::string out(op);
  if (!op.empty()) out += ": ";
  for (const Shown& value : values) {  // one for each place
    const std::size_t place = text.find("{}");
    out += text.substr(0, place);
    value.put(out);
    text.remove_prefix(place + 2);
  }
  out += text;
  fail_with(kind, std::move(out));
}

namespace {
double only(const Storage& s) { return kernels::cast(s, Dtype::F64).data<double>()[0]; }
}  // namespace

double least(const Storage& x) { return only(amin(x, Dims(), false)); }
double greatest(const Storage& x) { return only(amax(x, Dims(), false)); }
bool within(const Storage& x, double low, double high) {
  // A nan is the least and the greatest, and lies nowhere.
  return x.numel() == 0 || (least(x) >= low && greatest(x) <= high);
}
double least(const TensorRef& x) { return x->is_batched() ? std::nan("") : least(x->storage()); }
double greatest(const TensorRef& x) { return x->is_batched() ? std::nan("") : greatest(x->storage()); }
bool within(const TensorRef& x, double low, double high) { return x->is_batched() || within(x->storage(), low, high); }

const Storage& shorten_rows(const Storage& table, const Storage& index, double max_norm, double norm_type) {
  const Storage at = kernels::contiguous(kernels::cast(index, Dtype::I64));
  const std::set<std::int64_t> rows(at.data<std::int64_t>(), at.data<std::int64_t>() + at.numel());
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= table.size(0)) continue;  // the lookup names an index that is out of range
    Storage line = select(table, 0, row);
    const double norm = only(vector_norm(line, Scalar(norm_type), Dims(), false, std::nullopt));
    if (!(norm > max_norm)) continue;
    const Storage factor = number_storage(Scalar(max_norm / (norm + 1e-7)));
    kernels::copy_broadcast("embedding", line, kernels::cast(mul(line, factor), line.dtype()));
  }
  return table;
}

const TensorRef& shorten_rows(const TensorRef& table, const TensorRef& index, double max_norm, double norm_type) {
  if (table->is_batched() || index->is_batched())
    runtime_error("vmap: max_norm writes into the table, which samples share; leave it out or loop over the samples");
  shorten_rows(table->storage(), index->storage(), max_norm, norm_type);
  table->storage().bump_version();
  return table;
}

}  // namespace tp::ops
