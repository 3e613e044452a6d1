// Room on the stack for ops that are composed through themselves: how deep they go, values decide.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "core/errors.h"

namespace tp::ops {

/// An op that called itself until the stack was full: Python's RecursionError.
class TP_API RecursionError : public Error {
 public:
  explicit RecursionError(std::string message) : Error(ErrorKind::Runtime, std::move(message)) {}
  ~RecursionError() override;
};

/// Raises RecursionError where the rest of this thread's stack may not do for one op.
TP_API void require_stack(std::string_view op);

}  // namespace tp::ops
