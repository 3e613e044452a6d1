// Storage of the mode word and the process-wide switches.
#include "core/modes.h"

#include <cstdio>
#include <string>

#include "core/dtype.h"
#include "core/errors.h"

namespace tp::modes {

thread_local constinit std::uint32_t word = 0;
thread_local constinit std::uint32_t open_transforms = 0;
thread_local constinit std::uint8_t autocast_dtype = std::uint8_t(Dtype::BF16);
Host host;

namespace {
bool g_deterministic = false;
bool g_warn_only = false;
}  // namespace

bool deterministic() { return g_deterministic; }
void set_deterministic(bool on, bool warn_only) {
  g_deterministic = on;
  g_warn_only = warn_only;
}
void require_deterministic(const char* op) {
  if (!g_deterministic) return;
  std::string m =
      std::string(op) + ": has no deterministic implementation, and use_deterministic_algorithms(True) is set";
  if (!g_warn_only) runtime_error(m);
  warn(m.c_str());
}
void warn(const char* message) {
  if (host.warn)
    host.warn(message);
  else
    std::fprintf(stderr, "tensorplay: warning: %s\n", message);
}

}  // namespace tp::modes
