#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

// Labelled samples in memory.
struct DataSet {
  std::vector<std::int64_t> sample_shape;
  std::int64_t classes = 0;
  std::vector<float> features;       // sample after sample, each in row-major order
  std::vector<std::int64_t> labels;  // one a sample, 0 ... classes-1

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t sample_size() const;
  std::span<const float> sample(std::int64_t index) const;
};

// What to learn from and what to be judged by; both have the same sample shape and classes.
struct DataSplit {
  DataSet train;
  DataSet test;
};

// Shifts and scales all features so that those of the training set have mean 0 and deviation 1.
void standardise(DataSplit& split);

}  // namespace sluice
