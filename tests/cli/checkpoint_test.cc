// Checkpoints of the program, on threads.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "support/command.h"
#include "support/short_training.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class CheckpointCliThreadsTest : public ::testing::Test {
 protected:
  CheckpointCliThreadsTest() {
    folder_.write("net.json", R"({"name":"net","batch":8,"layers":[
      {"name":"a","params":3000,"forward_us":50,"backward_us":50},
      {"name":"b","params":300,"forward_us":50,"backward_us":50}]})");
  }

  Outcome train(const std::string& arguments) const {
    return run_command(
        "'" SLUICE_BINARY "' train --model replay:net.json --workers 2 --json " + arguments,
        folder_);
  }
  json summary(const std::string& arguments) const {
    const Outcome outcome = train(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  std::string refusal(const std::string& arguments) const {
    const Outcome outcome = train(arguments + " --run refused");
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "refused"));
    return outcome.err;
  }

  TemporaryFolder folder_;
};

TEST_F(CheckpointCliThreadsTest, ARunGoesOnFromItsLast) {
  const std::string keeping = "--checkpoint kept --resume auto --checkpoint-every 4it --keep 2 ";
  const json first = summary(keeping + "--iterations 9 --run first");
  EXPECT_FALSE(first.contains("resumed"));
  EXPECT_EQ(first.at("checkpoints").at("written"), 3);
  EXPECT_EQ(first.at("checkpoints").at("failed"), 0);
  EXPECT_GT(first.at("checkpoints").at("bytes"), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "kept/iteration-9/manifest.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "kept/iteration-4"));
  const json second = summary(keeping + "--iterations 15 --run second");
  EXPECT_EQ(second.at("resumed").at("iteration"), 9);
  EXPECT_EQ(second.at("iterations"), 15);
  const std::string metrics = folder_.read("second/metrics.jsonl");
  EXPECT_EQ(std::ranges::count(metrics, '\n'), 6);
  EXPECT_EQ(json::parse(metrics.substr(0, metrics.find('\n'))).at("step"), 10);
  EXPECT_EQ(second.at("parameters_hash"), summary("--iterations 15").at("parameters_hash"));
  const Outcome table = run_command(
      "'" SLUICE_BINARY "' train --model replay:net.json --workers 2 --iterations 16 " + keeping,
      folder_);
  EXPECT_THAT(table.out, HasSubstr("resumed from"));
  EXPECT_THAT(table.out, HasSubstr("training held for"));
  EXPECT_THAT(table.err, HasSubstr("resuming from kept/iteration-15 after 15 iterations"));
}

// All workers of a replay have the same gradients, and the mean of 1, 2 or 4 of them is exact.
TEST_F(CheckpointCliThreadsTest, OtherWorkersAndServersGoOn) {
  summary("--checkpoint kept --iterations 6 --workers 4 --optimizer adam");
  const json resumed = summary(
      "--checkpoint kept --resume auto --iterations 9 --workers 2 --servers 3 --optimizer adam "
      "--run resumed");
  EXPECT_EQ(resumed.at("resumed").at("iteration"), 6);
  EXPECT_EQ(resumed.at("resumed").at("former_workers"), 4);
  EXPECT_EQ(resumed.at("resumed").at("former_hosts"), 4);
  EXPECT_EQ(resumed.at("resumed").at("former_servers"), 4);
  EXPECT_EQ(json::parse(folder_.read("resumed/summary.json")).at("resumed"), resumed.at("resumed"));
  EXPECT_EQ(resumed.at("parameters_hash"),
            summary("--iterations 9 --optimizer adam").at("parameters_hash"));
  const Outcome table =
      run_command("'" SLUICE_BINARY
                  "' train --model replay:net.json --resume kept --iterations 12 --workers 3 "
                  "--workers-per-host 3 --optimizer adam",
                  folder_);
  EXPECT_EQ(table.code, 0);
  EXPECT_THAT(table.out, HasSubstr("re-sharded, workers before"));
  EXPECT_THAT(table.err,
              HasSubstr("checkpoint of 2 workers (1 per host) with 3 servers apart taken "
                        "up by 3 workers (3 per host) with 1 servers: optimiser state "
                        "re-sharded"));
}

TEST_F(CheckpointCliThreadsTest, OtherWorkersAreRefusedWhereStateBelongsToAWorker) {
  summary("--checkpoint kept --iterations 4 --preset pipe-sgd");
  EXPECT_THAT(refusal("--resume kept --iterations 8 --preset pipe-sgd --workers 3"),
              HasSubstr("algorithm pipe-sgd goes on only with the workers, servers and hosts"));
}

TEST_F(CheckpointCliThreadsTest, WhatCannotGoOnIsRefusedWithTheReason) {
  EXPECT_THAT(refusal("--resume auto"), HasSubstr("--checkpoint, which is missing"));
  EXPECT_THAT(refusal("--keep 2"), HasSubstr("is for --checkpoint"));
  EXPECT_THAT(refusal("--checkpoint kept --checkpoint-every 5"),
              HasSubstr("--checkpoint-every: is \"5\", expected"));
  EXPECT_THAT(refusal("--checkpoint kept --checkpoint-every 0it"), HasSubstr("expected"));
  EXPECT_THAT(refusal("--resume nowhere"), HasSubstr("there is no sound checkpoint in nowhere"));
  summary("--checkpoint kept --iterations 4");
  EXPECT_THAT(refusal("--resume kept --iterations 8 --lr 0.1"),
              HasSubstr("resume: kept/iteration-4: lr was 0.05, and now is 0.1"));
  EXPECT_THAT(refusal("--resume kept --iterations 4"), HasSubstr("nothing is left to train"));
  folder_.write("kept/iteration-4/manifest.json", "{");
  EXPECT_THAT(refusal("--resume kept --iterations 8"), HasSubstr("not a sound checkpoint"));
}

class CheckpointedModelCliThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kHasModels) {
      SKIP_AS_INAPPLICABLE("built without LibTorch");
    }
    write_some_clothes(folder_.path() / "clothes");
  }

  Outcome train(const std::string& arguments) const {
    return run_command("'" SLUICE_BINARY
                       "' train --data-dir clothes --kernels native --json --preset p3 " +
                           arguments,
                       folder_);
  }
  json summary(const std::string& arguments) const {
    const Outcome outcome = train(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }

  TemporaryFolder folder_;
};

