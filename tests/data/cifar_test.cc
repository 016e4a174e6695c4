#include "data/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kPixels = 3072;

// Labels, and an image that is black except for its last pixel.
std::string record(const std::string& labels, char last) {
  std::string bytes = labels + std::string(kPixels, '\0');
  bytes.back() = last;
  return bytes;
}

void write_cifar10(const TemporaryFolder& folder) {
  for (char batch = 1; batch <= 5; ++batch) {
    folder.write("data_batch_" + std::to_string(batch) + ".bin", record({batch}, batch));
  }
  folder.write("test_batch.bin", record({9}, '\xff') + record({0}, 1));
}

TEST(CifarTest, TellsWhatItsSamplesWentThroughAndNamesTheClasses) {
  const TemporaryFolder folder;
  write_cifar10(folder);
  auto split = read_cifar_folder(folder.path(), Cifar::k10);
  ASSERT_TRUE(split) << split.error().message();
  const Preparation plain = split->test.preparation();
  EXPECT_TRUE(plain.classes.empty());
  ASSERT_EQ(plain.mean.size(), 1U);
  EXPECT_NEAR(plain.mean[0], (1 + 2 + 3 + 4 + 5) / (5.0 * kPixels), 1e-9);
  EXPECT_NEAR(split->test.features[kPixels - 1], (255 - plain.mean[0]) / plain.deviation[0], 1e-3);
  folder.write("batches.meta.txt", "a\nb\r\nc\nd\ne\nf\ng\nh\ni\nj k\n\n");
  split = read_cifar_folder(folder.path(), Cifar::k10);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->train.preparation().classes.size(), 10U);
  EXPECT_EQ(split->train.preparation().classes[1], "b");
  EXPECT_EQ(split->test.preparation().classes[9], "j k");
  folder.write("batches.meta.txt", "too\nfew\n");
  EXPECT_TRUE(read_cifar_folder(folder.path(), Cifar::k10)->train.prepared.classes.empty());
}

std::string message_of(const TemporaryFolder& folder, Cifar kind) {
  const auto split = read_cifar_folder(folder.path(), kind);
  return split ? "" : split.error().message();
}

TEST(CifarTest, ReadsTheBatchesInTheirOrder) {
  const TemporaryFolder folder;
  write_cifar10(folder);
  const auto split = read_cifar_folder(folder.path(), Cifar::k10);
  ASSERT_TRUE(split) << split.error().message();
  EXPECT_EQ(split->train.labels, (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(split->test.labels, (std::vector<std::int64_t>{9, 0}));
  EXPECT_EQ(split->train.classes, 10);
  EXPECT_EQ(split->test.sample_shape, (std::vector<std::int64_t>{3, 32, 32}));
  ASSERT_EQ(split->train.features.size(), 5 * kPixels);
  // Standardising keeps differences up to a factor; bytes are unsigned.
  const auto last = [](const DataSet& set, std::int64_t i) { return set.sample(i).back(); };
  const float dark = split->train.sample(0).front();
  const float unit = last(split->train, 0) - dark;
  EXPECT_GT(unit, 0);
  EXPECT_NEAR((last(split->train, 4) - dark) / unit, 5, 1e-3);
  EXPECT_NEAR((last(split->test, 0) - dark) / unit, 255, 0.1);
}

TEST(CifarTest, TakesTheFineLabels) {
  const TemporaryFolder folder;
  folder.write("train.bin", record({19, 99}, 1) + record({0, 7}, 2));
  folder.write("test.bin", record({3, 0}, 3));
  const auto split = read_cifar_folder(folder.path(), Cifar::k100);
  ASSERT_TRUE(split) << split.error().message();
  EXPECT_EQ(split->train.labels, (std::vector<std::int64_t>{99, 7}));
  EXPECT_EQ(split->train.classes, 100);
}

TEST(CifarTest, NamesFileOffsetAndWhatWasExpected) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of(folder, Cifar::k100), HasSubstr("train.bin: cannot be read"));
  write_cifar10(folder);
  folder.write("data_batch_3.bin", record({3}, 1) + record({4}, 1).substr(0, 100));
  EXPECT_THAT(
      message_of(folder, Cifar::k10),
      HasSubstr("data_batch_3.bin: offset 3073: expected a record of 3073 bytes, found 100"));
  folder.write("data_batch_3.bin", record({3}, 1) + record({10}, 1));
  EXPECT_THAT(message_of(folder, Cifar::k10),
              HasSubstr("data_batch_3.bin: offset 3073: expected a label of 0 ... 9, found 10"));
  folder.write("data_batch_3.bin", "");
  EXPECT_THAT(message_of(folder, Cifar::k10), HasSubstr("offset 0: expected records"));
}

TEST(CifarTest, NoticesWhereverARecordIsCut) {
  const TemporaryFolder folder;
  folder.write("train.bin", record({0, 7}, 2));
  const std::string whole = record({3, 0}, 3);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    folder.write("test.bin", whole + whole.substr(0, length));
    ASSERT_THAT(message_of(folder, Cifar::k100), HasSubstr(length == 0 ? "" : "offset 3074: "))
        << length;
  }
}

}  // namespace
}  // namespace sluice
