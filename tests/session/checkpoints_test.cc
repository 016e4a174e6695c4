#include "session/checkpoints.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "base/random.h"
#include "codecs/sparse.h"
#include "formats/checkpoint.h"
#include "session/checkpoint_writer.h"
#include "session/node_knowledge.h"
#include "session/thread_group.h"
#include "support/resumed_runs.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using testing::has_exact_checkpoints;
using ::testing::HasSubstr;
using testing::resumed_rule;
using testing::resumed_strategy;
using testing::resumes_alike;
using testing::ToyTraining;
using testing::train_toys;
using ::testing::UnorderedElementsAre;

constexpr Iteration kEnd = 17;

std::vector<Preset> presets_with(bool exact_checkpoints) {
  std::vector<Preset> found;
  for (const Preset& preset : presets()) {
    if (has_exact_checkpoints(preset.strategy) == exact_checkpoints) {
      found.push_back(preset);
    }
  }
  return found;
}

ToyTraining training_of(const Preset& preset, const Topology& topology) {
  Job job;
  job.topology = topology;
  job.strategy = resumed_strategy(preset);
  return {.job = job, .rule = resumed_rule(preset), .until = kEnd};
}

TEST(CheckpointsThreadsTest, AreExactWhereWorkersWaitForEachOther) {
  std::vector<std::string> inexact;
  for (const Preset& preset : presets_with(false)) {
    inexact.emplace_back(preset.name);
  }
  EXPECT_THAT(inexact, UnorderedElementsAre("asp", "ssp", "easgd", "gosgd", "ad-psgd", "asp+dgc",
                                            "ssp+dgc"));
}

// Stopped twice, at iterations drawn from a seed. With three workers, sums of merged layers are
// rounded as their plan has it, which is measured. So there the plan is given.
TEST(CheckpointsThreadsTest, GoingOnGivesTheSameBits) {
  const auto group = make_thread_group();
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Random random(mix(seed));
    for (const Preset& preset : presets_with(true)) {
      const auto first = 1 + static_cast<Iteration>(random.below(kEnd - 2));
      const auto second = first + 1 + static_cast<Iteration>(random.below(kEnd - 1 - first));
      SCOPED_TRACE(fmt::format("{} stopped after {} and {}", preset.name, first, second));
      const std::array topologies{Topology(3, 1, 0), Topology(2, 2, 0),
                                  Topology(3, 1, preset.strategy.uses_servers() ? 2 : 0)};
      ToyTraining whole = training_of(preset, topologies.at(seed));
      if (preset.strategy.partition == Partition::kMerged) {
        whole.job.groups = {{3, 6}, {0, 3}};
      }
      const TemporaryFolder folder(kInMemory);
      EXPECT_TRUE(resumes_alike(*group, whole, {first, second}, folder.path()));
    }
  }
}

TEST(CheckpointsThreadsTest, APlanOfMergedLayersIsKept) {
  const TemporaryFolder folder(kInMemory);
  const auto group = make_thread_group();
  EXPECT_TRUE(resumes_alike(*group, training_of(*find_preset("mg-wfbp"), Topology(2, 1, 0)),
                            {3, 13}, folder.path()));
  const auto manifest = read_manifest(CheckpointFolder(folder.path()).of(kEnd));
  ASSERT_TRUE(manifest);
  EXPECT_FALSE(manifest->measured.at("groups").empty());
}

// No bit depends on a credit, and the run may go on over another transport.
TEST(CheckpointsThreadsTest, TheCreditsAreThoseOfTheRunThatGoesOn) {
  Job before;
  before.strategy.segment_params = 7;
  before.strategy.credit = before.strategy.peer_credit = 8;
  Job after;
  after.strategy.credit = after.strategy.peer_credit = 9;
  adopt_measured(measured_of(before), after);
  EXPECT_EQ(after.strategy.segment_params, 7);
  EXPECT_EQ(after.strategy.credit, 9);
  EXPECT_EQ(after.strategy.peer_credit, 9);
}

TEST(CheckpointsThreadsTest, OtherOptimizersAndCodecsGoOnToo) {
  const auto group = make_thread_group();
  const auto resumes = [&](const char* preset, const auto& change) {
    ToyTraining whole = training_of(*find_preset(preset), Topology(3, 1, 0));
    change(whole);
    whole.job.strategy.sums_first =
        whole.rule.clip_norm > 0 ? SumsFirst::kModel : SumsFirst::kSegment;
    const TemporaryFolder folder(kInMemory);
    return resumes_alike(*group, whole, {5, 6}, folder.path());
  };
  EXPECT_TRUE(resumes("wfbp", [](ToyTraining& of) { of.rule.clip_norm = 0.1; }));
  EXPECT_TRUE(resumes("p3", [](ToyTraining& of) { of.rule.optimizer = Optimizer::kAdam; }));
  EXPECT_TRUE(resumes("p3", [](ToyTraining& of) {
    of.job.strategy.codec = Codec::kQuantise8;
    of.job.strategy.error_feedback = true;
  }));
  EXPECT_TRUE(resumes("wfbp", [](ToyTraining& of) {
    of.job.strategy.codec = Codec::kTruncate16;
    of.job.strategy.error_feedback = true;
  }));
  EXPECT_TRUE(resumes("pipe-sgd", [](ToyTraining& of) {
    of.job.strategy.pipeline_depth = 4;
    of.job.strategy.pipeline_warmup = 3;
  }));
  EXPECT_TRUE(resumes("wfbp", [](ToyTraining& of) { of.job.strategy.learners_update = true; }));
  EXPECT_TRUE(resumes("powersgd", [](ToyTraining& of) {
    of.job.strategy.learners_update = of.job.strategy.learners_pack = true;
  }));
  EXPECT_TRUE(resumes("pipe-sgd", [](ToyTraining& of) {
    of.job.strategy.codec = Codec::kDgc;
    of.job.strategy.collective = std::nullopt;
    of.job.strategy.pipeline_depth = 4;
  }));
  EXPECT_TRUE(resumes("noloco", [](ToyTraining& of) { of.job.strategy.cadence.delay = 2; }));
}

