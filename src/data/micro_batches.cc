#include "data/micro_batches.h"

#include <algorithm>

#include "base/check.h"

namespace sluice {
namespace {

double labelled(const Batch& batch, const Range& range) {
  const auto unlabelled =
      std::count(batch.labels.begin() + range.begin, batch.labels.begin() + range.end, kNoLabel);
  return static_cast<double>(range.size() - unlabelled);
}

}  // namespace

std::vector<MicroBatch> micro_batches_of(const Batch& batch, std::int64_t parts) {
  const std::int64_t samples = batch.shape.front();
  const auto labels = static_cast<std::int64_t>(batch.labels.size());
  check(parts > 0 && samples > 0 && labels % samples == 0, "samples have as many labels each");
  const std::int64_t count = std::min(parts, samples);
  if (count == 1) {
    return {{{0, samples}, {0, labels}}};
  }
  const double all = labelled(batch, {0, labels});
  std::vector<MicroBatch> micro_batches;
  for (std::int64_t i = 0; i < count; ++i) {
    const Range part = part_of({0, samples}, count, i);
    const Range of_labels{part.begin * (labels / samples), part.end * (labels / samples)};
    micro_batches.push_back({part, of_labels, labelled(batch, of_labels) / all});
  }
  return micro_batches;
}

}  // namespace sluice
