#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "data/preparation.h"

namespace sluice {

// What samples look like, as far as a model must know.
struct SampleForm {
  std::vector<std::int64_t> shape;  // of one sample
  std::int64_t classes = 0;         // an answer is one of 0 ... classes-1
  std::int64_t words = 0;           // a sample is made of 0 ... words-1; 0: of real numbers
};

// Stands for an answer that nobody asks for. LibTorch has the same number for it.
inline constexpr std::int64_t kNoLabel = -100;

// Samples as a network takes them, one after the other, each in row-major order.
struct Batch {
  std::vector<std::int64_t> shape;   // of all samples together: their number comes first
  std::vector<float> features;       // what they are made of: real numbers
  std::vector<std::int64_t> words;   // or words; the other one is empty
  std::vector<std::int64_t> labels;  // equally many a sample, some may be kNoAnswer
};

// A file of the user's turns out to be corrupt while its samples are loaded; says as much as an
// Error does.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Samples with their answers. May be read by several threads.
class Samples {
 public:
  virtual ~Samples() = default;

  virtual SampleForm form() const = 0;
  virtual std::int64_t size() const = 0;
  // Samples of one bucket stand next to each other and go best into one batch: where each bucket
  // ends, the last at size(). Empty: all are alike.
  virtual std::vector<std::int64_t> bucket_ends() const { return {}; }
  virtual Preparation preparation() const { return {}; }
  // Replaces what is in `batch` by these samples. A sample that is varied at random is a function
  // of its index and the chance. Throws DataError.
  virtual void load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                    Batch& batch) const = 0;
};

// Labelled samples of one shape, in memory.
struct DataSet final : Samples {
  std::vector<std::int64_t> sample_shape;
  std::int64_t classes = 0;
  std::vector<float> features;       // sample after sample, each in row-major order
  std::vector<std::int64_t> labels;  // one a sample, 0 ... classes-1
  Preparation prepared;

  SampleForm form() const override { return {sample_shape, classes}; }
  Preparation preparation() const override { return prepared; }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels.size()); }
  void load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
            Batch& batch) const override;

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
