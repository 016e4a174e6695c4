// Runs that go on with another number of workers, servers or hosts.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "nodes/presets.h"
#include "nodes/reshardable.h"
#include "session/former_hosts.h"
#include "session/thread_group.h"
#include "support/resumed_runs.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::resumed_rule;
using testing::resumed_strategy;
using testing::ToyOutcome;
using testing::ToyTraining;
using testing::train_toys;
using ::testing::UnorderedElementsAre;

constexpr Iteration kReshardedStop = 6;
constexpr Iteration kReshardedEnd = 14;

ToyTraining equal_run(const Preset& preset, const Topology& topology) {
  Job job;
  job.topology = topology;
  job.strategy = resumed_strategy(preset);
  return {.job = job, .rule = resumed_rule(preset), .until = kReshardedEnd, .alike = true};
}

std::vector<Preset> reshardable_presets() {
  std::vector<Preset> found;
  for (const Preset& preset : presets()) {
    if (check_reshardable(preset.strategy)) {
      found.push_back(preset);
    }
  }
  return found;
}

class ReshardingThreadsTest : public ::testing::Test {
 protected:
  // Stops the run, and goes on with it on other hosts.
  ToyOutcome go_on(ToyTraining run, const Topology& others) {
    const TemporaryFolder folder(kInMemory);
    run.checkpoint = {.folder = folder.path(), .every = 4, .resume = "auto"};
    run.log.info = [this](const std::string& text) { said_.push_back(text); };
    run.until = kReshardedStop;
    train_toys(*group_, run);
    run.job.topology = others;
    run.until = (kReshardedStop + kReshardedEnd) / 2;
    EXPECT_EQ(train_toys(*group_, run).first, kReshardedStop);
    run.until = kReshardedEnd;
    ToyOutcome outcome = train_toys(*group_, run);
    EXPECT_EQ(outcome.first, (kReshardedStop + kReshardedEnd) / 2);
    return outcome;
  }
  std::string refusal(const ToyTraining& run, const Topology& others) {
    try {
      go_on(run, others);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }

  std::unique_ptr<ProcessGroup> group_ = make_thread_group();
  std::vector<std::string> said_;
};

double farthest_apart(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return most;
}

// How many values of this worker, alone on its host, packing has lost nothing of.
std::ptrdiff_t zeros_in_residual(const std::filesystem::path& checkpoint, std::size_t worker) {
  const auto bytes = read_file(checkpoint / host_file_name(worker));
  const auto tensors = parse_safetensors(std::as_bytes(std::span(*bytes)));
  const auto residual =
      std::ranges::find(*tensors, fmt::format("worker.{}.residual", worker), &StoredTensor::name);
  if (residual == tensors->end()) {
    return PTRDIFF_MAX;
  }
  std::vector<float> values(residual->bytes.size() / sizeof(float));
  std::memcpy(values.data(), residual->bytes.data(), residual->bytes.size());
  return std::ranges::count(values, 0.0F);
}

TEST(ReshardablePresetsTest, AreThoseInLockStepWhoseWorkersHaveNothingOfTheirOwn) {
  std::vector<std::string> names;
  for (const Preset& preset : reshardable_presets()) {
    names.emplace_back(preset.name);
  }
  EXPECT_THAT(names, UnorderedElementsAre("kvstore", "tensorflow", "slicing", "p3", "p3-allreduce",
                                          "wfbp", "single", "mg-wfbp", "ps-sync", "d-sync",
                                          "d-sync+t", "d-sync+q", "bsp", "ar-sgd", "powersgd"));
}

// The mean of equal gradients is the same for any number of workers, and exact for 1, 2 and 4.
TEST_F(ReshardingThreadsTest, EqualGradientsGiveTheBitsOfARunThatWasNeverStopped) {
  const std::array<std::pair<Topology, Topology>, 5> changes{{
      {Topology(4, 1, 0), Topology(2, 1, 0)},
      {Topology(2, 1, 0), Topology(4, 1, 0)},
      {Topology(4, 1, 0), Topology(2, 2, 0)},
      {Topology(2, 2, 0), Topology(1, 1, 0)},
      {Topology(4, 1, 0), Topology(4, 1, 0, 4)},
  }};
  for (const Preset& preset : reshardable_presets()) {
    for (const auto& [before, after] : changes) {
      if (preset.strategy.coded()) {
        continue;
      }
      const ToyTraining run = equal_run(preset, before);
      const std::vector<std::string> expected = train_toys(*group_, run).hashes;
      const ToyOutcome outcome = go_on(run, after);
      EXPECT_EQ(outcome.hashes.size(), after.workers());
      EXPECT_THAT(outcome.hashes, Each(expected.front()))
          << preset.name << " from " << topology_text(before) << " to " << topology_text(after);
    }
  }
}

TEST_F(ReshardingThreadsTest, ServersMayBeMoreFewerApartOrBeside) {
  const std::array<std::pair<Topology, Topology>, 4> changes{{
      {Topology(4, 1, 0), Topology(4, 1, 3)},
      {Topology(4, 1, 2), Topology(2, 1, 0)},
      {Topology(2, 1, 1, 1, 2), Topology(4, 1, 3, 1, 1)},
      {Topology(2, 2, 2), Topology(2, 1, 1, 1, 3)},
  }};
  for (const char* name : {"kvstore", "tensorflow", "slicing", "p3", "ps-sync", "bsp"}) {
    for (const auto& [before, after] : changes) {
      for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdam}) {
        ToyTraining run = equal_run(*find_preset(name), before);
        run.rule.optimizer = optimizer;
        const std::vector<std::string> expected = train_toys(*group_, run).hashes;
        EXPECT_THAT(go_on(run, after).hashes, Each(expected.front()))
            << name << " from " << topology_text(before) << " to " << topology_text(after);
      }
    }
  }
}

