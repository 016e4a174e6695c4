// simulate --train: real training on virtual workers.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program.h"
#include "support/short_training.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class CliVirtualTrainingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasModels) {
      SKIP_AS_INAPPLICABLE("there are no models without LibTorch");
    }
    write_some_clothes(folder_.path() / "clothes");
    folder_.write("four.toml", "hosts = 4\nbandwidth_gbps = 1\n");
  }

  Outcome run(const std::string& command) {
    return sluice(command + " --data-dir clothes --batch 8 --kernels native --log-level warn",
                  folder_);
  }
  json summary_of(const std::string& command) {
    const Outcome outcome = run(command + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json();
  }
  json simulated(const std::string& more) {
    return summary_of("simulate --train --cluster four.toml --time-scale 0.25 " + more);
  }

  TemporaryFolder folder_;
};

TEST_F(CliVirtualTrainingTest, SynchronousPresetsGiveTheBitsOfTrain) {
  for (const char* preset : {"p3", "kvstore --accumulate 2", "wfbp --collective ring"}) {
    SCOPED_TRACE(preset);
    const std::string with = fmt::format("--iterations 7 --seed 5 --preset {}", preset);
    const json real = summary_of("train --workers 4 " + with);
    const json virtually = simulated(with);
    EXPECT_EQ(virtually.at("parameters_hash"), real.at("parameters_hash"));
    EXPECT_EQ(virtually.at("loss"), real.at("loss"));
    EXPECT_EQ(virtually.at("test_accuracy"), real.at("test_accuracy"));
    EXPECT_FALSE(real.contains("clock"));
    EXPECT_EQ(virtually.at("clock"), "virtual");
  }
}

TEST_F(CliVirtualTrainingTest, ASeedDecidesAllButTheRealTime) {
  const auto ssp = [&](int seed, int threads) {
    json summary = simulated(fmt::format(
        "--preset ssp --staleness 3 --iterations 9 --seed {} --threads {}", seed, threads));
    summary.erase("real_s");
    summary.erase("loading");
    return summary;
  };
  const json one = ssp(1, 1);
  EXPECT_EQ(ssp(1, 2), one);
  EXPECT_NE(ssp(2, 2).at("parameters_hash"), one.at("parameters_hash"));
}

TEST_F(CliVirtualTrainingTest, RecordsAccuracyByEpochAndByVirtualSecond) {
  const json summary = simulated("--preset asp --epochs 2 --run run --save model");
  EXPECT_EQ(summary.at("evaluated"), "servers");
  const json& evaluations = summary.at("evaluations");
  ASSERT_EQ(evaluations.size(), 2U);
  EXPECT_EQ(evaluations[0].at("epoch"), 1);
  EXPECT_EQ(evaluations[1].at("epoch"), 2);
  EXPECT_GT(evaluations[0].at("time_s"), 0);
  EXPECT_LT(evaluations[0].at("time_s"), evaluations[1].at("time_s"));
  EXPECT_EQ(evaluations[1].at("test_accuracy"), summary.at("test_accuracy"));
  const json rarely = simulated("--preset asp --epochs 2 --evaluate-every 0");
  EXPECT_EQ(rarely.at("evaluations").size(), 1U);
  EXPECT_EQ(rarely.at("parameters_hash"), summary.at("parameters_hash"));
  std::vector<json> rows;
  std::istringstream lines(folder_.read("run/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    rows.push_back(json::parse(line));
  }
  const auto steps = summary.at("iterations").get<std::size_t>();
  ASSERT_EQ(rows.size(), steps + 2);
  EXPECT_EQ(rows.back().at("test_accuracy"), summary.at("test_accuracy"));
  EXPECT_EQ(rows.back().at("time_s"), summary.at("train_s"));
  for (const char* name :
       {"run/profile.json", "run/cluster.toml", "run/summary.json", "model/model.safetensors"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / name)) << name;
  }
  // The folder's own settings give the same run again.
  const Outcome again =
      sluice("simulate --config run/config.toml --data-dir clothes --json", folder_);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out).at("parameters_hash"), summary.at("parameters_hash"));
}

