// Out-of-line parts of the error types.
#include "core/errors.h"

namespace tp {

Error::~Error() = default;
HostError::~HostError() = default;

void fail_with(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }

}  // namespace tp