TEST_F(ReshardingThreadsTest, WorkersAndLearnersMayUpdate) {
  const auto goes_on = [&](const char* preset, const auto& change) {
    ToyTraining run = equal_run(*find_preset(preset), Topology(4, 1, 0));
    change(run);
    const std::vector<std::string> expected = train_toys(*group_, run).hashes;
    return go_on(run, Topology(2, 1, 0)).hashes.front() == expected.front();
  };
  EXPECT_TRUE(goes_on("p3", [](ToyTraining& run) { run.job.strategy.update = Update::kWorker; }));
  EXPECT_TRUE(goes_on("wfbp", [](ToyTraining& run) { run.job.strategy.learners_update = true; }));
  EXPECT_TRUE(goes_on("wfbp", [](ToyTraining& run) { run.job.strategy.local_aggregation = true; }));
  EXPECT_TRUE(goes_on("wfbp", [](ToyTraining& run) {
    run.rule.clip_norm = 0.1;
    run.job.strategy.sums_first = SumsFirst::kModel;
  }));
}

TEST_F(ReshardingThreadsTest, ThreeOrSixWorkersGoOnNearly) {
  for (const Preset& preset : reshardable_presets()) {
    const ToyTraining run = equal_run(preset, Topology(4, 1, 0));
    const ToyOutcome whole = train_toys(*group_, run);
    for (const Topology& after : {Topology(3, 1, 0), Topology(3, 2, 0)}) {
      const ToyOutcome outcome = go_on(run, after);
      EXPECT_THAT(outcome.hashes, Each(outcome.hashes.front()));
      EXPECT_LT(farthest_apart(outcome.parameters, whole.parameters),
                preset.strategy.coded() ? 0.02 : 1e-5)
          << preset.name << " to " << topology_text(after);
    }
  }
}

TEST_F(ReshardingThreadsTest, WhatCodesHaveLostIsNotLost) {
  for (const char* name : {"p3", "wfbp", "bsp"}) {
    ToyTraining run = equal_run(*find_preset(name), Topology(2, 2, 0));
    run.job.strategy.codec = Codec::kQuantise4;
    run.job.strategy.error_feedback = true;
    const ToyOutcome whole = train_toys(*group_, run);
    for (const Topology& after : {Topology(3, 1, 0), Topology(2, 3, 0)}) {
      const ToyOutcome outcome = go_on(run, after);
      EXPECT_THAT(outcome.hashes, Each(outcome.hashes.front()));
      EXPECT_LT(farthest_apart(outcome.parameters, whole.parameters), 0.05)
          << name << " to " << topology_text(after);
    }
  }
}

// So what a worker is given of the others' loss goes into the sum, whoever it is and wherever.
TEST_F(ReshardingThreadsTest, EveryWorkerPacksEveryValue) {
  for (const Collective collective : kPlannedCollectives) {
    for (const std::size_t workers : {2U, 3U, 4U, 5U}) {
      const TemporaryFolder folder(kInMemory);
      ToyTraining run = equal_run(*find_preset("wfbp"), Topology(workers, 1, 0));
      run.alike = false;
      run.job.strategy.codec = Codec::kTruncate16;
      run.job.strategy.error_feedback = true;
      run.job.strategy.collective = collective;
      run.checkpoint = {.folder = folder.path(), .every = 100};
      train_toys(*group_, run);
      for (std::size_t w = 0; w < workers; ++w) {
        EXPECT_LT(zeros_in_residual(CheckpointFolder(folder.path()).of(kReshardedEnd), w), 8)
            << name_of(kCollectiveNames, collective) << " of " << workers << ", worker " << w;
      }
    }
  }
}

