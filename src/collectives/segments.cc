#include "collectives/segments.h"

namespace sluice {
namespace {

// The number of equal parts in a segment, of which the longest hop carries one.
std::int64_t parts_of_segment(Collective collective, std::size_t ranks) {
  switch (collective) {
    case Collective::kRing:
    case Collective::kDirect:
      return static_cast<std::int64_t>(ranks);
    case Collective::kHalvingDoubling:
      return 2;
    case Collective::kRecursiveDoubling:
    case Collective::kBinaryTree:
    case Collective::kNative:
    case Collective::kSharedMemory:
      break;
  }
  return 1;
}

}  // namespace

std::size_t segments_of(const Strategy& strategy, Collective collective, std::size_t ranks,
                        std::int64_t params) {
  if (strategy.travels_whole() || strategy.segment_params == 0) {
    return 1;
  }
  const std::int64_t max = strategy.segment_params * parts_of_segment(collective, ranks);
  return static_cast<std::size_t>((params + max - 1) / max);
}

Range range_of_segment(const Range& chunk, std::size_t segments, std::size_t segment) {
  return part_of(chunk, static_cast<std::int64_t>(segments), static_cast<std::int64_t>(segment));
}

}  // namespace sluice