TEST_F(CliVirtualTrainingTest, ShowsATableOfItsConvergence) {
  const Outcome outcome =
      run("simulate --train --preset p3 --cluster four.toml --time-scale 0.25 --epochs 2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("virtual time"));
  EXPECT_THAT(outcome.out, HasSubstr("epoch  virtual s  test loss  test accuracy"));
}

TEST_F(CliVirtualTrainingTest, ASweepHasWhatItsTrainingsHaveAlone) {
  const auto swept = [&](int threads) {
    json all = simulated(fmt::format(
        "--epochs 2 --preset p3,asp --sweep 'hosts=2,4 seed=1,2' --threads {} --run s{}", threads,
        threads));
    for (json& cell : all.at("cells")) {
      cell.at("summary").erase("real_s");
      cell.at("summary").erase("loading");
    }
    return all;
  };
  const json all = swept(3);
  ASSERT_EQ(all.at("cells").size(), 8U);
  EXPECT_EQ(swept(1), all);
  const json& third = all.at("cells")[2];
  EXPECT_EQ(third.at("values"), (json{{"preset", "p3"}, {"hosts", "4"}, {"seed", "1"}}));
  const json alone = simulated("--epochs 2 --preset p3 --seed 1");
  EXPECT_EQ(third.at("summary").at("parameters_hash"), alone.at("parameters_hash"));
  EXPECT_EQ(third.at("summary").at("evaluations"), alone.at("evaluations"));
  EXPECT_EQ(third.at("summary").at("bytes_per_iteration"), alone.at("bytes_per_iteration"));
  const double busy = alone.at("egress_utilisation");
  EXPECT_GT(busy, 0);
  EXPECT_LE(busy, 1);
}

TEST_F(CliVirtualTrainingTest, ASweepWritesARowForEachEvaluation) {
  const Outcome outcome =
      run("simulate --train --cluster four.toml --time-scale 0.25 --epochs 2 --run swept "
          "--sweep 'preset=p3,asp hosts=2,4 seed=1,2'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("preset  hosts "));
  EXPECT_THAT(outcome.out, HasSubstr(" ± "));
  EXPECT_THAT(outcome.out, HasSubstr("sweep.csv, epochs.svg and seconds.svg in swept"));
  std::vector<std::string> rows;
  std::istringstream lines(folder_.read("swept/sweep.csv"));
  for (std::string line; std::getline(lines, line);) {
    rows.push_back(line);
  }
  ASSERT_EQ(rows.size(), 1 + 8 * 2U);
  EXPECT_EQ(rows[0],
            "preset,hosts,seed,epoch,samples_seen,time_s,test_loss,test_accuracy,iteration_us,"
            "bytes_per_iteration,egress_utilisation,ingress_utilisation,diverged");
  EXPECT_THAT(rows[1], testing::StartsWith("p3,2,1,1,"));
  EXPECT_THAT(folder_.read("swept/epochs.svg"), HasSubstr(">asp, hosts 4</text>"));
  EXPECT_THAT(folder_.read("swept/seconds.svg"), HasSubstr(">virtual seconds</text>"));
  // The settings in a cell's folder give that cell again, with its hosts.
  const Outcome again = sluice(
      "simulate --config swept/cells/002/config.toml --data-dir clothes --log-level warn --json",
      folder_);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out).at("parameters_hash"),
            json::parse(folder_.read("swept/cells/002/summary.json")).at("parameters_hash"));
}

