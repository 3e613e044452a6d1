// Calls of seconds into a library that looks at nothing on the way (LAPACK's), which Ctrl-C must end all the same. Knows
// neither Storage nor LAPACK.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <thread>
#include <type_traits>

#include "core/api.h"

namespace tp::kernels {

constexpr double kLongCall = 2e9;  // operations of a call that is worth a thread and copies of its arrays

/// Memory that a call works on.
struct Array {
  void* at;
  std::size_t bytes;
  enum { In = 1, Out = 2, Both = 3 } use;
};

/// What the threads of one kernel know of each other: the one that was called looks for signals, the others at it.
struct Watch {
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> ended{false};
};
class Watched {
 public:
  explicit Watched(Watch* w);
  ~Watched();
  Watched(const Watched&) = delete;

 private:
  Watch* before_;
};

namespace detail { TP_API int run_apart(std::initializer_list<Array> arrays, std::function<int(void* const*)> call); }

/// call(addresses of the arrays): its result. A long call runs on a thread of its own, on copies that the thread owns, and
/// this one looks for signals until it ends. After Ctrl-C nothing is written back, and the thread frees its copies when its
/// call is over. `call` may hold numbers alone: by then the caller's variables are gone.
template <class Call>
int apart(double operations, std::initializer_list<Array> arrays, const Call& call) {
  static_assert(std::is_trivially_copyable_v<Call>);
  if (operations >= kLongCall) return detail::run_apart(arrays, call);
  void* at[8];
  std::size_t n = 0;
  for (const Array& a : arrays) at[n++] = a.at;
  return call(at);
}

}  // namespace tp::kernels
