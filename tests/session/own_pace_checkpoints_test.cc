#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/saved_model.h"
#include "session/checkpoints.h"
#include "session/node_knowledge.h"
#include "session/thread_group.h"
#include "support/resumed_runs.h"
#include "support/temporary_folder.h"

// Checkpoints of algorithms whose workers do not wait for each other.
namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::resumed_rule;
using testing::resumed_strategy;
using testing::ToyOutcome;
using testing::ToyTraining;
using testing::train_toys;

constexpr Iteration kOwnEnd = 17;
constexpr std::array kOwnPace{"asp", "easgd", "gosgd", "ad-psgd", "asp+dgc"};

class OwnPaceThreadsTest : public ::testing::Test {
 protected:
  ToyTraining run_of(const std::string& preset, const Topology& topology = Topology(3, 1, 0)) {
    Job job;
    job.topology = topology;
    job.strategy = resumed_strategy(*find_preset(preset));
    return {.job = job,
            .rule = resumed_rule(*find_preset(preset)),
            .until = kOwnEnd,
            .checkpoint = {.folder = folder_.path() / preset, .keep = 3, .resume = "auto"},
            .log = {.info = [this](const std::string& text) { said_.push_back(text); },
                    .warn = [this](const std::string& text) { said_.push_back(text); }}};
  }
  // Every step of a worker updates each chunk once.
  std::uint64_t updates_of(ToyTraining run, Iteration steps) {
    run.checkpoint = {};
    run.until = 1;
    run.interrupted = {};
    const std::uint64_t one = train_toys(*group_, run).updates / run.job.topology.workers();
    return one * static_cast<std::uint64_t>(steps);
  }
  struct Nodes {
    std::vector<std::unique_ptr<Learner>> learners;
    Assembly assembly;
    TrainingState state;
  };
  // Those of the run as its newest checkpoint has them; null if they cannot go on from it.
  std::unique_ptr<Nodes> restored(const ToyTraining& run) {
    Job job = run.job;
    job.layers = testing::ToyLearner(testing::kResumedLayers, 0).layers();
    const auto from =
        *find_checkpoint(*group_, run.checkpoint, job.topology, job.strategy, run.log);
    if (!from || !take_up(*from, job)) {
      return nullptr;
    }
    auto learners = testing::toy_learners(testing::kResumedLayers, job.topology.workers());
    Assembly assembly = assemble(job);
    TrainingState state = state_of(*group_, assembly, learners, run.rule);
    restore(*from, assembly, state);
    return std::make_unique<Nodes>(
        Nodes{std::move(learners), std::move(assembly), std::move(state)});
  }
  std::filesystem::path newest(const ToyTraining& run) const {
    const CheckpointFolder folder(run.checkpoint.folder);
    return folder.of(folder.iterations().at(0));
  }
  template <class Change>
  void change_manifest(const ToyTraining& run, Change change) const {
    auto manifest = *read_manifest(newest(run));
    change(manifest);
    std::ofstream(newest(run) / "manifest.json") << to_text(manifest);
  }

  TemporaryFolder folder_{kInMemory};
  std::unique_ptr<ProcessGroup> group_ = make_thread_group();
  std::vector<std::string> said_;
};

// Wherever a signal finds the workers: each goes on from there, and takes every step once.
TEST_F(OwnPaceThreadsTest, ASignalLosesNoStepAndRepeatsNone) {
  for (const char* preset : kOwnPace) {
    for (const Topology& topology : {Topology(3, 1, 0), Topology(2, 2, 0)}) {
      SCOPED_TRACE(preset);
      ToyTraining run = run_of(preset, topology);
      std::filesystem::remove_all(run.checkpoint.folder);
      const auto workers = static_cast<Iteration>(topology.workers());
      std::uint64_t updates = 0;
      ToyOutcome outcome{.hashes = {}, .stopped = SIGTERM};
      for (int stops = 0; outcome.stopped; ++stops) {
        ASSERT_LT(stops, 20);
        std::atomic<int> asked = 0;
        run.interrupted = [&] { return ++asked > 20 ? SIGTERM : 0; };
        outcome = train_toys(*group_, run);
        updates += outcome.updates;
      }
      EXPECT_EQ(updates, updates_of(run, kOwnEnd * workers));
      EXPECT_TRUE(read_manifest(newest(run))->measured.value("starts", Json()).is_null());
    }
  }
}

