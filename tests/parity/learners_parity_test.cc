// What a learner does by itself, local steps and packing, beside the same by its host.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "nodes/presets.h"
#include "support/threaded.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using testing::toy_learners;

const std::vector<std::int64_t> kSteppedLayers{37, 0, 300, 12, 260, 3};
constexpr Iteration kLastStep = 15;

Strategy any_local_strategy() {
  const Iteration every = *rc::gen::inRange<Iteration>(1, 6);
  Strategy strategy;
  strategy.algorithm = Algorithm::kLocal;
  strategy.exchange = *rc::gen::element(Exchange::kAllReduce, Exchange::kGossip);
  strategy.cadence.every = every;
  strategy.cadence.outer = *rc::gen::element(Outer::kMean, Outer::kNesterov);
  strategy.cadence.rate = 0.7;
  strategy.cadence.mix = *rc::gen::element(0.0, 0.5);
  if (strategy.exchange == Exchange::kAllReduce) {
    strategy.cadence.fragments =
        *rc::gen::inRange<std::int64_t>(1, std::min<Iteration>(every, 3) + 1);
    strategy.cadence.delay = *rc::gen::inRange<Iteration>(0, every);
    strategy.collective = *rc::gen::element(Collective::kRing, Collective::kDirect);
  }
  strategy.partition = *rc::gen::element(Partition::kLayer, Partition::kSlice);
  strategy.order = *rc::gen::element(Order::kFifo, Order::kPriority);
  strategy.slice_params = 64;
  strategy.join_params = *rc::gen::element<std::int64_t>(0, 20);
  strategy.segment_params = 100;
  return strategy;
}

// The parameters of all workers after the phases that end at these iterations.
std::vector<std::vector<float>> trained(const Strategy& strategy, const Topology& topology,
                                        const UpdateRule& rule, const std::vector<Iteration>& ends,
                                        const std::optional<Offloading>& offloading = {}) {
  const auto learners = toy_learners(kSteppedLayers, topology.workers());
  const Assembly assembly = assemble(testing::job_for(learners, topology, strategy));
  TrainingState state = testing::state_for(learners, assembly, rule);
  Iteration first = 0;
  for (const Iteration end : ends) {
    testing::run_phase(assembly, state, end, nullptr, offloading, first);
    first = end;
  }
  const bool none = assembly.counters().updates == 0;
  RC_ASSERT(none == strategy.learners_update);
  std::vector<std::vector<float>> parameters;
  for (const auto& learner : learners) {
    parameters.emplace_back(learner->parameters().begin(), learner->parameters().end());
  }
  return parameters;
}

std::vector<std::vector<float>> trained(const Strategy& strategy, std::size_t workers,
                                        const UpdateRule& rule, const std::vector<Iteration>& ends,
                                        const std::optional<Offloading>& offloading = {}) {
  return trained(strategy, Topology(workers, 1, 0), rule, ends, offloading);
}

RC_GTEST_PROP(LocalStepsParity, LearnersThatStepByThemselvesEndWithTheSameBits, ()) {
  Strategy strategy = any_local_strategy();
  RC_ASSERT(strategy.learners_can_step());
  UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
  rule.optimizer = *rc::gen::element(Optimizer::kSgd, Optimizer::kAdamW);
  rule.momentum = rule.optimizer == Optimizer::kSgd ? 0.9F : 0;
  const auto workers = *rc::gen::inRange<std::size_t>(1, 5);
  const auto rest = *rc::gen::inRange<Iteration>(1, kLastStep);
  const auto by_host = trained(strategy, workers, rule, {kLastStep});
  strategy.learners_update = true;
  RC_ASSERT(trained(strategy, workers, rule, {kLastStep}) == by_host);
  RC_ASSERT(trained(strategy, workers, rule, {rest, kLastStep}) == by_host);
}

RC_GTEST_PROP(PackingParity, LearnersThatPackEndWithTheSameBits, ()) {
  Strategy strategy =
      find_preset(*rc::gen::element<std::string>("p3", "slicing", "kvstore", "ps-sync"))->strategy;
  strategy.codec = *rc::gen::element(Codec::kBf16, Codec::kQuantise8);
  strategy.slice_params = *rc::gen::element<std::int64_t>(64, 90, 128);  // no chunk of one value
  strategy.kvstore_split_params = 200;
  strategy.credit = 512;
  RC_ASSERT(strategy.learners_can_pack());
  const auto workers = *rc::gen::inRange<std::size_t>(1, 5);
  const UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
  const auto rest = *rc::gen::inRange<Iteration>(1, kLastStep);
  strategy.learners_update = true;
  const auto by_host = trained(strategy, workers, rule, {kLastStep});
  strategy.learners_pack = true;
  RC_ASSERT(trained(strategy, workers, rule, {kLastStep}) == by_host);
  RC_ASSERT(trained(strategy, workers, rule, {rest, kLastStep}) == by_host);
}

RC_GTEST_PROP(PackingParity, LearnersThatPackKeepWhatTheirCodesLose, ()) {
  Strategy strategy = find_preset("p3")->strategy;
  strategy.codec = *rc::gen::element(Codec::kBf16, Codec::kQuantise8);
  strategy.slice_params = 64;
  strategy.error_feedback = true;
  strategy.feedback_decay = *rc::gen::element(0.5, 1.0);
  RC_ASSERT(strategy.learners_can_pack());
  const UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
  strategy.learners_update = true;
  const auto by_host = trained(strategy, 3, rule, {kLastStep});
  strategy.learners_pack = true;
  RC_ASSERT(trained(strategy, 3, rule, {kLastStep}) == by_host);
}

