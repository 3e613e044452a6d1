// Tangents that are batched where their primal is not, and the levels over a basis, where nothing else is. Knows no op.
#pragma once
#include "transforms/batched.h"

namespace tp::batch {

/// Levels over the rows of a basis (jacfwd): nothing but tangents is batched there, so arguments that a transform inside
/// differentiates need not be expanded to them.
extern TP_API thread_local constinit Levels basis_levels;
/// Inside user code that is handed such tangents, those levels are like all others.
class BasisOff {
 public:
  BasisOff() : before_(basis_levels) { basis_levels = 0; }
  ~BasisOff() { basis_levels = before_; }
  BasisOff(const BasisOff&) = delete;

 private:
  Levels before_;
};

/// Whether a tangent of `t` differs between samples of one of `levels`, where `t` itself does not.
TP_API bool tangents_vary(const TensorRef& t, Levels levels);

}  // namespace tp::batch
