// sluice compare: in virtual time with models, for real also with replays.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"
#include "support/short_training.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class CliCompareTest : public testing::Test {
 protected:
  CliCompareTest() {
    folder_.write("toy.json", R"({"name": "toy", "batch": 32, "layers": [
      {"name": "conv", "params": 4000, "forward_us": 90, "backward_us": 180},
      {"name": "fc", "params": 12000, "forward_us": 30, "backward_us": 60}]})");
    folder_.write("two.toml", "hosts = 2\nbandwidth_gbps = 1\n");
  }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_.path() / name); }

  TemporaryFolder folder_;
};

constexpr const char* kReplays =
    "compare --real --model replay:toy.json --workers 2 --iterations 6 --seeds 2 --preset "
    "p3,kvstore --log-level warn --run both";

TEST_F(CliCompareTest, TrainsForRealWithEachPresetAndSeed) {
  const Outcome outcome = sluice(kReplays + std::string(" --json"), folder_);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("samples"), 6 * 2 * 32);
  ASSERT_EQ(result.at("rows").size(), 2U);
  EXPECT_EQ(result.at("rows")[0].at("name"), "p3");
  EXPECT_EQ(result.at("rows")[1].at("name"), "kvstore");
  EXPECT_GT(result.at("rows")[1].at("iteration_ms").at("mean"), 0);
  EXPECT_TRUE(result.at("rows")[1].at("loss_at_samples").is_null());
  const json third = json::parse(folder_.read("both/cells/003/summary.json"));
  EXPECT_EQ(third.at("preset"), "kvstore");
  EXPECT_THAT(folder_.read("both/cells/004/config.toml"), HasSubstr("seed = 2 "));
  EXPECT_TRUE(has("both/cells/004/report.html"));
  EXPECT_EQ(json::parse(folder_.read("both/comparison.json")), result);
  EXPECT_THAT(folder_.read("both/report.html"),
              AllOf(HasSubstr("has the shortest iteration"), HasSubstr("2 seeds")));
}

TEST_F(CliCompareTest, PrintsATableAndNamesItsReport) {
  const Outcome outcome = sluice(kReplays, folder_);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("iteration, ms"), HasSubstr("\nkvstore "),
                                 HasSubstr("S: after 384 samples"),
                                 HasSubstr("\nreport in both/report.html\n")));
}

TEST_F(CliCompareTest, RefusesWhatHasNoEffect) {
  expect_refused(sluice("compare --preset p3,wfbp", folder_), "--cluster: is missing");
  EXPECT_THAT(sluice("compare --preset p3,wfbp", folder_).err, HasSubstr("clusters/mg-wfbp"));
  expect_refused(sluice("compare --cluster two.toml --workers 3", folder_),
                 "--workers: is for --real");
  expect_refused(sluice("compare --real --cluster two.toml", folder_), "--cluster: has no effect");
  expect_refused(sluice("compare --real --preset p3,nonsense", folder_), "");
  expect_refused(sluice("compare --real --sweep 'a=1;b=2'", folder_),
                 "--sweep: compare takes one table");
}

TEST_F(CliCompareTest, TrainsInVirtualTimeByDefault) {
  if (!kHasModels) {
    SKIP_AS_INAPPLICABLE("there are no models without LibTorch");
  }
  write_some_clothes(folder_.path() / "clothes");
  const auto compared = [&](const std::string& run) {
    const Outcome outcome = sluice(
        "compare --preset p3,asp --seeds 2 --cluster two.toml --time-scale 0.25 --data-dir clothes "
        "--batch 8 --epochs 2 --log-level warn --json --run " +
            run,
        folder_);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json();
  };
  const json result = compared("one");
  ASSERT_EQ(result.at("rows").size(), 2U);
  for (const json& row : result.at("rows")) {
    for (const char* key : {"iteration_ms", "link_percent", "loss_at_samples", "loss_at_seconds",
                            "accuracy_at_samples"}) {
      EXPECT_GT(row.at(key).at("mean"), 0) << key;
    }
  }
  EXPECT_GT(result.at("rows")[0].at("loss_at_samples").at("deviation"), 0);
  EXPECT_EQ(compared("two"), result);
  EXPECT_THAT(folder_.read("one/report.html"),
              AllOf(HasSubstr("Training loss by samples"), HasSubstr("in virtual time")));
}

// A learning rate that diverges, and one that does not.
TEST_F(CliCompareTest, GoesOnWhenATrainingDiverges) {
  if (!kHasModels) {
    SKIP_AS_INAPPLICABLE("there are no models without LibTorch");
  }
  write_some_clothes(folder_.path() / "clothes");
  const std::string task =
      " --preset p3 --data-dir clothes --batch 8 --iterations 12 --sweep lr=0.01,1e6 --log-level "
      "warn --json ";
  for (const std::string command : {"compare --seeds 2 --cluster two.toml --time-scale 0.25",
                                    "compare --seeds 2 --real --workers 2"}) {
    const Outcome outcome = sluice(command + task + "--run both", folder_);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json rows = json::parse(outcome.out).at("rows");
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].at("diverged"), 0);
    EXPECT_GT(rows[0].at("loss_at_samples").at("mean"), 0);
    EXPECT_EQ(rows[1].at("diverged"), 2);
    EXPECT_TRUE(rows[1].at("iteration_ms").is_null());
    const json diverged = json::parse(folder_.read("both/cells/003/summary.json"));
    EXPECT_THAT(diverged.at("diverged").get<std::string>(), HasSubstr("not finite in iteration"));
    EXPECT_LT(diverged.at("iterations"), 12);
    EXPECT_THAT(folder_.read("both/report.html"), HasSubstr("diverged in 2 of 2 runs"));
    std::filesystem::remove_all(folder_.path() / "both");
  }
  const Outcome swept =
      sluice("simulate --train --cluster two.toml --time-scale 0.25 --run swept" + task, folder_);
  ASSERT_EQ(swept.code, 0) << swept.err;
  EXPECT_THAT(folder_.read("swept/sweep.csv"),
              AllOf(HasSubstr(",diverged\n"), HasSubstr(",0\n"), HasSubstr("1e6,nan,nan,"),
                    HasSubstr(",nan,nan,"), HasSubstr(",1\n")));
}

// By measured speeds in train, by those of the cluster in virtual time.
TEST_F(CliCompareTest, WorkersShareTheirBatchesBySpeed) {
  if (!kHasModels) {
    SKIP_AS_INAPPLICABLE("there are no models without LibTorch");
  }
  write_some_clothes(folder_.path() / "clothes");
  folder_.write("slow.toml", "hosts = 2\nbandwidth_gbps = 1\n[[host]]\nindex = 1\nspeed = 0.5\n");
  const std::string task =
      " --preset p3 --data-dir clothes --batch 12 --iterations 4 --batch-shares auto --log-level "
      "warn --json";
  const Outcome real = sluice("train --workers 2" + task, folder_);
  ASSERT_EQ(real.code, 0) << real.err;
  EXPECT_EQ(json::parse(real.out).at("batch_shares").size(), 2U);
  const Outcome simulated =
      sluice("simulate --train --cluster slow.toml --time-scale 0.25" + task, folder_);
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_EQ(json::parse(simulated.out).at("batch_shares"), json({1.0, 0.5}));
}

}  // namespace
}  // namespace sluice