// Where a process has threads beside its loop, and where one waits for the learner only.
RC_GTEST_PROP(PackingParity, LearnersThatMakeFactorsEndWithTheSameBits, ()) {
  Strategy strategy = find_preset(*rc::gen::element<std::string>("powersgd", "wfbp"))->strategy;
  strategy.codec = Codec::kPowerSgd;
  strategy.error_feedback = true;
  strategy.feedback_decay = *rc::gen::element(0.5, 1.0);
  strategy.power_rank = *rc::gen::inRange<std::int64_t>(1, 3);
  strategy.segment_params = *rc::gen::element<std::int64_t>(7, 100);
  strategy.join_params = *rc::gen::element<std::int64_t>(0, 20);
  strategy.credit = 512;
  RC_ASSERT(strategy.learners_can_pack());
  const auto workers = *rc::gen::inRange<std::size_t>(1, 5);
  const UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
  const auto rest = *rc::gen::inRange<Iteration>(1, kLastStep);
  std::optional<Offloading> offloading;
  if (*rc::gen::arbitrary<bool>()) {
    offloading = Offloading{.while_busy = 1, .while_idle = 1, .threads = 2, .min_part = 50};
  }
  strategy.learners_update = true;
  const auto by_host = trained(strategy, workers, rule, {kLastStep});
  strategy.learners_pack = true;
  RC_ASSERT(trained(strategy, workers, rule, {kLastStep}, offloading) == by_host);
  RC_ASSERT(trained(strategy, workers, rule, {rest, kLastStep}, offloading) == by_host);
}

// With little sparsity what changes has no room beside the gradients of a chunk.
RC_GTEST_PROP(PackingParity, LearnersThatSelectEndWithTheSameBits, ()) {
  Strategy strategy =
      find_preset(*rc::gen::element<std::string>("bsp+dgc", "ar-sgd+dgc", "p3", "p3-allreduce"))
          ->strategy;
  strategy.codec = Codec::kDgc;
  strategy.local_aggregation = false;
  strategy.slice_params = *rc::gen::element<std::int64_t>(64, 90, 128);
  strategy.join_params = *rc::gen::element<std::int64_t>(0, 128);
  strategy.dgc.sparsity = *rc::gen::element(0.7, 0.9, 0.99);
  strategy.dgc.clip_norm = *rc::gen::element(0.1, 5.0);
  strategy.dgc.epoch_iterations = *rc::gen::element<Iteration>(0, 2);
  RC_ASSERT(strategy.learners_can_pack());
  const auto workers = *rc::gen::inRange<std::size_t>(1, 5);
  const UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
  const auto rest = *rc::gen::inRange<Iteration>(1, kLastStep);
  const auto by_host = trained(strategy, workers, rule, {kLastStep});
  strategy.learners_pack = true;
  RC_ASSERT(trained(strategy, workers, rule, {kLastStep}) == by_host);
  RC_ASSERT(trained(strategy, workers, rule, {rest, kLastStep}) == by_host);
}

TEST(PackingParity, OnlyWorkersThatDoNothingElseWithGradientsLeaveThemPacked) {
  Strategy strategy = find_preset("p3")->strategy;
  EXPECT_FALSE(strategy.learners_can_pack());
  strategy.codec = Codec::kQuantise8;
  EXPECT_TRUE(strategy.learners_can_pack());
  strategy.local_aggregation = true;
  EXPECT_FALSE(strategy.learners_can_pack());
  strategy = find_preset("asp+dgc")->strategy;
  EXPECT_FALSE(strategy.learners_can_pack());
  strategy = find_preset("wfbp")->strategy;
  strategy.codec = Codec::kQuantise8;
  EXPECT_FALSE(strategy.learners_can_pack());
  strategy.codec = Codec::kPowerSgd;
  EXPECT_TRUE(strategy.learners_can_pack());
  strategy.local_aggregation = true;
  EXPECT_FALSE(strategy.learners_can_pack());
}

// On hosts with several workers, and on machines with several hosts.
RC_GTEST_PROP(LocalAggregationParity, LearnersThatUpdateGetTheSumFromWhoSpeaksForThem, ()) {
  Strategy strategy = find_preset(*rc::gen::element<std::string>("p3", "slicing", "kvstore", "bsp",
                                                                 "wfbp", "p3-allreduce", "single"))
                          ->strategy;
  strategy.local_aggregation = true;
  strategy.update = strategy.uses_servers() ? std::optional(Update::kWorker) : std::nullopt;
  strategy.codec = *rc::gen::element(Codec::kNone, Codec::kBf16);
  strategy.slice_params = 64;
  strategy.segment_params = 100;
  strategy.credit = 512;
  RC_ASSERT(strategy.learners_can_update());
  const Topology topology =
      *rc::gen::element(Topology(2, 3, 0), Topology(3, 2, 0), Topology(4, 1, 0, 2));
  const UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
  const auto rest = *rc::gen::inRange<Iteration>(1, kLastStep);
  const auto by_host = trained(strategy, topology, rule, {kLastStep});
  strategy.learners_update = true;
  RC_ASSERT(trained(strategy, topology, rule, {kLastStep}) == by_host);
  RC_ASSERT(trained(strategy, topology, rule, {rest, kLastStep}) == by_host);
}

TEST(LocalStepsParity, SynchronousIterationsAreLeftToTheHost) {
  EXPECT_FALSE(find_preset("post-local-sgd")->strategy.learners_can_step());
  EXPECT_TRUE(find_preset("diloco")->strategy.learners_can_step());
  EXPECT_FALSE(find_preset("p3")->strategy.learners_can_step());
}

}  // namespace
}  // namespace sluice
