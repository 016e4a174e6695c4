#include "data/text.h"

#include <algorithm>

namespace sluice {

void TextSet::load(std::span<const std::int64_t> indices, std::uint64_t /*chance*/,
                   Batch& batch) const {
  std::size_t width = 1;
  for (const std::int64_t index : indices) {
    const auto i = static_cast<std::size_t>(index);
    width = std::max({width, source[i].size() + 1, target[i].size() + 1});
  }
  batch.shape = {static_cast<std::int64_t>(indices.size()), 2, static_cast<std::int64_t>(width)};
  batch.features.clear();
  batch.words.assign(indices.size() * 2 * width, kPadding);
  batch.labels.assign(indices.size() * width, kNoLabel);
  auto row = batch.words.begin();
  auto labels = batch.labels.begin();
  const auto step = static_cast<std::ptrdiff_t>(width);
  for (const std::int64_t index : indices) {
    const Sentence& from = source[static_cast<std::size_t>(index)];
    const Sentence& to = target[static_cast<std::size_t>(index)];
    *std::ranges::copy(from, row).out = kEnd;
    row += step;
    *row = kBegin;
    std::ranges::copy(to, row + 1);
    row += step;
    *std::ranges::copy(to, labels).out = kEnd;
    labels += step;
  }
}

}  // namespace sluice
