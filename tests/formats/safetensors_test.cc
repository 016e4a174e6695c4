#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

template <class T, std::size_t N>
StoredTensor tensor(const std::string& name, ElementType type, std::vector<std::int64_t> shape,
                    const std::array<T, N>& values) {
  return {name, type, std::move(shape), std::as_bytes(std::span(values))};
}

// The contents of a file, read according to the format's specification.
struct Parsed {
  json header;
  std::string data;
};

Parsed parse(const std::string& file) {
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) {
    length = length * 256 + static_cast<unsigned char>(file.at(i));
  }
  const std::string header = file.substr(8, length);
  EXPECT_EQ(header.size(), length);
  EXPECT_EQ(header.front(), '{');
  EXPECT_EQ((8 + length) % 8, 0U);
  return {json::parse(header), file.substr(8 + length)};
}

template <class T>
std::vector<T> values_of(const Parsed& parsed, const std::string& name) {
  const std::size_t begin = parsed.header.at(name).at("data_offsets").at(0);
  const std::size_t end = parsed.header.at(name).at("data_offsets").at(1);
  EXPECT_EQ(begin % sizeof(T), 0U) << name;
  std::vector<T> values((end - begin) / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), parsed.data.data() + begin, end - begin);
  }
  return values;
}

TEST(SafetensorsTest, HoldsEveryTensor) {
  const std::array<std::uint8_t, 3> mask{1, 0, 1};
  const std::array<float, 6> weight{1.5F, -2, 3, 1e-30F, 5, 6};
  const std::array<std::int64_t, 1> count{-7};
  const std::array<double, 2> wide{0.1, 0.2};
  const TemporaryFolder folder;
  const auto written =
      write_safetensors(folder.path() / "m.safetensors",
                        {tensor("mask", ElementType::kBool, {3}, mask),
                         tensor("layer.weight", ElementType::kFloat32, {2, 3}, weight),
                         {"nothing", ElementType::kFloat16, {0, 4}, {}},
                         tensor("norm.num_batches_tracked", ElementType::kInt64, {}, count),
                         tensor("gr\u00f6\u00dfe \"x\"", ElementType::kFloat64, {2}, wide)});
  ASSERT_TRUE(written) << written.error().message();
  const Parsed parsed = parse(folder.read("m.safetensors"));
  EXPECT_EQ(parsed.header.size(), 6U);
  EXPECT_EQ(parsed.header.at("__metadata__"), (json{{"format", "pt"}}));
  EXPECT_EQ(parsed.header.at("layer.weight").at("dtype"), "F32");
  EXPECT_EQ(parsed.header.at("layer.weight").at("shape"), (json{2, 3}));
  EXPECT_EQ(parsed.header.at("norm.num_batches_tracked").at("dtype"), "I64");
  EXPECT_EQ(parsed.header.at("norm.num_batches_tracked").at("shape"), json::array());
  EXPECT_EQ(parsed.header.at("mask").at("dtype"), "BOOL");
  EXPECT_THAT(values_of<float>(parsed, "layer.weight"), ::testing::ElementsAreArray(weight));
  EXPECT_THAT(values_of<std::int64_t>(parsed, "norm.num_batches_tracked"),
              ::testing::ElementsAre(-7));
  EXPECT_THAT(values_of<std::uint8_t>(parsed, "mask"), ::testing::ElementsAreArray(mask));
  EXPECT_THAT(values_of<double>(parsed, "gr\u00f6\u00dfe \"x\""),
              ::testing::ElementsAreArray(wide));
  EXPECT_THAT(values_of<std::uint16_t>(parsed, "nothing"), ::testing::IsEmpty());
  // No holes: every byte belongs to one tensor.
  EXPECT_EQ(parsed.data.size(), 3U + 24 + 8 + 16);
}

TEST(SafetensorsTest, TheBytesOfASmallFile) {
  const std::array<float, 1> one{1};
  const TemporaryFolder folder;
  ASSERT_TRUE(
      write_safetensors(folder.path() / "m", {tensor("a", ElementType::kFloat32, {1}, one)}));
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  ASSERT_EQ(header.size(), 85U);
  EXPECT_EQ(folder.read("m"),
            std::string("\x58\0\0\0\0\0\0\0", 8) + header + "   " + std::string("\0\0\x80\x3f", 4));
}

