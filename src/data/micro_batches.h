#pragma once

#include <cstdint>
#include <vector>

#include "base/range.h"
#include "data/dataset.h"

namespace sluice {

// A part of a batch that is computed at a time.
struct MicroBatch {
  Range samples;
  Range labels;
  double share = 1;  // of the labels of the whole batch, those without a label not counted
};

// Cuts a batch into so many nearly equal parts, or into single samples if it has fewer. If the mean
// loss of each part counts by its share, the sum is the mean loss of the batch.
std::vector<MicroBatch> micro_batches_of(const Batch& batch, std::int64_t parts);

}  // namespace sluice
