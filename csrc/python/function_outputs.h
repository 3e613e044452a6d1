// What happens between forward and the return of apply: in-place rules, histories, saved values, tangents.
#pragma once
#include "python/function.h"

namespace tp::python {

/// Versions of the inputs before forward, to notice changes it does not declare.
class InputVersions {
 public:
  InputVersions(PyObject* const* args, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      versions_.push_back(is_tensor(args[i]) ? tensor_of(args[i])->storage().version() : 0);
  }
  std::uint32_t operator[](std::size_t i) const { return versions_[i]; }

 private:
  InlineVec<std::uint32_t, 8> versions_;
};

struct FunctionState {
  Ref<PythonNode> node;
  InputVersions versions;
  bool forward_mode;
};

/// The outputs as apply returns them. `node` is null where nothing is recorded.
PyObject* finish_function(FunctionObject* f, PyObject* cls, const Ref<PythonNode>& node, PyObject* const* args,
                          std::size_t n, const InputVersions& versions, Owned output, bool forward_mode);

}  // namespace tp::python
