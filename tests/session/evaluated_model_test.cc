// Which parameters are the result of a run.
#include "session/evaluated_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "nodes/presets.h"
#include "session/journal.h"
#include "session/thread_group.h"
#include "session/training.h"
#include "session/virtual_group.h"
#include "support/simulated.h"
#include "support/talkative.h"
#include "support/temporary_folder.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

const std::vector<std::int64_t> kLayers{40, 700, 30};
const UpdateRule kRule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};

std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

std::vector<float> mean_of(const std::vector<std::unique_ptr<Learner>>& learners) {
  std::vector<float> mean;
  for (std::size_t i = 0; i < learners.front()->parameters().size(); ++i) {
    double sum = 0;
    for (const auto& learner : learners) {
      sum += static_cast<double>(learner->parameters()[i]);
    }
    mean.push_back(static_cast<float>(sum / static_cast<double>(learners.size())));
  }
  return mean;
}

Job job_of(std::string_view preset, const Topology& topology) {
  Job job;
  job.layers = testing::ToyLearner(kLayers, 0).layers();
  job.topology = topology;
  job.strategy = find_preset(preset)->strategy;
  job.strategy.slice_params = 64;
  job.strategy.period = 2;  // several exchanges in a short run
  job.strategy.cadence = testing::talkative(job.strategy).cadence;
  return job;
}

TEST(EvaluatedModelTest, ReplicasThatDifferAreNotTheResult) {
  for (const auto& [preset, expected] :
       {std::pair{"bsp", EvaluatedModel::kReplica}, std::pair{"p3", EvaluatedModel::kReplica},
        std::pair{"wfbp", EvaluatedModel::kReplica},
        std::pair{"pipe-sgd", EvaluatedModel::kReplica}, std::pair{"asp", EvaluatedModel::kServers},
        std::pair{"ssp", EvaluatedModel::kServers}, std::pair{"easgd", EvaluatedModel::kServers},
        std::pair{"gosgd", EvaluatedModel::kMean}, std::pair{"ad-psgd", EvaluatedModel::kMean},
        std::pair{"diloco", EvaluatedModel::kGlobal}}) {
    EXPECT_EQ(evaluated_model(find_preset(preset)->strategy), expected) << preset;
  }
}

TEST(EvaluatedModelTest, HostsGiveTogetherWhatOneProcessHas) {
  for (const char* preset : {"asp", "gosgd"}) {
    for (const Topology& topology : {Topology(3, 2, 0), Topology(2, 1, 2, 1, 2)}) {
      SCOPED_TRACE(preset);
      const Assembly assembly = assemble(job_of(preset, topology));
      const auto learners = testing::toy_learners(kLayers, topology.workers());
      TrainingState state(topology, learners, *assembly.chunks, assembly.job.strategy, kRule);
      for (std::size_t w = 0; w < learners.size(); ++w) {  // after the servers took theirs
        for (float& value : learners[w]->parameters()) {
          value += static_cast<float>(w);
        }
      }
      std::vector<std::string> by_host;
      for (std::size_t h = 0; h < topology.hosts(); ++h) {
        by_host.push_back(contribution_of(assembly, state, HostId(h)));
      }
      const std::string all = contribution_of(assembly, state, std::nullopt);
      const std::vector<float> model = model_from(assembly, by_host);
      EXPECT_EQ(model_from(assembly, {&all, 1}), model);
      EXPECT_EQ(model, evaluated_model(assembly.job.strategy) == EvaluatedModel::kMean
                           ? mean_of(learners)
                           : copy_of(testing::ToyLearner(kLayers, 0).parameters()));
      by_host.back() += "1234";
      EXPECT_THAT([&] { model_from(assembly, by_host); },
                  ThrowsMessage<std::runtime_error>(HasSubstr("bytes of the model")));
      by_host.back().resize(by_host.back().size() - 8);
      EXPECT_THAT([&] { model_from(assembly, by_host); },
                  ThrowsMessage<std::runtime_error>(HasSubstr("bytes of the model")));
    }
  }
}

// A run of toys with its evaluations.
class EvaluatedThreadsTest : public ::testing::Test {
 protected:
  std::unique_ptr<ProcessGroup> virtual_group() const {
    VirtualCluster virtually;
    virtually.profile = testing::profile_of(kLayers, 100, 200);
    virtually.cluster.topology = topology_;
    virtually.cluster.bandwidth_gbps = 0.1;
    return make_virtual_group(virtually);
  }

