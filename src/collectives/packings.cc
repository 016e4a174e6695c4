#include "collectives/packings.h"

#include <bit>

#include "base/check.h"

namespace sluice {

// Ranks beyond a power of two send their gradients before the others begin, and get the sum.
int packings_of(Collective collective, std::size_t ranks) {
  check(ranks > 0, "a collective needs at least one rank");
  const int levels = std::bit_width(ranks) - 1;
  const int folds = std::has_single_bit(ranks) ? 0 : 2;
  switch (ranks == 1 ? Collective::kNative : collective) {
    case Collective::kRing:
      return static_cast<int>(ranks);
    case Collective::kRecursiveDoubling:
      return levels + folds;
    case Collective::kHalvingDoubling:
      return 2 * levels + folds;
    case Collective::kBinaryTree:
      return levels + 1;
    case Collective::kDirect:
      return 2;
    case Collective::kNative:
    case Collective::kSharedMemory:
      return 0;
  }
  fail_check("every collective is counted");
}

}  // namespace sluice
