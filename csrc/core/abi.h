// The number that op libraries built outside are checked against when they load. Knows nothing else.
#pragma once
#include "core/api.h"

/// Raised whenever a header that op libraries compile against changes: `python tools/abi.py --update` does it, and a test
/// compares the headers with the hash noted in cmake/abi.json.
#define TP_ABI 50

namespace tp {

/// The number libtensorplay was built with; TP_ABI is that of the code which includes this header.
TP_API int abi_version();

}  // namespace tp
