// parallel_for: splits an index range over a claim-based pool. Fork-safe; never waits for a worker that has not started.
// The body runs on raw memory only: it must not touch reference counts, tensors or the host.
#pragma once
#include <cstdint>
#include <type_traits>

#include "core/api.h"

namespace tp {

TP_API int num_threads();
TP_API void set_num_threads(int n);

/// Asks the host whether the user wants the running op to end; throws HostError then. Set by the host; called from the
/// thread that called parallel_for, every few tens of milliseconds, with or without the host's lock.
extern TP_API void (*poll_interrupt)();

namespace detail {
using RangeFn = void (*)(void* ctx, std::int64_t begin, std::int64_t end);
TP_API void run_parallel(std::int64_t begin, std::int64_t end, std::int64_t grain, RangeFn fn, void* ctx);
}  // namespace detail

/// Calls f(b, e) over pieces of [begin, end), each at least `grain` long (the last may be shorter). Serial below that.
template <class F>
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, F&& f) {
  if (begin >= end) return;
  if (end - begin <= grain) {
    f(begin, end);
    return;
  }
  using Fn = std::remove_reference_t<F>;
  detail::run_parallel(
      begin, end, grain, [](void* ctx, std::int64_t b, std::int64_t e) { (*static_cast<Fn*>(ctx))(b, e); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace tp
