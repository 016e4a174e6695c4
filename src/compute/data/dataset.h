#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

// What samples look like, as far as a model must know.
struct SampleForm {
  std::vector<std::int64_t> shape;  // of one sample
  std::int64_t classes = 0;         // an answer is one of 0 ... classes-1
  std::int64_t words = 0;           // a sample is made of 0 ... words-1; 0: of real numbers
};

// Stands for an answer that nobody asks for. LibTorch has the same number for it.
inline constexpr std::int64_t kNoAnswer = -100;

// Samples as a network takes them, one after the other, each in row-major order.
struct Batch {
  std::vector<std::int64_t> shape;    // of all samples together: their number comes first
  std::vector<float> features;        // what they are made of: real numbers
  std::vector<std::int64_t> words;    // or words; the other one is empty
  std::vector<std::int64_t> answers;  // equally many a sample, some may be kNoAnswer
};

// Samples with their answers. May be read by several threads.
class Samples {
 public:
  virtual ~Samples() = default;

  virtual SampleForm form() const = 0;
  virtual std::int64_t size() const = 0;
  // Replaces what is in `batch` by these samples.
  virtual void load(std::span<const std::int64_t> indices, Batch& batch) const = 0;
};

// Labelled samples of one shape, in memory.
struct DataSet final : Samples {
  std::vector<std::int64_t> sample_shape;
  std::int64_t classes = 0;
  std::vector<float> features;       // sample after sample, each in row-major order
  std::vector<std::int64_t> labels;  // one a sample, 0 ... classes-1

  SampleForm form() const override { return {sample_shape, classes}; }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels.size()); }
  void load(std::span<const std::int64_t> indices, Batch& batch) const override;

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
