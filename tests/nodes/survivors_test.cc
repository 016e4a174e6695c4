// Workers that take local steps, and lose one whom their sums need.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "nodes/catch_ups.h"
#include "nodes/shuffled_runs.h"
#include "support/regrouping.h"

namespace sluice {
namespace {

using testing::any_cadence;
using testing::any_seed;
using testing::kLayers;
using testing::local_job;
using testing::regroup;
using testing::rejoin;
using testing::ShuffledRun;
using testing::ShuffledWorld;
using testing::take_over_at;
using testing::ToyLearner;

constexpr Iteration kPhase = 14;

const UpdateRule kRuleOfSurvivors{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};

void pack_with(Strategy& strategy, Codec codec) {
  strategy.codec = codec;
  strategy.top_k = {.block = 16, .kept = 3};  // of short layers
  if (strategy.gathered()) {
    strategy.collective = std::nullopt;
  }
}

Job any_job(std::size_t workers) {
  Job job = local_job(any_cadence(), workers);
  Strategy& strategy = job.strategy;
  strategy.order = *rc::gen::element(Order::kFifo, Order::kPriority, Order::kAfterBackward);
  strategy.collective = *rc::gen::element<std::optional<Collective>>(
      std::nullopt, Collective::kRing, Collective::kRecursiveDoubling, Collective::kHalvingDoubling,
      Collective::kBinaryTree, Collective::kDirect);
  pack_with(strategy, *rc::gen::element(Codec::kNone, Codec::kNone, Codec::kBf16, Codec::kQuantise8,
                                        Codec::kTopK));
  strategy.error_feedback = strategy.coded() && *rc::gen::arbitrary<bool>();
  strategy.feedback_decay = *rc::gen::element(0.95, 1.0);
  return job;
}

// One of them is lost after so many events.
void run_with_a_loss(ShuffledRun& run, HostId victim, int events) {
  run.world.disturb = [victim, left = events](ShuffledWorld& world) mutable {
    if (left-- == 0) {
      world.kill(victim);
    }
  };
  RC_ASSERT(run.run());
  run.world.disturb = [](ShuffledWorld&) {};
  if (!run.world.outages().is_dead(victim)) {
    run.world.kill(victim);
  }
}

std::vector<float> global_of(ShuffledRun& run, std::size_t rank) {
  const auto values = run.world.state().workspace(NodeId(rank)).global_parameters();
  return {values.begin(), values.end()};
}

bool agree(ShuffledRun& run, const std::vector<HostId>& absent) {
  std::vector<std::vector<float>> all;
  for (std::size_t rank = 0; rank < run.learners.size(); ++rank) {
    if (std::ranges::find(absent, HostId(rank)) == absent.end()) {
      all.push_back(global_of(run, rank));
    }
  }
  return std::ranges::adjacent_find(all, std::not_equal_to<>()) == all.end();
}

// ---- who takes from whom ----

TEST(CatchUps, TakeFromTheFirstThatHasTheLastSum) {
  const Cadence cadence{.every = 4};
  const std::vector<std::int64_t> fragments{0, 0};
  const CatchUps catch_ups = find_catch_ups(
      {{NodeId(0), {4, 8}}, {NodeId(2), {8, 8}}, {NodeId(3), {8, 4}}}, fragments, cadence, 9);
  EXPECT_EQ(catch_ups.all, (std::vector<CatchUp>{{NodeId(0), NodeId(2), ChunkId(0), 8},
                                                 {NodeId(3), NodeId(0), ChunkId(1), 8}}));
  EXPECT_TRUE(catch_ups.given_up.empty());
}

TEST(CatchUps, GiveUpASumThatNobodyHasAndThatWouldBeDueLater) {
  const Cadence cadence{.every = 4, .delay = 2};
  const std::vector<std::int64_t> fragments{0, 0};
  const CatchUps catch_ups =
      find_catch_ups({{NodeId(0), {4, 8}}, {NodeId(1), {4, 4}}}, fragments, cadence, 9);
  EXPECT_EQ(catch_ups.given_up, (std::vector<GivenUpSum>{{ChunkId(0), 8}}));
  EXPECT_EQ(catch_ups.all.size(), 1U);
  EXPECT_TRUE(find_catch_ups({{NodeId(0), {4, 4}}}, fragments, cadence, 10).given_up.empty())
      << "it was due before";
}

// ---- in a shuffled world ----

// Nobody notices that there was once one more.
RC_GTEST_PROP(Survivors, SumAsWorkersDoThatWereNeverMore, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(1, 5);
  const auto absent = *rc::gen::inRange<std::size_t>(0, workers + 1);
  Job job = any_job(workers);
  job.strategy.cadence.synchronous = 0;
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t rank = 0; rank <= workers; ++rank) {
    if (rank != absent) {
      learners.push_back(std::make_unique<ToyLearner>(kLayers, rank));
    }
  }
  const Assembly never_more = assemble(job);
  ShuffledWorld world(job, never_more.protocols,
                      {.learners = learners,
                       .chunks = never_more.chunks.get(),
                       .rule = kRuleOfSurvivors,
                       .strategy = job.strategy},
                      kPhase, any_seed());
  RC_ASSERT(world.run());

