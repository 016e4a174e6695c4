#include "data/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace sluice {
namespace {

SyntheticSpec small_spec() {
  SyntheticSpec spec;
  spec.sample_shape = {2, 5, 7};
  spec.classes = 6;
  spec.train_samples = 1200;
  spec.test_samples = 300;
  spec.noise = 1.5;
  return spec;
}

double distance(std::span<const float> a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return sum;
}

TEST(SyntheticTest, HasTheShapeAskedFor) {
  const DataSplit split = make_synthetic(small_spec());
  EXPECT_EQ(split.train.size(), 1200);
  EXPECT_EQ(split.test.size(), 300);
  EXPECT_EQ(split.train.sample_size(), 70);
  EXPECT_EQ(split.train.features.size(), 1200U * 70);
  for (const std::int64_t label : split.test.labels) {
    EXPECT_TRUE(label >= 0 && label < 6);
  }
}

TEST(SyntheticTest, LoadsABatch) {
  const DataSet data = make_synthetic(small_spec()).train;
  Batch batch;
  batch.words = {1};  // of another batch
  data.load(std::array<std::int64_t, 3>{5, 0, 8}, 0, batch);
  EXPECT_EQ(batch.shape, (std::vector<std::int64_t>{3, 2, 5, 7}));
  EXPECT_TRUE(batch.words.empty());
  EXPECT_EQ(batch.labels,
            (std::vector<std::int64_t>{data.labels[5], data.labels[0], data.labels[8]}));
  ASSERT_EQ(batch.features.size(), 210U);
  EXPECT_TRUE(std::ranges::equal(data.sample(8), std::span(batch.features).subspan(140)));
}

// Small sets may not have samples of all classes.
TEST(SyntheticTest, FewSamplesBeginLikeMany) {
  SyntheticSpec spec = small_spec();
  const DataSet many = make_synthetic(spec).train;
  spec.train_samples = 4;
  const DataSet few = make_synthetic(spec).train;
  EXPECT_TRUE(std::equal(few.features.begin(), few.features.end(), many.features.begin()));
}

TEST(SyntheticTest, IsFixedByItsSeed) {
  SyntheticSpec spec = small_spec();
  const DataSplit split = make_synthetic(spec);
  EXPECT_EQ(make_synthetic(spec).train.features, split.train.features);
  spec.seed = 2;
  EXPECT_NE(make_synthetic(spec).train.features, split.train.features);
}

TEST(SyntheticTest, TrainingSamplesAreNotTheTestSamples) {
  const DataSplit split = make_synthetic(small_spec());
  EXPECT_FALSE(std::equal(split.test.features.begin(), split.test.features.end(),
                          split.train.features.begin()));
}

TEST(SyntheticTest, FeaturesAreStandardised) {
  const DataSplit split = make_synthetic(small_spec());
  double sum = 0;
  double squares = 0;
  for (const float value : split.train.features) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto count = static_cast<double>(split.train.features.size());
  EXPECT_NEAR(sum / count, 0, 0.1);
  EXPECT_NEAR(squares / count, 1, 0.1);
}

// The nearest class mean of the training set predicts the class of nearly every test sample.
TEST(SyntheticTest, CanBeLearned) {
  const DataSplit split = make_synthetic(small_spec());
  std::vector<std::vector<double>> means(6, std::vector<double>(70));
  for (std::int64_t i = 0; i < split.train.size(); ++i) {
    const auto sample = split.train.sample(i);
    auto& mean = means[static_cast<std::size_t>(split.train.labels[static_cast<std::size_t>(i)])];
    for (std::size_t j = 0; j < sample.size(); ++j) {
      mean[j] += sample[j] / 200;
    }
  }
  int right = 0;
  for (std::int64_t i = 0; i < split.test.size(); ++i) {
    double nearest = std::numeric_limits<double>::infinity();
    std::size_t guess = 0;
    for (std::size_t label = 0; label < means.size(); ++label) {
      if (const double d = distance(split.test.sample(i), means[label]); d < nearest) {
        nearest = d;
        guess = label;
      }
    }
    right += static_cast<std::int64_t>(guess) == split.test.labels[static_cast<std::size_t>(i)];
  }
  EXPECT_GT(right, 290);
}

// The character that mostly follows another is the same in the test's text.
TEST(SyntheticTest, CharactersCanBeLearned) {
  const SyntheticCharactersSpec spec{
      .length = 50, .train_samples = 400, .test_samples = 40, .seed = 3};
  const CharacterSplit split = make_synthetic_characters(spec);
  EXPECT_EQ(split.train.size(), 400);
  EXPECT_EQ(split.test.size(), 40);
  EXPECT_NE(split.train.text.substr(0, 2001), split.test.text);
  EXPECT_EQ(make_synthetic_characters(spec).train.text, split.train.text);
  std::int64_t follow = 0;
  for (std::size_t i = 1; i < split.test.text.size(); ++i) {
    follow += static_cast<char>(split.test.text[i - 1] + 1) == split.test.text[i];
  }
  EXPECT_GT(follow, 1500);
  EXPECT_LT(follow, 1750);
}

}  // namespace
}  // namespace sluice
