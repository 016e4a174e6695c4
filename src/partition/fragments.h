#pragma once

#include <cstdint>
#include <vector>

#include "partition/chunk_map.h"

namespace sluice {

// Deals the layers over fragments of about equal size: the largest first, each to the fragment with
// the fewest parameters so far. A chunk of several layers goes with the first of them. The result
// has the fragment of each chunk.
std::vector<std::int64_t> fragments_of(const ChunkMap& chunks, std::int64_t fragments);

}  // namespace sluice