  job.topology = Topology(workers + 1, 1, 0);
  job.absent = {HostId(absent)};
  ShuffledRun once_more(job, kRuleOfSurvivors, any_seed(), kPhase);
  once_more.world.kill(HostId(absent));
  RC_ASSERT(once_more.run());
  for (std::size_t rank = 0; rank < workers; ++rank) {
    const auto expected = learners[rank]->parameters();
    const auto actual = once_more.parameters(rank < absent ? rank : rank + 1);
    RC_ASSERT(std::ranges::equal(expected, actual));
  }
}

// Whenever one is lost, the others take all their steps, and have the same global parameters again
// when they have regrouped; so does one that comes back.
RC_GTEST_PROP(Survivors, AgreeAgain, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(2, 6);
  const HostId victim(*rc::gen::inRange<std::size_t>(0, workers));
  const HostId donor((victim.index() + 1) % workers);
  const Job job = any_job(workers);
  const Iteration first = job.strategy.cadence.synchronous;
  ShuffledRun run(job, kRuleOfSurvivors, any_seed(), first);
  RC_ASSERT(run.run());
  take_over_at(run, first);
  run.world.run_until(kPhase);
  run_with_a_loss(run, victim, *rc::gen::inRange(0, 3000));
  const std::size_t taken = regroup(run, {victim}, kPhase);
  RC_TAG(taken > 0 ? "some had more sums" : "all had the same sums");
  RC_ASSERT(agree(run, {victim}));
  RC_ASSERT(run.run_on(2 * kPhase));
  RC_ASSERT(agree(run, {victim}));
  rejoin(run, victim, donor, 2 * kPhase);
  RC_ASSERT(run.run_on(3 * kPhase));
  RC_ASSERT(agree(run, {}));
}

// ---- what error feedback keeps back ----

// By parameter, summed over workers.
using Totals = std::vector<double>;

void add(Totals& totals, std::size_t first, std::span<const float> values, double times = 1) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    totals[first + i] += times * static_cast<double>(values[i]);
  }
}

// All outer gradients of a run, as its workers find them.
class OuterGradients {
 public:
  explicit OuterGradients(ShuffledRun& run) : run_(run) {
    run.world.on_work = [this](const Work& work) { note(work); };
  }

  // The exchange of the chunk that the worker has begun last.
  Iteration last(NodeId worker, ChunkId chunk) const {
    const auto own = [&](const One& one) { return one.worker == worker && one.chunk == chunk; };
    const auto found = std::ranges::find_if(all_.rbegin(), all_.rend(), own);
    return found == all_.rend() ? 0 : found->iteration;
  }
  // The sum over all exchanges up to the last sum of each chunk.
  Totals until(std::span<const Iteration> last_sums) const {
    Totals totals(run_.parameters(0).size());
    for (const One& one : all_) {
      if (one.iteration <= last_sums[one.chunk.index()]) {
        add(totals, static_cast<std::size_t>(one.range.begin), one.gradient);
      }
    }
    return totals;
  }
  void forget() { all_.clear(); }

 private:
  struct One {
    NodeId worker;
    ChunkId chunk;
    Iteration iteration;
    Range range;
    std::vector<float> gradient;
  };

  void note(const Work& work) {
    if (work.kind != WorkKind::kOuterGradient) {
      return;
    }
    const Workspace& workspace = run_.world.state().workspace(work.node);
    const auto own = workspace.view({Buffer::kParameters, work.range});
    std::vector<float> gradient(own.size());
    std::ranges::transform(workspace.global_parameters().subspan(
                               static_cast<std::size_t>(work.range.begin), own.size()),
                           own, gradient.begin(), std::minus<>());
    all_.push_back({work.node, work.chunk, work.iteration, work.range, std::move(gradient)});
  }

  ShuffledRun& run_;
  std::vector<One> all_;
};

void add_residuals(Totals& totals, ShuffledRun& run, std::size_t worker, double times) {
  for (const Remembered& one : run.world.state().workspace(NodeId(worker)).remembered()) {
    if (one.name == "residual") {
      add(totals, 0, one.parts.front(), times);
    }
  }
}

void expect_near(const Totals& actual, const Totals& expected) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    RC_ASSERT(std::abs(actual[i] - expected[i]) < 1e-4 * (1 + std::abs(expected[i])));
  }
}

