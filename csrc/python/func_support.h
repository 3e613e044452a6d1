// What grad, vjp and jvp share: the arguments they differentiate, calls of the user's function, what becomes of results.
// Knows trees, aliases and levels, no op.
#pragma once
#include "autograd/alias.h"
#include "autograd/engine.h"
#include "ops/wiring.h"
#include "python/tree.h"
#include "transforms/basis.h"

namespace tp::python::func {

/// A derivative runs: Functions must be of the separate style, backward() is refused.
struct Derivative : modes::Guard {
  Derivative() : modes::Guard(modes::kDerivative, 0) {}
};
/// The same with recording on, whatever the mode outside.
struct Recording : modes::Guard {
  Recording() : modes::Guard(modes::kDerivative, modes::kNoGrad | modes::kInference) {}
};

/// One vmap level for a C++ scope; `basis`: see batch::basis_levels.
class LevelScope {
 public:
  LevelScope(std::int64_t size, batch::Randomness randomness, bool basis) : number_(batch::enter(size, randomness)) {
    if (basis) batch::basis_levels |= batch::Levels(1) << (number_ - 1);
  }
  ~LevelScope() {
    batch::basis_levels &= (batch::Levels(1) << (number_ - 1)) - 1;
    batch::exit(number_);
  }
  LevelScope(const LevelScope&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

using Positions = InlineVec<Py_ssize_t, 4>;
/// Which arguments are differentiated: an int or a tuple of them, as the user gave it.
struct ArgNums {
  Positions at;
  bool tuple = false;
};
/// Raises where `o` is no int or tuple of ints.
ArgNums parse_argnums(PyObject* o);
/// The same, counted from the front among `n` positional arguments. Raises where one is none of them, or is there twice.
Positions find_arguments(const ArgNums& nums, Py_ssize_t n);

/// The differentiated tensors of a call, in the order of their leaves.
struct Aliases {
  InlineVec<Edge, 2> edges;  // where their gradients are captured
  InlineVec<TensorRef, 2> tensors;  // physical, without history: sizes and dtype for zeros
  InlineVec<std::uint32_t, 2> levels;  // vmap levels of each
  std::uint64_t age = current_age();
  bool outside = false;  // somebody outside follows one of them
  bool captures_nothing = false;  // the function reads, beside them, nothing that anybody follows

  /// The alias the function gets in place of a tensor; raises for anything else.
  Owned add(PyObject* leaf, const char* api);
};

/// One output of the function: the physical tensor and its vmap levels.
struct Output {
  TensorRef physical;
  std::uint32_t levels = 0;
};
Output output_of(const TensorRef& t);
/// The inverse: what the function's caller sees.
TensorRef output_wrapped(TensorRef physical, std::uint32_t levels);
/// A cotangent or tangent beside a physical tensor of these levels: their dimensions lead, levels opened since stay.
TensorRef peeled(const TensorRef& t, std::uint32_t levels);
/// The sizes without the dimensions of these levels.
Shape logical_sizes(const Shape& physical, std::uint32_t levels);

/// (output, aux) of a pair, where the function was said to return one.
void split_aux(const char* api, Owned& result, Owned& aux);

/// Whether something outside the aliases may follow what has these histories; `recording`: the mode outside.
bool followed(const Aliases& aliases, std::span<const Edge> histories, bool recording);
/// The tree with every tensor as the outside sees it: with history where it is followed, else without.
Owned released(Owned tree, const Aliases& aliases, bool recording);
TensorRef released(const TensorRef& t, const Aliases& aliases, bool recording);

/// Runs a pass from `roots` to the aliases: one gradient for each, zeros where none arrived.
std::vector<TensorRef> pull_back(const Aliases& aliases, std::span<const Edge> roots, std::span<const TensorRef> seeds,
                                 bool keep_graph, bool create_graph);

/// Makes `t` the type of a callable made from a function: vectorcall, attributes of its own where `dict_offset` is not 0,
/// a method where it is an attribute of a class.
void make_callable(PyTypeObject& t, const char* name, Py_ssize_t size, Py_ssize_t call_offset, Py_ssize_t dict_offset);
/// Attributes of the wrapped function that its transform shows too: __name__, __doc__, __module__, __wrapped__, ...
PyObject* wrapped_attribute(PyObject* self, PyObject* func, PyObject* name);

}  // namespace tp::python::func