// With as many samples per iteration these are the same ones, so only rounding differs.
TEST_F(CheckpointedModelCliThreadsTest, OtherWorkersWithTheSameSamplesLearnTheSame) {
  const json whole = summary("--workers 4 --batch 6 --iterations 14");
  summary("--workers 4 --batch 6 --iterations 7 --checkpoint kept");
  for (const char* others : {"--workers 2 --batch 12", "--workers 3 --batch 4 --accumulate 2"}) {
    const json resumed = summary(std::string(others) + " --iterations 14 --resume kept");
    EXPECT_NEAR(resumed.at("test_loss"), whole.at("test_loss"), 1e-4) << others;
  }
  const json different = summary("--workers 2 --batch 4 --iterations 14 --resume kept");
  EXPECT_GT(std::abs(different.at("test_loss").get<double>() - whole.at("test_loss").get<double>()),
            1e-4);
}

TEST_F(CheckpointedModelCliThreadsTest, AnEpochOfOtherWorkersCountsAsManyIterations) {
  const std::string schedule = " --lr-decay-epochs 1 --checkpoint kept --resume auto ";
  const json first = summary("--workers 4 --batch 10 --epochs 1" + schedule);
  ASSERT_EQ(first.at("iterations"), 15);
  const Outcome second = train("--workers 2 --batch 10 --epochs 2" + schedule);
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("an iteration has up to 20 samples, and had 40; an epoch still "
                                    "counts 15 iterations"));
  const json third = summary("--workers 3 --batch 10 --epochs 3" + schedule);
  for (const auto& [run, iterations] : {std::pair{json::parse(second.out), 30}, {third, 45}}) {
    EXPECT_EQ(run.at("iterations"), iterations);
    EXPECT_EQ(run.at("optimizer").at("schedule").at("drops_after_iterations"), json({15}));
  }
}

}  // namespace
}  // namespace sluice
