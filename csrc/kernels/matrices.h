// Operands whose last two dimensions are matrices and whose leading ones broadcast. Internal to the kernels.
#pragma once
#include <span>
#include <vector>

#include "core/op_schema.h"
#include "core/storage.h"
#include "kernels/elementwise.h"

namespace tp::kernels {

/// Contiguous operands as broadcast batches of matrices: the leading dimensions counted as elements broadcast as elements do.
class Matrices {
 public:
  Matrices(const OpSchema& op, std::span<const Storage* const> operands) {
    std::vector<Storage> leads;
    std::vector<const Storage*> pointers;
    leads.reserve(operands.size());
    for (const Storage* s : operands) {
      Shape lead;
      for (int d = 0; d + 2 < s->dim(); ++d) lead.push_back(s->size(d));
      pointers.push_back(&leads.emplace_back(s->with_geometry(lead, contiguous_strides(lead), 0)));
    }
    lead_ = broadcast_shapes(op.name, pointers);
    for (const Storage& s : leads) strides_.push_back(expanded(s, lead_).strides());
  }
  std::int64_t count() const { return product(lead_); }
  Shape sizes(std::int64_t rows, std::int64_t cols) const {
    Shape s = lead_;
    s.push_back(rows);
    s.push_back(cols);
    return s;
  }
  /// Which of operand o's matrices is the i-th.
  std::int64_t at(std::size_t o, std::int64_t i) const {
    std::int64_t place = 0;
    for (int d = lead_.size() - 1; d >= 0; --d) {
      place += i % lead_[d] * strides_[o][d];
      i /= lead_[d];
    }
    return place;
  }

 private:
  Shape lead_;
  std::vector<Strides> strides_;
};

}  // namespace tp::kernels