// As if it had trained there, but for the first iterations, which are not in the steady state.
TEST_F(CliVirtualTrainingTest, ASweepTellsTheTimesAtOtherRates) {
  const auto swept = [](const std::string& rates) {
    return fmt::format(
        "--epochs 2 --sweep 'preset=p3 seed=1,2{0}; preset=diloco every=2 "
        "collective=ring seed=1,2{0}' ",
        rates);
  };
  const json timed = simulated(swept("") + "--times-at bandwidth_gbps=1,0.1 --run timed");
  const json trained = simulated(swept(" bandwidth_gbps=1,0.1") + "--run trained");
  ASSERT_EQ(timed.at("cells").size(), 8U);
  for (std::size_t c = 0; c < 8; ++c) {
    const json& here = timed.at("cells")[c];
    const json& there = trained.at("cells")[c];
    EXPECT_EQ(here.at("values"), there.at("values"));
    const json& summary = here.at("summary");
    EXPECT_EQ(summary.contains("parameters_hash"), c % 2 == 0) << "only the first rate trains";
    ASSERT_EQ(summary.at("evaluations").size(), 2U);
    for (std::size_t e = 0; e < 2; ++e) {
      const json& evaluation = summary.at("evaluations")[e];
      const json& real = there.at("summary").at("evaluations")[e];
      EXPECT_EQ(evaluation.at("test_loss"), real.at("test_loss"));
      EXPECT_NEAR(evaluation.at("time_s").get<double>() / real.at("time_s").get<double>(), 1, 0.1)
          << here.at("values");
    }
  }
}

TEST_F(CliVirtualTrainingTest, TrainsOnTheFirstSamples) {
  const json few = simulated("--preset p3 --epochs 1 --samples 64 --test-samples 10");
  EXPECT_EQ(few.at("iterations"), 2);
  EXPECT_EQ(few.at("evaluations").back().at("samples"), 64);
  const double right = 10 * few.at("test_accuracy").get<double>();
  EXPECT_DOUBLE_EQ(right, std::round(right));
}

TEST_F(CliVirtualTrainingTest, RefusesASweepThatMakesNoSense) {
  const auto refused = [&](const std::string& more) {
    return sluice("simulate --train --data-dir clothes --cluster four.toml " + more, folder_);
  };
  expect_refused(refused("--sweep hosts=2,4 --save model"), "--save: a sweep trains many models");
  expect_refused(refused("--sweep kernels=native,onednn"),
                 "--sweep: kernels=onednn: kernels: are those of the whole process");
  expect_refused(refused("--sweep 'batch=8,8000' --log-level error"),
                 "--sweep: batch=8000: batch: 4 workers with");
  expect_refused(refused("--sweep batch=8 --trace t.json"), "--trace: a sweep simulates many runs");
  const std::string rates = " --times-at bandwidth_gbps=1,10";
  expect_refused(refused("--preset asp --sweep seed=1,2" + rates),
                 "--times-at: what seed=1 bandwidth_gbps=1 learns depends on the times");
  expect_refused(refused("--sweep seed=1,2 --times-at lr=1,2"), "--times-at: lr is a setting");
  expect_refused(refused("--sweep bandwidth_gbps=1,2" + rates),
                 "--times-at: bandwidth_gbps: is an axis of the sweep already");
  expect_refused(refused("--codec auto --sweep seed=1,2" + rates + " --log-level error"),
                 "--times-at: codec auto depends on the rate");
  expect_refused(refused("--seed 1" + rates), "--times-at: is for the trainings of a sweep");
}

TEST_F(CliVirtualTrainingTest, RefusesWhatMakesNoSense) {
  const auto refused = [&](const std::string& more) {
    return sluice("simulate --cluster four.toml " + more, folder_);
  };
  expect_refused(refused("--profile h200/lenet --lr 0.1"), "--lr: nothing is trained; add --train");
  expect_refused(refused("--train --model replay:h200/lenet --profile h200/lenet"),
                 "--model: a replay learns nothing");
  expect_refused(refused("--train --param-scale 2"), "--param-scale: --train has the parameters");
  expect_refused(refused("--train --batch 32 --profile h200/mlp --log-level error"),
                 "profile mlp: has ");
  EXPECT_THAT(refused("--train --batch 8 --profile h200/mlp").err,
              HasSubstr("a batch of 25, and here a batch has 8"));
}

}  // namespace
}  // namespace sluice