TEST_F(ReshardingThreadsTest, TheLogSaysWhatChanged) {
  go_on(equal_run(*find_preset("p3"), Topology(4, 1, 0)), Topology(3, 2, 2));
  EXPECT_THAT(said_, Contains("checkpoint of 4 workers (1 per host) with 4 servers taken up by 6 "
                              "workers (2 per host) with 2 servers apart: optimiser state "
                              "re-sharded; sizes, collective and merged layers chosen anew"));
}

TEST_F(ReshardingThreadsTest, MergedLayersArePlannedAnew) {
  const TemporaryFolder folder(kInMemory);
  ToyTraining run = equal_run(*find_preset("mg-wfbp"), Topology(4, 1, 0));
  run.job.groups = {{0, 6}};
  run.checkpoint = {.folder = folder.path(), .resume = "auto"};
  train_toys(*group_, run);
  const auto groups_after = [&](Iteration iteration) {
    return read_manifest(CheckpointFolder(folder.path()).of(iteration))->measured.at("groups");
  };
  ASSERT_EQ(groups_after(kReshardedEnd), Json({{0, 6}}));
  run.job.groups.clear();
  run.job.topology = Topology(2, 1, 0);
  run.until = kReshardedEnd + 1;
  train_toys(*group_, run);
  EXPECT_EQ(groups_after(kReshardedEnd + 1), Json::array());  // until the layers have been measured
}

TEST_F(ReshardingThreadsTest, WhatBelongsToItsWorkersIsRefusedWithTheReason) {
  const auto refused = [&](const char* preset) {
    return refusal(equal_run(*find_preset(preset), Topology(3, 1, 0)), Topology(2, 1, 0));
  };
  for (const char* preset : {"pipe-sgd", "pipe-sgd+q"}) {
    EXPECT_THAT(refused(preset), HasSubstr("its workers keep sums over so many workers"));
  }
  for (const char* preset :
       {"local-sgd", "post-local-sgd", "diloco", "streaming-diloco", "sparseloco", "noloco"}) {
    EXPECT_THAT(refused(preset), HasSubstr("each worker has parameters and an optimiser"));
  }
  for (const char* preset : {"bsp+dgc", "ar-sgd+dgc"}) {
    EXPECT_THAT(refused(preset), HasSubstr("each worker has a velocity of its own"));
  }
  EXPECT_THAT(
      refused("pipe-sgd"),
      HasSubstr("the run had 3 hosts with 1 workers each, 0 hosts of servers with 1 each, 1 "
                "workers per machine, and now has 2 hosts"));
}

TEST_F(ReshardingThreadsTest, SettingsOfHostsAndBatchesMayChangeWithTheWorkers) {
  const TemporaryFolder folder(kInMemory);
  ToyTraining run = equal_run(*find_preset("p3"), Topology(4, 1, 0));
  run.checkpoint = {.folder = folder.path(),
                    .resume = "auto",
                    .settings = {{"workers", "4"}, {"batch", "8"}},
                    .about_hosts = {"workers"},
                    .about_batches = {"batch"}};
  run.until = kReshardedStop;
  train_toys(*group_, run);
  const auto complaint = [&] {
    const auto found =
        find_checkpoint(*group_, run.checkpoint, run.job.topology, run.job.strategy, {});
    return found ? "" : found.error().message();
  };
  run.checkpoint.settings["batch"] = "16";
  EXPECT_THAT(complaint(), HasSubstr("batch was 8, and now is 16"));
  run.job.topology = Topology(2, 2, 0);  // as many workers
  EXPECT_THAT(complaint(), HasSubstr("batch was 8, and now is 16"));
  run.job.topology = Topology(2, 1, 0);
  run.checkpoint.settings["workers"] = "2";
  EXPECT_EQ(complaint(), "");
}

TEST_F(ReshardingThreadsTest, ATornFileOfAnyHostIsSeen) {
  const TemporaryFolder folder(kInMemory);
  ToyTraining run = equal_run(*find_preset("p3"), Topology(4, 1, 0));
  run.checkpoint = {.folder = folder.path(), .every = 4, .resume = "auto"};
  run.until = kReshardedStop;
  train_toys(*group_, run);
  std::filesystem::resize_file(
      CheckpointFolder(folder.path()).of(kReshardedStop) / "host-3.safetensors", 100);
  run.job.topology = Topology(2, 1, 0);
  run.until = kReshardedEnd;
  EXPECT_EQ(train_toys(*group_, run).first, 4);
}

}  // namespace
}  // namespace sluice
