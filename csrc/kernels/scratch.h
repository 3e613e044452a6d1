// Working memory of kernels and the split of coarse work over threads. Knows no op, no Storage.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/parallel_for.h"

namespace tp::kernels {

/// Uninitialised, 64-byte aligned memory for the life of the object. Each thread keeps its last few blocks, so a kernel
/// that runs often does not pay for fresh pages; usable inside parallel_for, unlike the tensor allocator.
class ScratchBytes {
 public:
  explicit ScratchBytes(std::size_t bytes);
  ~ScratchBytes();
  ScratchBytes(const ScratchBytes&) = delete;
  ScratchBytes& operator=(const ScratchBytes&) = delete;
  void* get() const { return p_; }

 private:
  void* p_;
  std::size_t bytes_;
};

template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t n) : bytes_(std::size_t(n > 0 ? n : 0) * sizeof(T)) {}
  T* get() const { return static_cast<T*>(bytes_.get()); }
  T& operator[](std::int64_t i) const { return get()[i]; }

 private:
  ScratchBytes bytes_;
};

/// parallel_for over few, large pieces: parallel_for rounds its chunks to 64 indices, here an index is a chunk of its own.
template <class F>
void parallel_tiles(std::int64_t tiles, std::int64_t grain, F&& f) {
  constexpr std::int64_t unit = 64;
  parallel_for(0, tiles * unit, (grain < 1 ? 1 : grain) * unit,
               [&](std::int64_t b, std::int64_t e) { f(b / unit, e / unit); });
}

/// Indices per task so that a task is at least about 20 us of work, given the nanoseconds one index takes.
inline std::int64_t grain_for(double ns_each) {
  const double g = 20000.0 / (ns_each > 0.01 ? ns_each : 0.01);
  return g < 1 ? 1 : std::int64_t(g);
}

}  // namespace tp::kernels