  // Evaluates after every so many epochs, and at the end.
  void train(ProcessGroup& group, const char* preset, std::int64_t epochs_evaluated = 1) {
    learners_ = testing::toy_learners(kLayers, topology_.workers());
    Job job = job_of(preset, topology_);
    group.tune(job, {.slice = true});
    RunModel model(*learners_.front(),
                   [] { return std::make_unique<testing::ToyLearner>(kLayers, 0); });
    const TemporaryFolder folder;
    auto created = RunFolder::create(folder.path() / "run");
    ASSERT_TRUE(created);
    RunFolder record = *std::move(created);
    const Clock clock;
    const Extent extent{.workers = topology_.workers(),
                        .iterations = 9,
                        .per_epoch = 3,
                        .samples_per_epoch = 1,
                        .epochs_evaluated = epochs_evaluated};
    const Log log;
    Journal journal(
        extent, {clock},
        [&] {
          evaluated_.push_back(copy_of(model.learner().parameters()));
          if (topology_.workers() > 1 && traits_of(job.strategy.algorithm).replicas_agree()) {
            return Evaluation{};  // others go on
          }
          means_.push_back(mean_of(learners_));
          return Evaluation{};
        },
        record, log);
    evaluated_.clear();
    means_.clear();
    const Trained trained = run_training(job, {.group = group,
                                               .learners = learners_,
                                               .rule = kRule,
                                               .extent = extent,
                                               .clock = clock,
                                               .journal = &journal,
                                               .evaluates = true,
                                               .model = &model});
    if (!trained.part.empty()) {
      model.set(model_from(trained.assembly, {&trained.part, 1}));
    }
    end_ = copy_of(model.learner().parameters());
    whose_.clear();
    for (const Evaluated& evaluated : journal.evaluations()) {
      whose_.push_back(evaluated.model);
    }
  }

  Topology topology_ = Topology(4, 1, 0);
  std::vector<std::unique_ptr<Learner>> learners_;
  std::vector<std::vector<float>> evaluated_;  // at the boundaries
  std::vector<std::vector<float>> means_;      // of the workers, at the same moments
  std::vector<EvaluatedModel> whose_;          // was evaluated there
  std::vector<float> end_;
};

TEST_F(EvaluatedThreadsTest, OfGossipItIsTheMean) {
  const auto threads = make_thread_group();
  const auto virtually = virtual_group();
  for (const char* preset : {"gosgd", "ad-psgd"}) {
    for (ProcessGroup* group : {threads.get(), virtually.get()}) {
      SCOPED_TRACE(preset);
      train(*group, preset);
      EXPECT_THAT(evaluated_, SizeIs(2));
      EXPECT_EQ(evaluated_, means_);
      EXPECT_THAT(whose_, Each(EvaluatedModel::kMean));
      EXPECT_EQ(end_, mean_of(learners_));
      EXPECT_NE(end_, copy_of(learners_.front()->parameters()));
    }
  }
}

// What a run has besides parameters lives on: velocities, residuals, clocks. With one worker the
// result does not depend on timing.
TEST_F(EvaluatedThreadsTest, TrainingGoesOnAfterAnEvaluationAsIfThereWereNone) {
  topology_ = Topology(1, 1, 0);
  const auto group = make_thread_group();
  for (const char* preset : {"asp", "ssp", "asp+dgc", "ssp+dgc", "easgd", "gosgd", "ad-psgd"}) {
    SCOPED_TRACE(preset);
    train(*group, preset, 0);
    EXPECT_THAT(evaluated_, SizeIs(0));
    const auto at_once = end_;
    train(*group, preset, 2);
    ASSERT_THAT(evaluated_, SizeIs(1)) << "after six of nine iterations";
    train(*group, preset, 1);
    ASSERT_THAT(evaluated_, SizeIs(2));
    EXPECT_NE(evaluated_[0], evaluated_[1]);
    EXPECT_EQ(end_, at_once);
  }
}

