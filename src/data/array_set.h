#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace sluice {

// Samples from arrays in memory, with labels or with real numbers as targets.
struct ArraySet final : Samples {
  std::int64_t count = 0;
  SampleForm sample_form;
  std::vector<float> features;       // samples of real numbers; else empty
  std::vector<std::int64_t> words;   // samples of words; else empty
  std::vector<std::int64_t> labels;  // as many per sample; empty if there are targets
  std::vector<float> targets;        // likewise

  SampleForm form() const override { return sample_form; }
  std::int64_t size() const override { return count; }
  void load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
            Batch& batch) const override;
};

struct ArraySplit {
  ArraySet train;
  ArraySet test;
};

// Reads train-inputs.npy, train-targets.npy, test-inputs.npy and test-targets.npy of a folder; the
// first dimension of each counts samples. Inputs of a real type are features, of an integer type
// words. Targets of a real type are numbers to predict, of an integer type labels.
Result<ArraySplit> read_arrays(const std::string& folder);

}  // namespace sluice