// What a node keeps for later is read from a file.
TEST(CheckpointsThreadsTest, ASumThatIsNoneIsRefused) {
  ToyTraining run = training_of(*find_preset("pipe-sgd"), Topology(2, 1, 0));
  run.job.strategy.codec = Codec::kDgc;
  run.job.strategy.collective = std::nullopt;
  run.job.layers = testing::toy_learners(testing::kResumedLayers, 1).front()->layers();
  const Assembly assembly = assemble(run.job);
  ASSERT_FALSE(assembly.kept(NodeId(1)).empty());
  const auto refusal = [&](ElementType type, const std::vector<std::byte>& bytes) {
    std::vector<StoredTensor> saved{{"worker.1.kept.0", type, {}, bytes}};
    const auto taken = take_knowledge(saved, assembly, HostId(1), 1);
    EXPECT_TRUE(saved.empty());
    return taken ? "" : taken.error().message();
  };
  const std::vector<std::byte> one_entry = encode_sparse(std::vector<float>{1}, std::vector{0U});
  EXPECT_EQ(refusal(ElementType::kUint8, one_entry), "");
  EXPECT_TRUE(std::ranges::equal(assembly.kept(NodeId(1))[0].bytes(), one_entry));
  EXPECT_THAT(refusal(ElementType::kFloat32, one_entry), HasSubstr("worker.1.kept.0"));
  std::vector<std::byte> outside = one_entry;
  outside[7] = std::byte{1};  // its position
  EXPECT_THAT(refusal(ElementType::kUint8, outside), HasSubstr("worker.1.kept.0"));
  EXPECT_THAT(refusal(ElementType::kUint8, {}), HasSubstr("worker.1.kept.0"));
}

// The place at which a signal stops the run is where it goes on.
TEST(CheckpointsThreadsTest, ASignalWritesOne) {
  const auto group = make_thread_group();
  const ToyTraining whole = training_of(*find_preset("p3"), Topology(3, 1, 0));
  const auto expected = train_toys(*group, whole).hashes;
  const TemporaryFolder folder(kInMemory);
  ToyTraining part = whole;
  part.checkpoint = {.folder = folder.path(), .resume = "auto"};
  std::atomic<int> asked = 0;
  part.interrupted = [&] { return ++asked > 20 ? SIGTERM : 0; };
  const auto stopped = train_toys(*group, part);
  EXPECT_EQ(stopped.stopped, SIGTERM);
  const auto iterations = CheckpointFolder(folder.path()).iterations();
  ASSERT_EQ(iterations.size(), 1U);
  EXPECT_GE(iterations[0], 6);
  EXPECT_LT(iterations[0], kEnd);
  part.interrupted = {};
  const auto resumed = train_toys(*group, part);
  EXPECT_EQ(resumed.first, iterations[0]);
  EXPECT_EQ(resumed.hashes, expected);
}

// Here one is due all the time.
TEST(CheckpointsThreadsTest, TimeMakesThemDueAndTheLastOnesStay) {
  const auto group = make_thread_group();
  ToyTraining run = training_of(*find_preset("p3"), Topology(3, 1, 0));
  const auto expected = train_toys(*group, run).hashes;
  const TemporaryFolder folder(kInMemory);
  run.checkpoint = {.folder = folder.path(), .interval = Duration(1), .keep = 2};
  const auto outcome = train_toys(*group, run);
  EXPECT_EQ(outcome.hashes, expected);
  EXPECT_FALSE(outcome.stopped);
  EXPECT_GT(outcome.checkpoints["written"], 2);
  EXPECT_EQ(outcome.checkpoints["failed"], 0);
  EXPECT_GT(outcome.checkpoints["bytes"], 0);
  const auto iterations = CheckpointFolder(folder.path()).iterations();
  ASSERT_EQ(iterations.size(), 2U);
  EXPECT_EQ(iterations[0], kEnd);
}