TEST_F(EvaluatedThreadsTest, OfServersItIsTheirs) {
  const auto threads = make_thread_group();
  const auto group = virtual_group();
  for (const char* preset : {"easgd", "ssp"}) {
    for (ProcessGroup* by : {threads.get(), group.get()}) {
      SCOPED_TRACE(preset);
      train(*by, preset);
      ASSERT_THAT(evaluated_, SizeIs(2));
      EXPECT_THAT(whose_, Each(EvaluatedModel::kServers));
      EXPECT_NE(evaluated_[0], evaluated_[1]);
      EXPECT_NE(end_, evaluated_[1]);
      for (const auto& learner : learners_) {
        EXPECT_NE(end_, copy_of(learner->parameters()));
      }
    }
  }
  // The worker that is last has just got them.
  train(*group, "asp");
  EXPECT_TRUE(std::ranges::any_of(
      learners_, [&](const auto& learner) { return copy_of(learner->parameters()) == end_; }));
  topology_ = Topology(1, 1, 0);
  train(*make_thread_group(), "asp");
  EXPECT_EQ(end_, copy_of(learners_.front()->parameters()));
}

// Exchanges fall between evaluations, and a local step follows the last one.
TEST_F(EvaluatedThreadsTest, OfLocalStepsItIsGlobal) {
  const auto threads = make_thread_group();
  const auto virtually = virtual_group();
  for (const char* preset :
       {"local-sgd", "post-local-sgd", "diloco", "streaming-diloco", "sparseloco", "noloco"}) {
    SCOPED_TRACE(preset);
    const bool in_pairs = find_preset(preset)->strategy.exchange == Exchange::kGossip;
    train(*threads, preset);
    const auto evaluated = evaluated_;
    const auto end = end_;
    ASSERT_THAT(evaluated, SizeIs(2));
    EXPECT_NE(evaluated[0], evaluated[1]);
    EXPECT_THAT(whose_, Each(in_pairs ? EvaluatedModel::kMean : EvaluatedModel::kGlobal));
    EXPECT_NE(evaluated[1], end);
    train(*virtually, preset);
    EXPECT_EQ(evaluated_, evaluated);
    EXPECT_EQ(end_, end);
    train(*threads, preset, 0);
    EXPECT_EQ(end_, end) << "without a rest";
  }
}

TEST(EvaluatedModelTest, OfPairsItIsTheMeanOfTheirGlobalParameters) {
  const Topology topology(4, 1, 0);
  const Assembly assembly = assemble(job_of("noloco", topology));
  const auto learners = testing::toy_learners(kLayers, topology.workers());
  for (std::size_t w = 0; w < learners.size(); ++w) {
    std::ranges::fill(learners[w]->parameters(), static_cast<float>(w));
  }
  TrainingState state(topology, learners, *assembly.chunks, assembly.job.strategy, kRule);
  for (const auto& learner : learners) {
    std::ranges::fill(learner->parameters(), 7.0F);
  }
  const std::vector<std::string> all{contribution_of(assembly, state, std::nullopt)};
  EXPECT_THAT(model_from(assembly, all), Each(1.5F));
}

TEST(EvaluatedModelTest, GlobalParametersAreThoseOfTheFirstThatIsThere) {
  const Topology topology(3, 2, 0);
  const Assembly assembly = assemble(job_of("diloco", topology));
  const auto learners = testing::toy_learners(kLayers, topology.workers());
  const auto initial = copy_of(learners.front()->parameters());
  TrainingState state(topology, learners, *assembly.chunks, assembly.job.strategy, kRule);
  for (const auto& learner : learners) {
    std::ranges::fill(learner->parameters(), 7.0F);
  }
  std::vector<std::string> by_host;
  for (std::size_t h = 0; h < topology.hosts(); ++h) {
    by_host.push_back(contribution_of(assembly, state, HostId(h)));
  }
  for (const std::string& own : by_host) {
    EXPECT_EQ(model_from(assembly, {&own, 1}), initial);
  }
  by_host[0].clear();  // it was lost
  EXPECT_EQ(model_from(assembly, by_host), initial);
  by_host[1] = "1234";
  EXPECT_THAT([&] { model_from(assembly, by_host); },
              ThrowsMessage<std::runtime_error>(HasSubstr("bytes of the model")));
}

TEST_F(EvaluatedThreadsTest, WhereReplicasAgreeItIsAReplica) {
  train(*make_thread_group(), "p3");
  EXPECT_EQ(end_, copy_of(learners_.back()->parameters()));
  EXPECT_THAT(whose_, Each(EvaluatedModel::kReplica));
}

}  // namespace
}  // namespace sluice