TEST_F(OwnPaceThreadsTest, EachWorkerGoesOnFromItsOwnIteration) {
  for (const char* preset : kOwnPace) {
    SCOPED_TRACE(preset);
    ToyTraining run = run_of(preset);
    run.until = 6;
    train_toys(*group_, run);
    change_manifest(run, [](CheckpointManifest& manifest) {
      manifest.measured["starts"] = {3, 10, 5};
    });
    run.until = kOwnEnd;
    const ToyOutcome outcome = train_toys(*group_, run);
    EXPECT_EQ(outcome.first, 3);
    EXPECT_EQ(outcome.updates, updates_of(run, 3 * kOwnEnd - 18));
  }
}

TEST_F(OwnPaceThreadsTest, StartsThatCannotBeAreNotSound) {
  ToyTraining run = run_of("asp");
  run.until = 6;
  train_toys(*group_, run);
  for (const Json& starts : {Json({3, 10}), Json({3, 10, 9}), Json({-1, 10, 9}), Json({"3", 10, 5}),
                             Json({{"a", 6}}), Json("6")}) {
    change_manifest(run,
                    [&](CheckpointManifest& manifest) { manifest.measured["starts"] = starts; });
    said_.clear();
    ToyTraining again = run;
    again.checkpoint.folder.clear();
    again.checkpoint.resume = newest(run);
    EXPECT_THROW(train_toys(*group_, again), std::runtime_error) << starts;
    EXPECT_THAT(said_, Contains(HasSubstr("3 iterations whose mean is 6"))) << starts;
  }
}

// It is due after so many iterations in the mean, and all the time; nobody waits for it.
TEST_F(OwnPaceThreadsTest, IterationsAndTimeMakeThemDue) {
  for (const char* preset : kOwnPace) {
    SCOPED_TRACE(preset);
    ToyTraining run = run_of(preset);
    run.checkpoint.every = 5;
    run.checkpoint.keep = 100;
    const ToyOutcome outcome = train_toys(*group_, run);
    EXPECT_FALSE(outcome.stopped);
    EXPECT_EQ(outcome.updates, updates_of(run, 3 * kOwnEnd));
    EXPECT_GE(outcome.checkpoints["written"], 2);
    EXPECT_EQ(CheckpointFolder(run.checkpoint.folder).iterations().at(0), kOwnEnd);
    std::filesystem::remove_all(run.checkpoint.folder);
    run.checkpoint.every = 0;
    run.checkpoint.interval = Duration(1);
    const ToyOutcome always = train_toys(*group_, run);
    EXPECT_EQ(always.updates, updates_of(run, 3 * kOwnEnd));
    EXPECT_GE(always.checkpoints["written"], 2);
  }
}

// With one worker nothing depends on who is faster.
TEST_F(OwnPaceThreadsTest, OneWorkerGoesOnToTheSameBits) {
  for (const char* preset : {"asp", "easgd", "gosgd", "asp+dgc"}) {
    ToyTraining run = run_of(preset, Topology(1, 1, 0));
    run.checkpoint = {};
    EXPECT_TRUE(testing::resumes_alike(*group_, run, {4, 11}, folder_.path() / preset)) << preset;
  }
}

std::vector<double> sums_of_weights(const std::filesystem::path& checkpoint, std::size_t hosts) {
  std::vector<double> sums;
  for (std::size_t h = 0; h < hosts; ++h) {
    const auto manifest = *read_manifest(checkpoint);
    const std::string bytes = *read_checked(checkpoint, manifest.files.at(h));
    const auto tensors = parse_safetensors(std::as_bytes(std::span(bytes)));
    for (const StoredTensor& tensor : *tensors) {
      if (!tensor.name.ends_with(".weights")) {
        continue;
      }
      std::vector<double> weights(tensor.bytes.size() / sizeof(double));
      std::memcpy(weights.data(), tensor.bytes.data(), tensor.bytes.size());
      sums.resize(weights.size());
      for (std::size_t c = 0; c < weights.size(); ++c) {
        sums[c] += weights[c];
      }
    }
  }
  return sums;
}

