#include "report/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

TEST(RunFolderTest, HoldsTheRecordOfARun) {
  const TemporaryFolder temporary;
  auto run = RunFolder::create(temporary.path() / "runs" / "a");
  ASSERT_TRUE(run);
  RunFolder folder = *std::move(run);
  EXPECT_EQ(folder.file("trace.json"), temporary.path() / "runs" / "a" / "trace.json");
  ASSERT_TRUE(folder.write_config("slice = 1\n"));
  ASSERT_TRUE(folder.append_metrics({{"step", 1}, {"loss", 0.5}}));
  EXPECT_EQ(temporary.read("runs/a/metrics.jsonl"), "{\"step\":1,\"loss\":0.5}\n");
  ASSERT_TRUE(folder.append_metrics({{"step", 2}}));
  ASSERT_TRUE(folder.write_summary({{"z", 1}, {"a", 2}}));
  EXPECT_EQ(temporary.read("runs/a/config.toml"), "slice = 1\n");
  EXPECT_EQ(temporary.read("runs/a/metrics.jsonl"), "{\"step\":1,\"loss\":0.5}\n{\"step\":2}\n");
  EXPECT_EQ(ordered_json::parse(temporary.read("runs/a/summary.json")).dump(), R"({"z":1,"a":2})");
}

TEST(RunFolderTest, TakesAnEmptyFolderButNoOtherRun) {
  const TemporaryFolder temporary;
  ASSERT_TRUE(RunFolder::create(temporary.path()));
  temporary.write("config.toml", "");
  const auto again = RunFolder::create(temporary.path());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message(), HasSubstr(temporary.path().string()));
  EXPECT_THAT(again.error().message(), HasSubstr("--run"));
}

TEST(RunFolderTest, IsFoundWithoutARowThatIsTorn) {
  const TemporaryFolder folder;
  EXPECT_FALSE(RunFolder::find(folder.path() / "none"));
  folder.write("config.toml", "");
  folder.write("metrics.jsonl", "{\"step\":1}\n{\"st");
  auto found = RunFolder::find(folder.path());
  ASSERT_TRUE(found);
  ASSERT_TRUE(found->append_metrics({{"step", 2}}));
  EXPECT_EQ(folder.read("metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(RunFolderTest, SaysWhyItCannotBeMade) {
  const TemporaryFolder temporary;
  temporary.write("file", "");
  const auto made = RunFolder::create(temporary.path() / "file" / "run");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("file/run: the run's folder cannot be created: "));
}

TEST(RunFolderTest, SaysWhenItCannotBeWritten) {
  const TemporaryFolder temporary;
  auto run = RunFolder::create(temporary.path() / "gone");
  ASSERT_TRUE(run);
  RunFolder folder = *std::move(run);
  std::filesystem::remove(folder.path());
  EXPECT_FALSE(folder.append_metrics({}));
  EXPECT_FALSE(folder.write_summary({}));
}

}  // namespace
}  // namespace sluice
