// The ABI number of the library that is loaded.
#include "core/abi.h"

namespace tp {

int abi_version() { return TP_ABI; }

}  // namespace tp
