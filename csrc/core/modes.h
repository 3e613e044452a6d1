// The thread's mode word and the host's callbacks. Zero means the fast path: gradients on, nothing else active.
#pragma once
#include <cstdint>

#include "core/api.h"

namespace tp::modes {

enum Bit : std::uint32_t {
  kNoGrad = 1u << 0,
  kInference = 1u << 1,
  kAutocast = 1u << 2,
  kAnomaly = 1u << 3,
  kSavedHooks = 1u << 4,
  kForward = 1u << 5,    // a dual level is open
  kTransform = 1u << 6,  // a function transform is running: operands may be batched
  kMutationAllowed = 1u << 7,
  kDerivative = 1u << 8,  // func.grad, vjp or jvp is running
};

extern TP_API thread_local constinit std::uint32_t word;

inline bool grad_enabled() { return (word & (kNoGrad | kInference)) == 0; }
inline bool any(std::uint32_t bits) { return (word & bits) != 0; }

/// Function transforms open on this thread. kTransform is set while there are any, and while a value of a closed one lives.
extern TP_API thread_local constinit std::uint32_t open_transforms;

/// Sets or clears bits for a C++ scope; other bits keep what happened to them meanwhile.
class Guard {
 public:
  Guard(std::uint32_t set, std::uint32_t clear) : mask_(set | clear), before_(word) { word = (word & ~clear) | set; }
  ~Guard() { word = (word & ~mask_) | (before_ & mask_); }
  Guard(const Guard&) = delete;

 private:
  std::uint32_t mask_, before_;
};
struct NoGrad : Guard {
  NoGrad() : Guard(kNoGrad, 0) {}
};
/// What the engine sets around a node: recording on or off, everything else as it is.
struct GradMode : Guard {
  explicit GradMode(bool on) : Guard(on ? 0u : std::uint32_t(kNoGrad), on ? std::uint32_t(kNoGrad | kInference) : 0u) {}
};

TP_API bool deterministic();
TP_API void set_deterministic(bool on, bool warn_only);
/// Raises (or warns) when an op without a deterministic kernel runs under use_deterministic_algorithms.
TP_API void require_deterministic(const char* op);

/// Autocast: the dtype floating inputs are cast to while kAutocast is set.
extern TP_API thread_local constinit std::uint8_t autocast_dtype;

/// What the host (Python) offers to a library that knows no Python.
struct Host {
  void* (*release_lock)() = nullptr;           // lets other threads run; returns a token
  void (*acquire_lock)(void*) = nullptr;
  void (*check_signals)() = nullptr;           // throws HostError when Ctrl-C arrived
  void (*warn)(const char* message) = nullptr;
  /// While kMutationAllowed is set: told of a tensor (a TensorRef) just before an in-place op overwrites it.
  void (*before_change)(const void* tensor) = nullptr;
};
extern TP_API Host host;

/// Around kernels on raw pointers that take more than about 50 us.
class Unlocked {
 public:
  explicit Unlocked(bool wanted) : active_(wanted && host.release_lock) {
    if (active_) token_ = host.release_lock();
  }
  ~Unlocked() {
    if (active_) host.acquire_lock(token_);
  }
  Unlocked(const Unlocked&) = delete;

 private:
  bool active_;
  void* token_ = nullptr;
};
inline void check_signals() {
  if (host.check_signals) host.check_signals();
}
TP_API void warn(const char* message);

}  // namespace tp::modes