TEST_F(OwnPaceThreadsTest, TheWeightsOfGossipStaySummingToOne) {
  ToyTraining run = run_of("gosgd");
  for (const Iteration until : {5, 11, 17}) {
    run.until = until;
    train_toys(*group_, run);
    const std::vector<double> sums = sums_of_weights(newest(run), 3);
    ASSERT_FALSE(sums.empty());
    for (const double sum : sums) {
      EXPECT_NEAR(sum, 1, 1e-12);
    }
  }
}

// Two of the three hosts were lost. They begin with the parameters of the one that is left, and
// with a third of its weight, as it does; at the iterations that they had reached.
TEST_F(OwnPaceThreadsTest, LostHostsGoOnWithWhatAnotherHad) {
  ToyTraining run = run_of("gosgd");
  run.until = 6;
  train_toys(*group_, run);
  change_manifest(run, [](CheckpointManifest& manifest) {
    std::erase_if(manifest.files,
                  [](const auto& file) { return !file.name.starts_with("host-1"); });
    manifest.measured["starts"] = {4, 9, 5};
  });
  const auto nodes = restored(run);
  ASSERT_TRUE(nodes);
  EXPECT_THAT(said_, Contains("host 0 was lost before; it goes on with what host 1 had"));
  EXPECT_THAT(said_, Contains("host 2 was lost before; it goes on with what host 1 had"));
  const auto& [learners, assembly, state] = *nodes;
  const std::vector<double> saved = sums_of_weights(newest(run), 1);
  for (std::size_t w = 0; w < 3; ++w) {
    EXPECT_EQ(assembly.job.start_of(NodeId(w)), (std::vector<Iteration>{4, 9, 5}[w]));
    EXPECT_TRUE(std::ranges::equal(learners[w]->parameters(), learners[1]->parameters()));
    EXPECT_EQ(assembly.weights(NodeId(w))[0], saved[0] / 3);
  }
  EXPECT_EQ(train_toys(*group_, {.job = run.job,
                                 .rule = run.rule,
                                 .until = kOwnEnd,
                                 .checkpoint = run.checkpoint,
                                 .log = run.log})
                .updates,
            updates_of(run, 3 * kOwnEnd - 18));
}

// From a checkpoint one takes what the run would have saved.
TEST_F(OwnPaceThreadsTest, AModelOfACheckpointIsTheResultOfTheRun) {
  for (const char* preset :
       {"asp", "ssp", "easgd", "gosgd", "ad-psgd", "asp+dgc", "ssp+dgc", "p3", "diloco"}) {
    SCOPED_TRACE(preset);
    ToyTraining run = run_of(preset);
    run.until = 6;
    train_toys(*group_, run);
    const auto nodes = restored(run);
    ASSERT_TRUE(nodes);
    auto& [learners, assembly, state] = *nodes;
    const Strategy& strategy = assembly.job.strategy;
    std::vector<float> expected(learners[0]->parameters().begin(), learners[0]->parameters().end());
    if (evaluated_model(strategy) != EvaluatedModel::kReplica) {
      const std::string all = contribution_of(assembly, state, std::nullopt);
      expected = model_from(assembly, {&all, 1});
    }
    if (strategy.sparse()) {  // servers have told nobody anything yet
      for (const auto& learner : learners) {
        EXPECT_TRUE(std::ranges::equal(learner->parameters(), expected));
      }
    }
    const auto model = read_saved_model(run.checkpoint.folder);
    ASSERT_TRUE(model);
    EXPECT_EQ(model->tensors.at(0).name, "parameters");
    EXPECT_EQ(model->lacks_statistics, evaluated_model(strategy) != EvaluatedModel::kReplica);
    EXPECT_TRUE(std::ranges::equal(model->tensors.at(0).bytes, std::as_bytes(std::span(expected))));
  }
}

// Where workers wait for all others, every host must be there.
TEST_F(OwnPaceThreadsTest, AHostThatOthersNeedMustBeThere) {
  ToyTraining run = run_of("p3");
  run.until = 6;
  train_toys(*group_, run);
  change_manifest(run, [](CheckpointManifest& manifest) { manifest.files.pop_back(); });
  EXPECT_EQ(train_toys(*group_, run).first, 0);
  EXPECT_THAT(said_, Contains(HasSubstr("has no host-2.safetensors")));
}

}  // namespace
}  // namespace sluice