TEST(CheckpointsThreadsTest, OneThatCannotBeWrittenIsReportedAndTrainingGoesOn) {
  const auto group = make_thread_group();
  const TemporaryFolder folder(kInMemory);
  folder.write("file", "");
  ToyTraining run = training_of(*find_preset("p3"), Topology(3, 1, 0));
  const auto expected = train_toys(*group, run).hashes;
  run.checkpoint = {.folder = folder.path() / "file", .every = 10};
  std::vector<std::string> warnings;
  run.log.warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto outcome = train_toys(*group, run);
  EXPECT_EQ(outcome.hashes, expected);
  EXPECT_EQ(outcome.checkpoints["failed"], 2);
  EXPECT_EQ(outcome.checkpoints["written"], 0);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0], HasSubstr("iteration-10 was not written"));
}

TEST(CheckpointsThreadsTest, ThatOneCannotBeWrittenIsSaidAtOnce) {
  const TemporaryFolder folder(kInMemory);
  folder.write("file", "");
  const Clock clock;
  std::promise<std::string> said;
  const CheckpointWriter writer(
      {.folder = CheckpointFolder(folder.path() / "file"), .token = "token", .shards = {}}, clock,
      [&](const Error& error) { said.set_value(error.message()); });
  auto message = said.get_future();
  ASSERT_EQ(message.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_THAT(message.get(), HasSubstr("cannot be created"));
}

class ResumptionThreadsTest : public ::testing::Test {
 protected:
  ResumptionThreadsTest() {
    run_.checkpoint = {.folder = folder_.path(), .every = 5, .settings = {{"lr", "0.05"}}};
    run_.log.info = [this](const std::string& text) { said_.push_back(text); };
    run_.log.warn = run_.log.info;
    train_toys(*group_, run_);  // after 5, 10, 15 and 17
    said_.clear();
    run_.checkpoint.resume = "auto";
    run_.until = 20;
  }

  Iteration begins_at() { return train_toys(*group_, run_).first; }
  std::string refusal() {
    try {
      train_toys(*group_, run_);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }
  std::filesystem::path file(Iteration iteration, const std::string& name) const {
    return CheckpointFolder(folder_.path()).of(iteration) / name;
  }

  TemporaryFolder folder_{kInMemory};
  std::unique_ptr<ProcessGroup> group_ = make_thread_group();
  ToyTraining run_ = training_of(*find_preset("p3"), Topology(3, 1, 0));
  std::vector<std::string> said_;
};

TEST_F(ResumptionThreadsTest, TakesTheNewestAndSaysSo) {
  EXPECT_EQ(begins_at(), 17);
  ASSERT_FALSE(said_.empty());
  EXPECT_EQ(said_[0],
            "resuming from " + file(17, "").parent_path().string() + " after 17 iterations");
}

TEST_F(ResumptionThreadsTest, WhatIsTornOrForeignIsPassedOver) {
  std::filesystem::resize_file(file(17, "host-1.safetensors"), 100);
  std::ofstream(file(15, "manifest.json")) << "{}";
  EXPECT_EQ(begins_at(), 10);
  ASSERT_GE(said_.size(), 3U);
  EXPECT_THAT(said_[0], HasSubstr("host-1.safetensors: has 100 bytes"));
  EXPECT_THAT(said_[1], HasSubstr("iteration-15: manifest.json: format: is missing"));
  EXPECT_THAT(said_[2], HasSubstr("iteration-10 after 10 iterations"));
}

TEST_F(ResumptionThreadsTest, WhereThereIsNoneItBeginsOrFails) {
  for (const Iteration iteration : {10, 15, 17}) {
    std::filesystem::remove(file(iteration, "host-0.safetensors"));
  }
  EXPECT_EQ(begins_at(), 0);
  EXPECT_THAT(said_, ::testing::Contains(HasSubstr("starting from the beginning")));
  const TemporaryFolder empty(kInMemory);
  run_.checkpoint.resume = empty.path();
  EXPECT_THAT(refusal(), HasSubstr("resume: there is no sound checkpoint in"));
}

TEST_F(ResumptionThreadsTest, OneOfThemCanBeNamed) {
  run_.checkpoint.resume = file(15, "").parent_path();
  EXPECT_EQ(begins_at(), 15);
}

TEST_F(ResumptionThreadsTest, OtherSettingsAreNamed) {
  run_.checkpoint.settings = {{"lr", "0.1"}};
  EXPECT_THAT(refusal(), HasSubstr("lr was 0.05, and now is 0.1; resume with the same"));
  run_.checkpoint.settings = {{"lr", "0.05"}, {"batch", "8"}};
  EXPECT_THAT(refusal(), HasSubstr("batch was not set, and now is 8"));
  run_.checkpoint.settings = {};
  EXPECT_THAT(refusal(), HasSubstr("lr was 0.05, and now is not set"));
}

TEST_F(ResumptionThreadsTest, StateThatDoesNotFitIsRefused) {
  run_.rule.momentum = 0;
  EXPECT_THAT(refusal(), HasSubstr("is nothing that this run has"));
  run_.rule.momentum = 0.9F;
  run_.job.strategy.codec = Codec::kQuantise8;
  EXPECT_THAT(refusal(), HasSubstr("the run had codec none, and now has quantise8"));
}

}  // namespace
}  // namespace sluice
