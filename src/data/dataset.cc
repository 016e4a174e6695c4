#include "data/dataset.h"

#include <cmath>
#include <functional>
#include <numeric>

namespace sluice {

void DataSet::load(std::span<const std::int64_t> indices, std::uint64_t /*chance*/,
                   Batch& batch) const {
  batch.shape = sample_shape;
  batch.shape.insert(batch.shape.begin(), static_cast<std::int64_t>(indices.size()));
  batch.features.clear();
  batch.words.clear();
  batch.labels.clear();
  for (const std::int64_t index : indices) {
    const std::span<const float> values = sample(index);
    batch.features.insert(batch.features.end(), values.begin(), values.end());
    batch.labels.push_back(labels[static_cast<std::size_t>(index)]);
  }
}

std::int64_t DataSet::sample_size() const {
  return std::accumulate(sample_shape.begin(), sample_shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

std::span<const float> DataSet::sample(std::int64_t index) const {
  const auto size = static_cast<std::size_t>(sample_size());
  return std::span(features).subspan(static_cast<std::size_t>(index) * size, size);
}

void standardise(DataSplit& split) {
  double sum = 0;
  double squares = 0;
  for (const float value : split.train.features) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto count = static_cast<double>(split.train.features.size());
  const double mean = sum / count;
  const double variance = squares / count - mean * mean;
  const double scale = variance > 0 ? 1 / std::sqrt(variance) : 1;
  for (DataSet* set : {&split.train, &split.test}) {
    set->prepared.mean = {mean};
    set->prepared.deviation = {1 / scale};
    for (float& value : set->features) {
      value = static_cast<float>((value - mean) * scale);
    }
  }
}

}  // namespace sluice