// With the mean of workers as outer step, what all of them have sent is in the way of the global
// parameters; with a plan in which each value is packed where something is kept back, the rest is
// in residuals.
RC_GTEST_PROP(Survivors, SendOrKeepBackAllThatTheyHaveComputed, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(2, 6);
  const HostId victim(*rc::gen::inRange<std::size_t>(0, workers));
  const std::size_t survivor = victim.index() == 0 ? 1 : 0;
  Cadence cadence = any_cadence();
  cadence.synchronous = cadence.delay = 0;
  cadence.outer = Outer::kMean;
  Job job = local_job(cadence, workers);
  job.strategy.error_feedback = true;
  job.strategy.collective = *rc::gen::element(Collective::kRing, Collective::kDirect);
  pack_with(job.strategy, *rc::gen::element(Codec::kQuantise8, Codec::kTopK));
  ShuffledRun run(job, kRuleOfSurvivors, any_seed(), kPhase);
  OuterGradients computed(run);
  const std::vector<float> begin = run.parameters(0);

  run_with_a_loss(run, victim, *rc::gen::inRange(0, 3000));
  std::vector<Iteration> sums(run.assembly.chunks->size());
  for (std::size_t w = 0; w < workers; ++w) {
    if (NodeId(w).index() != victim.index()) {
      std::ranges::transform(sums, run.assembly.last_sums(NodeId(w)), sums.begin(),
                             [](Iteration a, Iteration b) { return std::max(a, b); });
    }
  }
  // A sum that only the lost one has counts for nobody, and its residuals cannot go so far back.
  RC_PRE(std::ranges::equal(run.assembly.last_sums(NodeId(victim.index())), sums,
                            std::ranges::less_equal()));
  std::size_t given_up = 0;
  for (std::size_t c = 0; c < sums.size(); ++c) {  // also by the one that was lost
    if (computed.last(NodeId(victim.index()), ChunkId(c)) > sums[c]) {
      const Range range = (*run.assembly.chunks)[ChunkId(c)].range;
      run.world.state().workspace(NodeId(victim.index())).give_up_exchange(range);
      ++given_up;
    }
  }
  RC_TAG(given_up > 0 ? "sums were given up" : "all sums were made");
  regroup(run, {victim}, kPhase);
  const std::vector<float> between = global_of(run, survivor);
  const auto in_way = [&](const std::vector<float>& from, const std::vector<float>& to,
                          std::size_t members) {
    Totals totals(from.size());
    add(totals, 0, from, static_cast<double>(members) / cadence.rate);
    add(totals, 0, to, -static_cast<double>(members) / cadence.rate);
    return totals;
  };
  Totals accounted = in_way(begin, between, workers);
  for (std::size_t w = 0; w < workers; ++w) {
    add_residuals(accounted, run, w, 1);
  }
  expect_near(accounted, computed.until(sums));

  computed.forget();
  Totals later(begin.size());
  for (std::size_t w = 0; w < workers; ++w) {
    add_residuals(later, run, w, -1);
  }
  RC_ASSERT(run.run_on(2 * kPhase));
  for (std::size_t w = 0; w < workers; ++w) {
    add_residuals(later, run, w, 1);
  }
  const Totals way = in_way(between, global_of(run, survivor), workers - 1);
  std::ranges::transform(later, way, later.begin(), std::plus<>());
  expect_near(later, computed.until(std::vector<Iteration>(sums.size(), 2 * kPhase)));
}

// What a sum has cost is made up for: with the mean of workers as outer step, the next one leads
// all of those that are left to the mean of where they are.
TEST(Survivors, LoseNoStepOfTheirOwn) {
  constexpr Iteration kEvery = 4;
  Job job = local_job({.every = kEvery}, 3);
  job.strategy.collective = Collective::kRing;  // nobody has a sum without the help of all
  ShuffledRun run(job, kRuleOfSurvivors, 5, kEvery + 2);
  run.world.disturb = [killed = false](ShuffledWorld& world) mutable {
    if (world.iteration(0) == kEvery - 1 && !killed) {
      killed = true;
      world.kill(HostId(2));
    }
  };
  ASSERT_TRUE(run.run());
  run.world.disturb = [](ShuffledWorld&) {};
  ShuffledRun alone(local_job({.every = 100}, 3), kRuleOfSurvivors, 5, 2 * kEvery);
  ASSERT_TRUE(alone.run());
  regroup(run, {HostId(2)}, kEvery + 2);
  ASSERT_TRUE(run.run_on(2 * kEvery));
  const auto first = alone.parameters(0);
  const auto second = alone.parameters(1);
  const auto mean = run.parameters(0);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(mean[i], (first[i] + second[i]) / 2, 1e-5F);
  }
}

}  // namespace
}  // namespace sluice
