#pragma once

#include <cstddef>
#include <cstdint>

#include "base/range.h"
#include "model/strategy.h"

namespace sluice {

// A long chunk is summed in segments of nearly equal length, each with its own plan, so that no hop
// carries more than the strategy allows, if it sets a limit. A sparse sum and gathered codes travel
// whole.
std::size_t segments_of(const Strategy& strategy, Collective collective, std::size_t ranks,
                        std::int64_t params);

// The range of one segment when a chunk is cut into `segments`.
Range range_of_segment(const Range& chunk, std::size_t segments, std::size_t segment);

}  // namespace sluice
