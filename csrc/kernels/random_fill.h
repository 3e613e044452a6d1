// Random fills of contiguous memory, split over threads by whole groups of the stream. Internal to the random kernels.
#pragma once
#include "core/modes.h"
#include "core/parallel_for.h"
#include "kernels/random.h"
#include "kernels/random_table.h"

namespace tp::kernels {

inline const RandomTable& random_loops() {
  static const RandomTable& table = TP_PICK_TABLE(random_table);
  return table;
}

inline Generator& generator_or_default(Generator* g) { return g ? *g : default_generator(); }

/// fill(stream, first, count) over pieces of [0, n) that start at whole groups of `per_group` numbers.
template <class Fill>
void draw(Generator* generator, std::int64_t n, std::int64_t per_group, const Fill& fill) {
  if (n == 0) return;
  Generator& g = generator_or_default(generator);
  const std::int64_t groups = (n + per_group - 1) / per_group;
  const RandomStream s{g.state().seed, g.take(std::uint64_t(groups * kRandomBlocks))};
  modes::Unlocked unlocked(n > 200000);
  parallel_for(0, groups, 512, [&](std::int64_t b, std::int64_t e) {
    const std::int64_t first = b * per_group, last = e * per_group < n ? e * per_group : n;
    fill(s.at_group(b), first, last - first);
  });
}

}  // namespace tp::kernels
