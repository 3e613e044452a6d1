// The compiled half of recursion.h: where the stack of a thread ends, asked once for each thread.
#include "ops/recursion.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>

namespace tp::ops {
namespace {

struct Stack {
  std::uintptr_t end = 0;  // it grows downward; 0: not known
  std::size_t size = 0;

  Stack() {
#ifdef __APPLE__
    size = pthread_get_stacksize_np(pthread_self());
    end = reinterpret_cast<std::uintptr_t>(pthread_get_stackaddr_np(pthread_self())) - size;
#else
    pthread_attr_t attr;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) return;
    void* lowest = nullptr;
    if (pthread_attr_getstack(&attr, &lowest, &size) == 0) end = reinterpret_cast<std::uintptr_t>(lowest);
    pthread_attr_destroy(&attr);
#endif
  }
};

constexpr std::size_t kRoom = 256 << 10;  // what the kernels of one op may take

}  // namespace

RecursionError::~RecursionError() = default;

void require_stack(std::string_view op) {
  static thread_local const Stack stack;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here > stack.end + std::min(kRoom, stack.size / 4)) return;
  throw RecursionError(std::string(op) + ": called itself until the stack of " + std::to_string(stack.size >> 10) +
                       " KB was full; let the recursion end sooner");
}

}  // namespace tp::ops
