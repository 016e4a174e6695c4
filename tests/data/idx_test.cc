#include "data/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/skip.h"

namespace sluice {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>((value >> static_cast<unsigned>(shift)) & 0xffU));
  }
  return bytes;
}

std::string idx_bytes(const std::vector<std::uint32_t>& shape, const std::string& elements) {
  std::string bytes = big_endian(0x0800U + static_cast<std::uint32_t>(shape.size()));
  for (const std::uint32_t size : shape) {
    bytes += big_endian(size);
  }
  return bytes + elements;
}

std::string zip(const std::string& bytes) {
  const std::string path = testing::TempDir() + "/zip_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  std::ifstream packed(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(packed), {}};
}

class IdxTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/idx_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // Two training images of 2x3 pixels and one test image.
  void write_folder() {
    write("train-images-idx3-ubyte",
          idx_bytes({2, 2, 3}, std::string("\0\1\2\3\4\5\6\7\10\11\12\13", 12)));
    write("train-labels-idx1-ubyte.gz", zip(idx_bytes({2}, std::string("\2\0", 2))));
    write("t10k-images-idx3-ubyte.gz", zip(idx_bytes({1, 2, 3}, "\6\6\6\6\6\6")));
    write("t10k-labels-idx1-ubyte", idx_bytes({1}, "\1"));
  }

  std::string folder_;
};

void expect_error(const Result<IdxArray>& result, const std::vector<std::string>& parts) {
  ASSERT_FALSE(result);
  for (const std::string& part : parts) {
    EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().message();
  }
}

TEST_F(IdxTest, ReadsPlainAndPackedFilesAlike) {
  const std::string bytes = idx_bytes({2, 1, 2}, std::string("\0\177\200\377", 4));
  for (const std::string& path : {write("plain", bytes), write("packed", zip(bytes))}) {
    const auto array = read_idx(path, 3);
    ASSERT_TRUE(array) << array.error().message();
    EXPECT_EQ(array->shape, (std::vector<std::int64_t>{2, 1, 2}));
    EXPECT_EQ(array->values, (std::vector<std::uint8_t>{0, 127, 128, 255}));
  }
}

TEST_F(IdxTest, ReadsFilesLargerThanOneBlock) {
  std::string elements(20'000'000, '\0');
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<char>(i * 7 + i / 256);
  }
  const auto array = read_idx(
      write("large", idx_bytes({static_cast<std::uint32_t>(elements.size())}, elements)), 1);
  ASSERT_TRUE(array) << array.error().message();
  EXPECT_TRUE(std::equal(elements.begin(), elements.end(), array->values.begin(),
                         [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }));
}

TEST_F(IdxTest, TellsWhereAPlainFileIsCut) {
  const std::string whole = idx_bytes({2, 2, 2}, "abcdefgh");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::size_t offset = length < 16 ? length / 4 * 4 : 16;
    expect_error(read_idx(write("cut", whole.substr(0, length)), 3),
                 {folder_ + "/cut: offset " + std::to_string(offset) + ": expected",
                  "found " + std::to_string(length - offset), "fetch it again"});
  }
}