TEST(SafetensorsTest, RefusesNamesThatTheFormatCannotHold) {
  const std::array<float, 1> one{1};
  const TemporaryFolder folder;
  const auto refused = [&](const std::vector<std::string>& names) {
    std::vector<StoredTensor> tensors;
    for (const std::string& name : names) {
      tensors.push_back(tensor(name, ElementType::kFloat32, {1}, one));
    }
    const auto written = write_safetensors(folder.path() / "m", tensors);
    EXPECT_FALSE(written);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    return written ? "" : written.error().message();
  };
  EXPECT_THAT(refused({"a", "b", "a"}), HasSubstr("m: there are two tensors named a"));
  EXPECT_THAT(refused({"__metadata__"}), HasSubstr("must not be named __metadata__"));
  EXPECT_THAT(refused({"a\xff"}), HasSubstr("not UTF-8"));
}

TEST(SafetensorsTest, AFolderThatIsNotThereIsAnError) {
  const auto written = write_safetensors("/nonexistent/m.safetensors", {});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message(),
              HasSubstr("/nonexistent/m.safetensors: cannot be written"));
}

std::span<const std::byte> bytes_in(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(SafetensorsTest, GivesBackWhatItHolds) {
  const std::array<float, 6> weight{1.5F, -2, 3, 1e-30F, 5, 6};
  const std::array<std::int64_t, 1> count{-7};
  const TemporaryFolder folder;
  const auto digest = write_safetensors(folder.path() / "file",
                                        {tensor("weight", ElementType::kFloat32, {2, 3}, weight),
                                         tensor("count", ElementType::kInt64, {}, count)});
  ASSERT_TRUE(digest);
  const std::string file = folder.read("file");
  EXPECT_EQ(digest->bytes, file.size());
  EXPECT_EQ(digest->checksum, hash_of(bytes_in(file)));
  const auto tensors = parse_safetensors(bytes_in(file));
  ASSERT_TRUE(tensors) << tensors.error().message();
  ASSERT_EQ(tensors->size(), 2U);
  for (const StoredTensor& read : *tensors) {
    const bool is_count = read.name == "count";
    EXPECT_EQ(read.type, is_count ? ElementType::kInt64 : ElementType::kFloat32);
    EXPECT_EQ(read.shape,
              is_count ? std::vector<std::int64_t>{} : (std::vector<std::int64_t>{2, 3}));
    const std::span<const std::byte> values =
        is_count ? std::span<const std::byte>(std::as_bytes(std::span(count)))
                 : std::span<const std::byte>(std::as_bytes(std::span(weight)));
    EXPECT_TRUE(std::ranges::equal(read.bytes, values));
  }
}

TEST(SafetensorsTest, WhatIsNoSuchFileIsRefusedWithACause) {
  const auto complaint = [](const std::string& header, std::size_t data = 8) {
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    file += header + std::string(data, 'x');
    const auto tensors = parse_safetensors(bytes_in(file));
    return tensors ? "" : tensors.error().message();
  };
  EXPECT_EQ(complaint(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"), "");
  EXPECT_THAT(parse_safetensors(bytes_in("1234567")).error().message(), HasSubstr("too short"));
  EXPECT_THAT(parse_safetensors(bytes_in(std::string(20, '\x7f'))).error().message(),
              HasSubstr("ends before its header"));
  EXPECT_THAT(complaint("[]"), HasSubstr("no object"));
  EXPECT_THAT(complaint("{"), HasSubstr("the header"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":"F32","shape":[2]}})"), HasSubstr("tensor a has no"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})"),
              HasSubstr("unknown type"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})"),
              HasSubstr("does not lie in the file"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})"),
              HasSubstr("does not lie in the file"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})"),
              HasSubstr("not the length of its shape"));
  EXPECT_THAT(
      complaint(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"),
      HasSubstr("not the length of its shape"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})"),
              HasSubstr("not the length of its shape"));
}

RC_GTEST_PROP(SafetensorsTest, NoBytesLeadOutOfTheFile, ()) {
  const std::array<float, 6> weight{1.5F, -2, 3, 1e-30F, 5, 6};
  const TemporaryFolder folder(kInMemory);
  RC_ASSERT(write_safetensors(folder.path() / "file",
                              {tensor("weight", ElementType::kFloat32, {2, 3}, weight)}));
  std::string file = folder.read("file");
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    file[*rc::gen::inRange<std::size_t>(0, file.size())] =
        static_cast<char>(*rc::gen::inRange(0, 256));
  }
  file.resize(*rc::gen::inRange<std::size_t>(0, file.size() + 1));
  if (const auto tensors = parse_safetensors(bytes_in(file))) {
    for (const StoredTensor& read : *tensors) {
      const auto* const begin = reinterpret_cast<const char*>(read.bytes.data());
      RC_ASSERT(begin >= file.data() && begin + read.bytes.size() <= file.data() + file.size());
    }
  }
}

}  // namespace
}  // namespace sluice
