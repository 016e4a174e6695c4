// Runs real MPI jobs on this machine in which the last processes have servers only.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "drivers/mpi/mpi_jobs.h"
#include "nodes/presets.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<Preset> presets_with_servers() {
  std::vector<Preset> found;
  std::ranges::copy_if(presets(), std::back_inserter(found),
                       [](const Preset& preset) { return preset.strategy.uses_servers(); });
  return found;
}

class MpiServersTest : public MpiTest, public ::testing::WithParamInterface<Preset> {};
INSTANTIATE_TEST_SUITE_P(, MpiServersTest, ::testing::ValuesIn(presets_with_servers()),
                         preset_name);

TEST_P(MpiServersTest, TrainWithServersOfTheirOwn) {
  const Preset& preset = GetParam();
  for (const std::size_t servers : {1, 2}) {
    SCOPED_TRACE(servers);
    const Outcome outcome = toys(fmt::format("{}@{} {}", preset.name, servers, kIterations));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::vector<std::string> lines = lines_of(outcome.out);
    ASSERT_THAT(lines, SizeIs(kProcesses));
    EXPECT_EQ(std::ranges::count(lines, "server"), static_cast<std::ptrdiff_t>(servers));
    if (is_deterministic(preset.strategy)) {
      const auto learners = testing::toy_learners(testing::kToyLayers, kProcesses - servers);
      auto expected =
          hashes_on_threads(learners, testing::toy_strategy(std::string(preset.name)), servers);
      expected.insert(expected.end(), servers, "server");
      EXPECT_EQ(lines, expected);
    }
  }
}

using MpiServersOfTheirOwnTest = MpiTest;

TEST_F(MpiServersOfTheirOwnTest, AServerThatFailsEndsAllAndIsNamed) {
  const Outcome outcome = toys("p3@1 1000000 3 babble");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("a message of rank 3 is not right"));
}

// Messages, bytes and updates are those of threads with the same workers and servers.
TEST_F(MpiServersOfTheirOwnTest, TheLastProcessesAreTheServers) {
  folder_.write("net.json", R"({"name": "net", "batch": 1, "layers": [
      {"name": "a", "params": 3000, "forward_us": 0, "backward_us": 0},
      {"name": "b", "params": 200001, "forward_us": 0, "backward_us": 0}]})");
  const auto training = [](const std::string& run) {
    return "train --model replay:net.json --iterations 6 --json --slice 20000 --servers 2 --run " +
           run;
  };
  const Outcome there = sluice(training("there") + " --trace auto");
  ASSERT_EQ(there.code, 0) << there.err;
  const Outcome here =
      run_command("'" SLUICE_BINARY "' " + training("here") + " --workers 2", folder_);
  ASSERT_EQ(here.code, 0) << here.err;
  const auto summary = nlohmann::json::parse(there.out);
  EXPECT_THAT(summary.at("by_worker"), SizeIs(2));
  const auto mechanism = nlohmann::json::parse(here.out).at("mechanism");
  EXPECT_EQ(summary.at("mechanism").at("sent_by_kind"), mechanism.at("sent_by_kind"));
  EXPECT_EQ(summary.at("mechanism").at("updates"), mechanism.at("updates"));
  EXPECT_EQ(summary.at("parameters_hash"), nlohmann::json::parse(here.out).at("parameters_hash"));
  const Outcome doubled = sluice(training("doubled") + " --servers-per-host 2");
  EXPECT_EQ(doubled.code, 0) << doubled.err;
  EXPECT_THAT(nlohmann::json::parse(doubled.out).at("by_worker"), SizeIs(3));
}

TEST_F(MpiServersOfTheirOwnTest, ImpossibleServersAreRefused) {
  const auto refusal = [&](const std::string& settings) {
    const Outcome outcome = sluice("train --data synthetic " + settings);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refusal("--servers 4"), HasSubstr("servers: 4 of 4 processes would have servers"));
  EXPECT_THAT(refusal("--servers 2 --workers 3"),
              HasSubstr("is 3 (from flag), but 2 processes were started, besides 2 for servers"));
  EXPECT_THAT(refusal("--servers 3 --servers-per-host 2"),
              HasSubstr("3 servers do not fill hosts of 2"));
  EXPECT_THAT(refusal("--servers 1 --preset wfbp"),
              HasSubstr("servers: exchange allreduce has no servers"));
}

TEST_F(MpiServersOfTheirOwnTest, TheLastProcessIsTheServerOfPsSync) {
  folder_.write("net.json", R"({"name": "net", "batch": 1, "layers": [
      {"name": "a", "params": 3000, "forward_us": 0, "backward_us": 0}]})");
  const Outcome outcome =
      sluice("train --model replay:net.json --iterations 6 --json --preset ps-sync --run apart");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("workers"), 3);
  EXPECT_THAT(outcome.err, HasSubstr("servers from rank 3 on"));
  EXPECT_THAT(outcome.err, HasSubstr("preset ps-sync has its server on a host of its own"));
}

using MpiServersTrainTest = MpiTrainTest;

TEST_F(MpiServersTrainTest, EndWithTheBitsOfThreads) {
  for (const Preset& preset : presets()) {
    if (!is_as_on_threads(preset)) {
      continue;
    }
    SCOPED_TRACE(preset.name);
    const TemporaryFolder folder;
    const std::string training = short_training(preset, folder) + " --servers 2";
    const auto here = summary_of(run_command(threads(training + " --workers 2"), folder));
    const auto there = summary_of(mpirun(kProcesses, processes(training), folder));
    EXPECT_EQ(here.at("parameters_hash"), there.at("parameters_hash"));
    EXPECT_EQ(here.at("loss"), there.at("loss"));
    EXPECT_EQ(here.at("mechanism").at("sent_by_kind"), there.at("mechanism").at("sent_by_kind"));
  }
}

}  // namespace
}  // namespace sluice
