#include "formats/checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <fstream>
#include <utility>

#include "base/hash.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CheckpointManifest some_manifest() {
  return {
      .iteration = 500,
      .version = "1.2.3",
      .settings = {{"lr", "0.05"}, {"preset", "\"p3\""}},
      .measured = {{"kernels", "native"}, {"groups", {{0, 2}, {2, 5}}}},
      .files = {{"host-0.safetensors", {120, 0xFFFFFFFFFFFFFFFF}}, {"host-1.safetensors", {0, 1}}}};
}

std::string manifest_complaint(const std::string& text) {
  const auto manifest = manifest_from(text);
  return manifest ? "" : manifest.error().message();
}

// The text of a manifest in which something is said otherwise, with the checksum that fits.
template <class Change>
std::string changed(Change change) {
  CheckpointManifest manifest = some_manifest();
  Json json = Json::parse(to_text(manifest));
  change(json);
  json.erase("checksum");
  const std::string rest = json.dump();
  json["checksum"] = fmt::format("{:016x}", hash_of(std::as_bytes(std::span(rest))));
  return json.dump();
}

TEST(CheckpointManifestTest, ComesBackFromItsText) {
  const auto read = manifest_from(to_text(some_manifest()));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, some_manifest());
}

TEST(CheckpointManifestTest, WhatIsTornOrForeignIsRefusedWithACause) {
  const std::string text = to_text(some_manifest());
  EXPECT_THAT(manifest_complaint(""), HasSubstr("manifest.json"));
  EXPECT_THAT(manifest_complaint("[1]"), HasSubstr("manifest.json"));
  EXPECT_THAT(manifest_complaint("{}"), HasSubstr("format: is missing"));
  EXPECT_THAT(manifest_complaint(changed([](Json& json) { json["format"] = 2; })),
              HasSubstr("has format 2, and this program reads format 1"));
  EXPECT_THAT(manifest_complaint(changed([](Json& json) { json["files"] = Json::array(); })),
              HasSubstr("files"));
  EXPECT_THAT(
      manifest_complaint(changed([](Json& json) { json["files"][0]["name"] = "../passwd"; })),
      HasSubstr("files[0]: is no file"));
  EXPECT_THAT(manifest_complaint(changed([](Json& json) { json["files"][1]["bytes"] = -1; })),
              HasSubstr("bytes"));
  EXPECT_THAT(manifest_complaint(changed([](Json& json) { json["settings"]["lr"] = 1; })),
              HasSubstr("lr is no text"));
  EXPECT_EQ(manifest_complaint(changed([](Json& json) { json["iteration"] = 501; })), "");
  std::string other = text;
  other.replace(other.find("500"), 3, "501");
  EXPECT_THAT(manifest_complaint(other), HasSubstr("is not what was written"));
}

RC_GTEST_PROP(CheckpointManifestTest, NoDamageGoesUnseen, ()) {
  std::string text = to_text(some_manifest());
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  if (*rc::gen::arbitrary<bool>()) {
    text.resize(at);
  } else {
    text[at] = static_cast<char>(*rc::gen::inRange(0, 256));
  }
  if (const auto read = manifest_from(text)) {
    RC_ASSERT(*read == some_manifest());
  }
}

// A checkpoint of one host, written as a run writes it.
class CheckpointFolderTest : public ::testing::Test {
 protected:
  void write(Iteration iteration) {
    const auto aside = folder_.aside(iteration, "t");
    std::filesystem::create_directories(aside);
    const std::vector<float> values{1, 2, static_cast<float>(iteration)};
    const auto digest =
        write_safetensors(aside / host_file_name(0),
                          {{"a", ElementType::kFloat32, {3}, std::as_bytes(std::span(values))}});
    ASSERT_TRUE(digest);
    ASSERT_FALSE(read_digest(aside / host_file_name(0)));
    ASSERT_TRUE(write_digest(aside / host_file_name(0), *digest));
    ASSERT_EQ(read_digest(aside / host_file_name(0)), *digest);
    const CheckpointManifest manifest{
        .iteration = iteration, .version = "1", .files = {{host_file_name(0), *digest}}};
    ASSERT_TRUE(folder_.publish(manifest, "t"));
  }

  TemporaryFolder place_{kInMemory};
  CheckpointFolder folder_{place_.path() / "checkpoints"};
};

TEST_F(CheckpointFolderTest, HoldsWhatHasItsName) {
  EXPECT_THAT(folder_.iterations(), IsEmpty());
  ASSERT_TRUE(folder_.create());
  for (const Iteration iteration : {9, 10, 100}) {
    write(iteration);
  }
  std::filesystem::create_directories(folder_.aside(200, "x"));
  std::filesystem::create_directories(folder_.path() / "iteration-007");
  std::filesystem::create_directories(folder_.path() / "iteration-1x");
  EXPECT_THAT(folder_.iterations(), ElementsAre(100, 10, 9));
  const auto manifest = read_manifest(folder_.of(10));
  ASSERT_TRUE(manifest);
  const auto bytes = read_checked(folder_.of(10), manifest->files.at(0));
  ASSERT_TRUE(bytes);
  const auto tensors = parse_safetensors(std::as_bytes(std::span(*bytes)));
  ASSERT_TRUE(tensors);
  ASSERT_EQ(tensors->size(), 1U);
  float last = 0;
  std::memcpy(&last, tensors->at(0).bytes.data() + 8, 4);
  EXPECT_EQ(last, 10);
  EXPECT_FALSE(std::filesystem::exists(folder_.of(10) / (host_file_name(0) + ".digest")));
}

TEST_F(CheckpointFolderTest, KeepsTheLastOnesAndNothingUnfinished) {
  for (const Iteration iteration : {9, 10, 100, 11}) {
    write(iteration);
  }
  std::filesystem::create_directories(folder_.aside(200, "x"));
  folder_.keep(2);
  EXPECT_THAT(folder_.iterations(), ElementsAre(100, 11));
  folder_.remove_unfinished();
  EXPECT_FALSE(std::filesystem::exists(folder_.aside(200, "x")));
  EXPECT_THAT(folder_.iterations(), ElementsAre(100, 11));
}

TEST_F(CheckpointFolderTest, OneOfTheSameIterationIsReplaced) {
  write(9);
  std::ofstream(folder_.of(9) / "manifest.json") << "torn";
  EXPECT_FALSE(read_manifest(folder_.of(9)));
  write(9);
  EXPECT_TRUE(read_manifest(folder_.of(9)));
}

TEST_F(CheckpointFolderTest, CorruptFilesAreFound) {
  write(9);
  const auto manifest = read_manifest(folder_.of(9));
  ASSERT_TRUE(manifest);
  const CheckpointFile& file = manifest->files.at(0);
  const auto path = folder_.of(9) / file.name;
  const auto complaint = [&] { return read_checked(folder_.of(9), file).error().message(); };
  const std::string bytes = *read_checked(folder_.of(9), file);
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() - 1);
  EXPECT_THAT(complaint(), HasSubstr(fmt::format("has {} bytes, and {} were written",
                                                 bytes.size() - 1, bytes.size())));
  for (const std::size_t at : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    std::string corrupt = bytes;
    corrupt[at] = static_cast<char>(corrupt[at] ^ 1);
    std::ofstream(path, std::ios::binary) << corrupt;
    EXPECT_THAT(complaint(), HasSubstr("its checksum differs"));
  }
  std::filesystem::remove(path);
  EXPECT_THAT(complaint(), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace sluice
