// Trains on four emulated hosts, which needs root; skipped if something is missing.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "lab/lab.h"
#include "support/mpirun.h"
#include "support/short_training.h"
#include "support/skip.h"

namespace sluice {
namespace {

class LabTrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacks = lab::missing(); !lacks.empty()) {
      SKIP_FOR_LACK(fmt::format("this machine lacks {}", fmt::join(lacks, ", and ")));
    }
    if (!kHasModels) {
      SKIP_AS_INAPPLICABLE("built without LibTorch");
    }
    if (!uses_open_mpi()) {
      SKIP_AS_INAPPLICABLE("a lab starts its processes with Open MPI's mpirun");
    }
  }

  TemporaryFolder folder_;
};

// The first preset of each kind of exchange. What else tells presets apart is the same on any
// network, and tested over TCP.
std::vector<Preset> one_of_each_exchange() {
  std::set<std::tuple<Algorithm, Exchange, bool, bool, bool>> seen;
  std::vector<Preset> found;
  for (const Preset& preset : presets()) {
    const Strategy& strategy = preset.strategy;
    const bool priority = strategy.order == Order::kPriority;
    const bool merged = strategy.partition == Partition::kMerged;
    const auto kind =
        std::tuple(strategy.algorithm, strategy.exchange, priority, merged, strategy.gathered());
    if (seen.insert(kind).second) {
      found.push_back(preset);
    }
  }
  return found;
}

class LabTrainPresetTest : public LabTrainTest, public ::testing::WithParamInterface<Preset> {};
INSTANTIATE_TEST_SUITE_P(, LabTrainPresetTest, ::testing::ValuesIn(one_of_each_exchange()),
                         preset_name);

TEST_P(LabTrainPresetTest, TrainsAModel) {
  const std::string training = short_training(GetParam(), folder_);
  const Outcome hosts = run_command("timeout 120 '" SLUICE_BINARY
                                    "' lab --hosts 4 --rate 1gbit --run lab -- sluice " +
                                        training + " --run hosts",
                                    folder_);
  ASSERT_EQ(hosts.code, 0) << hosts.err;
  const auto there = nlohmann::json::parse(folder_.read("hosts/summary.json"));
  EXPECT_EQ(there.at("workers"), 4 - GetParam().servers);
  EXPECT_LT(there.at("network").at("gbps"), 1.2) << "the lab's limit is measured";
  const Strategy& strategy = GetParam().strategy;
  if (strategy.gathered()) {
    EXPECT_GT(there.at("network").at("segment"), kEagerParams) << "packed, more fit into a message";
  } else {
    EXPECT_EQ(there.at("network").at("segment"), strategy.segment_params == 0 ? 0 : kEagerParams);
  }
  EXPECT_EQ(there.at("network").at("fragment_bytes"), 64 << 10);
  EXPECT_EQ(there.contains("merging"), GetParam().strategy.partition == Partition::kMerged);
  if (is_as_on_threads(GetParam())) {
    const Outcome threads =
        run_command("'" SLUICE_BINARY "' " + training + " --run threads", folder_);
    ASSERT_EQ(threads.code, 0) << threads.err;
    const auto here = nlohmann::json::parse(folder_.read("threads/summary.json"));
    EXPECT_EQ(here.at("parameters_hash"), there.at("parameters_hash"));
  }
}

// Two machines of two processes, which find out by themselves that one should speak for both.
TEST_F(LabTrainTest, ProcessesOfAMachineAddTheirGradientsBeforeTheyLeaveIt) {
  const std::string training = short_training(*find_preset("p3-allreduce"), folder_);
  const Outcome hosts = run_command("timeout 120 '" SLUICE_BINARY
                                    "' lab --hosts 2 --workers-per-host 2 --rate 1gbit --run lab "
                                    "-- sluice " +
                                        training + " --run hosts",
                                    folder_);
  ASSERT_EQ(hosts.code, 0) << hosts.err;
  const auto there = nlohmann::json::parse(folder_.read("hosts/summary.json"));
  EXPECT_GT(there.at("mechanism").at("gradients_summed_locally").get<int>(), 0);
  const Outcome threads = run_command(
      "'" SLUICE_BINARY "' " + training + " --workers-per-host 2 --local-aggregation --run threads",
      folder_);
  ASSERT_EQ(threads.code, 0) << threads.err;
  const auto here = nlohmann::json::parse(folder_.read("threads/summary.json"));
  EXPECT_EQ(here.at("parameters_hash"), there.at("parameters_hash"));
}

}  // namespace
}  // namespace sluice
