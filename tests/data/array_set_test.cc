#include "data/array_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "data/npy.h"
#include "support/some_arrays.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

class ArraySetTest : public testing::Test {
 protected:
  void write(const std::string& part, const std::string& inputs, const std::string& targets) {
    folder_.write(part + "-inputs.npy", inputs);
    folder_.write(part + "-targets.npy", targets);
  }
  std::string failure() {
    const auto split = read_arrays(folder_.path());
    return split ? "none" : split.error().message();
  }
  std::string npy_failure(const std::string& bytes) {
    const auto array = read_npy(folder_.write("one.npy", bytes));
    return array ? "none" : array.error().message();
  }

  TemporaryFolder folder_;
};

TEST_F(ArraySetTest, RealTargetsComeWithTheirSamples) {
  write("train", npy_bytes<float>({3, 2}, {1, 2, 3, 4, 5, 6}),
        npy_bytes<double>({3, 1}, {.1, .2, .3}));
  write("test", npy_bytes<float>({1, 2}, {7, 8}), npy_bytes<float>({1, 1}, {.4F}));
  const auto split = read_arrays(folder_.path());
  ASSERT_TRUE(split) << split.error().message();
  EXPECT_EQ(split->train.size(), 3);
  EXPECT_EQ(split->test.size(), 1);
  EXPECT_THAT(split->train.form().shape, ElementsAre(2));
  EXPECT_THAT(split->train.form().target_shape, ElementsAre(1));
  EXPECT_EQ(split->train.form().classes, 0);
  Batch batch;
  split->train.load(std::array<std::int64_t, 2>{2, 0}, 0, batch);
  EXPECT_THAT(batch.shape, ElementsAre(2, 2));
  EXPECT_EQ(batch.features, (Floats{5, 6, 1, 2}));
  EXPECT_EQ(batch.targets, (Floats{.3F, .1F}));
  EXPECT_THAT(batch.target_shape, ElementsAre(2, 1));
  EXPECT_TRUE(batch.labels.empty());
}

TEST_F(ArraySetTest, IntegersAreWordsAndLabels) {
  write("train", npy_bytes<std::int64_t>({2, 2}, {1, 2, 3, 4}),
        npy_bytes<std::int32_t>({2, 2}, {1, -100, 0, 1}));
  write("test", npy_bytes<std::int64_t>({1, 2}, {9, 1}), npy_bytes<std::int64_t>({1, 2}, {4, 0}));
  const auto split = read_arrays(folder_.path());
  ASSERT_TRUE(split) << split.error().message();
  EXPECT_EQ(split->train.form().words, 10);
  EXPECT_EQ(split->train.form().classes, 5);
  Batch batch;
  split->train.load(std::array<std::int64_t, 1>{0}, 0, batch);
  EXPECT_EQ(batch.words, (Integers{1, 2}));
  EXPECT_EQ(batch.labels, (Integers{1, kNoLabel}));
}

TEST_F(ArraySetTest, SaysWhatDoesNotFit) {
  const std::string inputs = npy_bytes<float>({2, 1}, {1, 2});
  const std::string targets = npy_bytes<float>({2}, {1, 2});
  write("train", inputs, targets);
  EXPECT_THAT(failure(), HasSubstr("test-inputs.npy"));
  write("test", inputs, npy_bytes<float>({1}, {1}));
  EXPECT_THAT(failure(), HasSubstr("is of shape (2, 1), and the targets are of shape (1)"));
  write("test", inputs, npy_bytes<std::int64_t>({2}, {1, 2}));
  EXPECT_THAT(failure(), HasSubstr("of another shape or type than those for training"));
  write("test", inputs, npy_bytes<std::int64_t>({2}, {1, -3}));
  EXPECT_THAT(failure(), HasSubstr("has the value -3, expected numbers from 0 on"));
  write("test", inputs, targets);
  EXPECT_EQ(failure(), "none");
}

TEST_F(ArraySetTest, BadFilesAreRefused) {
  const std::string good = npy_bytes<float>({2, 1}, {1, 2});
  EXPECT_EQ(npy_failure(good), "none");
  EXPECT_THAT(npy_failure(""), HasSubstr("is not an array of NumPy"));
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(npy_failure(good.substr(0, length)), "none") << length;
  }
  EXPECT_THAT(npy_failure(good + "x"), HasSubstr("promises 8 bytes of elements, and it has 9"));
  EXPECT_THAT(npy_failure(npy_bytes<float>("|u1", {2}, {1, 2})), HasSubstr("of type \"|u1\""));
  EXPECT_THAT(npy_failure(npy_bytes<float>({1 << 30, 1 << 30}, {1})),
              HasSubstr("is not an array of NumPy"));
  std::string columns = good;
  columns.replace(columns.find("False"), 5, "True ");
  EXPECT_THAT(npy_failure(columns), HasSubstr("column-major"));
}

}  // namespace
}  // namespace sluice
