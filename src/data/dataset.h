#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "data/preparation.h"

namespace sluice {

// What a model must know about the samples.
struct SampleForm {
  std::vector<std::int64_t> shape;  // of one sample
  std::int64_t classes = 0;         // labels are 0 ... classes-1; 0: targets are real numbers
  std::int64_t words = 0;           // samples consist of words 0 ... words-1; 0: of real numbers
  std::vector<std::int64_t> target_shape = {};  // of one sample, if targets are real numbers
};

// Marks a position without a label. LibTorch uses the same number.
inline constexpr std::int64_t kNoLabel = -100;

// Samples in the form a network takes, one after the other, each in row-major order.
struct Batch {
  std::vector<std::int64_t> shape;         // of the whole batch; the number of samples comes first
  std::vector<float> features;             // samples of real numbers; else empty
  std::vector<std::int64_t> words;         // samples of words; else empty
  std::vector<std::int64_t> labels;        // the same number per sample; some may be kNoLabel
  std::vector<float> targets;              // instead of labels; else empty
  std::vector<std::int64_t> target_shape;  // of the targets of the whole batch
};

// Thrown when a file turns out to be corrupt while its samples are loaded. The message says as much
// as that of an Error.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Samples with their labels. Thread-safe for reading.
class Samples {
 public:
  virtual ~Samples() = default;

  virtual SampleForm form() const = 0;
  virtual std::int64_t size() const = 0;
  // Where each bucket ends, the last one at size(). The samples of a bucket are adjacent and best
  // share a batch. Empty if all samples are alike.
  virtual std::vector<std::int64_t> bucket_ends() const { return {}; }
  virtual Preparation preparation() const { return {}; }
  // Replaces the contents of `batch` by these samples. Augmentation of a sample depends only on its
  // index and the seed. Throws DataError.
  virtual void load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                    Batch& batch) const = 0;
};

// Labelled samples of one shape, in memory.
struct DataSet final : Samples {
  std::vector<std::int64_t> sample_shape;
  std::int64_t classes = 0;
  std::vector<float> features;       // sample after sample, each in row-major order
  std::vector<std::int64_t> labels;  // one per sample, 0 ... classes-1
  Preparation prepared;

  SampleForm form() const override { return {sample_shape, classes}; }
  Preparation preparation() const override { return prepared; }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels.size()); }
  void load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
            Batch& batch) const override;

  std::int64_t sample_size() const;
  std::span<const float> sample(std::int64_t index) const;
};

// Training and test data; both have the same sample shape and classes.
struct DataSplit {
  DataSet train;
  DataSet test;
};

// Shifts and scales all features so that the training set has mean 0 and standard deviation 1.
void standardise(DataSplit& split);

}  // namespace sluice