TEST_F(IdxTest, NoticesWhereverAPackedFileIsCut) {
  const std::string whole = zip(idx_bytes({2, 2, 2}, "abcdefgh"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    expect_error(read_idx(write("cut.gz", whole.substr(0, length)), 3),
                 {folder_ + "/cut.gz: offset ", "expected", "fetch it again"});
  }
}

TEST_F(IdxTest, NoticesAWrongCheckSum) {
  std::string packed = zip(idx_bytes({8}, "abcdefgh"));
  packed[packed.size() - 8] ^= 1;  // the last eight bytes are the checksum and the length
  expect_error(read_idx(write("sum.gz", packed), 1), {"(incorrect data check)", "fetch it again"});
}

TEST_F(IdxTest, RefusesOtherHeaders) {
  const std::string labels = idx_bytes({2}, "ab");
  expect_error(read_idx(write("labels", labels), 3),
               {"offset 0", "00 00 08 03", "found 00 00 08 01"});
  std::string floats = labels;
  floats[2] = 0x0d;
  expect_error(read_idx(write("floats", floats), 1), {"found 00 00 0d 01"});
}

TEST_F(IdxTest, RefusesImpossibleSizes) {
  expect_error(read_idx(write("empty", idx_bytes({0}, "")), 1), {"offset 4", "found 0"});
  expect_error(read_idx(write("huge", idx_bytes({0xffffffffU, 0xffffffffU, 0xffffffffU}, "ab")), 3),
               {"offset 8", "found 4294967295"});
  // A size too large for the file must not be allocated first.
  expect_error(read_idx(write("promise", idx_bytes({0xffffffffU, 0xffU}, "ab")), 2),
               {"offset 12", "found 2"});
}

TEST_F(IdxTest, RefusesMoreThanThereShouldBe) {
  expect_error(read_idx(write("more", idx_bytes({2}, "abc")), 1), {"offset 10", "more bytes"});
}

TEST_F(IdxTest, SaysHowToGetAMissingFile) {
  expect_error(read_idx(folder_ + "/none", 1), {folder_ + "/none", "apt-get install"});
}

TEST_F(IdxTest, ReadsAFolder) {
  write_folder();
  const auto split = read_idx_folder(folder_);
  ASSERT_TRUE(split) << split.error().message();
  EXPECT_EQ(split->train.sample_shape, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(split->train.labels, (std::vector<std::int64_t>{2, 0}));
  EXPECT_EQ(split->test.labels, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(split->train.classes, 3);
  EXPECT_EQ(split->test.classes, 3);
  // The pixels 0 ... 11 have mean 5.5 and variance (12^2 - 1) / 12.
  const double deviation = std::sqrt(143.0 / 12);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(split->train.features[i], (static_cast<double>(i) - 5.5) / deviation, 1e-6);
  }
  ASSERT_EQ(split->test.features.size(), 6U);
  EXPECT_NEAR(split->test.features[0], 0.5 / deviation, 1e-6);
}

TEST_F(IdxTest, NamesTheMissingPartOfAFolder) {
  write_folder();
  std::filesystem::remove(folder_ + "/t10k-labels-idx1-ubyte");
  const auto split = read_idx_folder(folder_);
  ASSERT_FALSE(split);
  EXPECT_NE(split.error().message().find("t10k-labels-idx1-ubyte"), std::string::npos);
  EXPECT_NE(split.error().message().find("apt-get install dataset-fashion-mnist"),
            std::string::npos);
}

TEST_F(IdxTest, RefusesPartsThatDoNotFit) {
  write_folder();
  write("t10k-labels-idx1-ubyte", idx_bytes({2}, "\1\1"));
  EXPECT_FALSE(read_idx_folder(folder_));
  write("t10k-labels-idx1-ubyte", idx_bytes({1}, "\3"));
  EXPECT_FALSE(read_idx_folder(folder_));
  write("t10k-labels-idx1-ubyte", idx_bytes({1}, "\2"));
  EXPECT_TRUE(read_idx_folder(folder_));
}

TEST(FashionMnistTest, ReadsThePackage) {
  if (!std::filesystem::exists(kFashionMnistFolder)) {
    SKIP_FOR_LACK("there is no " + std::string(kFashionMnistFolder) +
                  "; apt-get install dataset-fashion-mnist");
  }
  const auto split = read_idx_folder(kFashionMnistFolder);
  ASSERT_TRUE(split) << split.error().message();
  EXPECT_EQ(split->train.size(), 60'000);
  EXPECT_EQ(split->test.size(), 10'000);
  EXPECT_EQ(split->train.classes, 10);
  EXPECT_EQ(split->train.sample_shape, (std::vector<std::int64_t>{1, 28, 28}));
  std::vector<int> counts(10);
  for (const std::int64_t label : split->train.labels) {
    ++counts.at(static_cast<std::size_t>(label));
  }
  EXPECT_EQ(counts, std::vector<int>(10, 6000));
  const Preparation preparation = split->test.preparation();
  ASSERT_EQ(preparation.classes.size(), 10U);
  EXPECT_EQ(preparation.classes[9], "Ankle boot");
  EXPECT_NEAR(preparation.mean.at(0), 72.94, 0.01);
  EXPECT_NEAR(preparation.deviation.at(0), 90.02, 0.01);
}

}  // namespace
}  // namespace sluice
