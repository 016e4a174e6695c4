// Local steps and outer steps, against a reference in double precision, under any order of
// delivery.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "nodes/assembly.h"
#include "nodes/shuffled_runs.h"
#include "nodes/validate.h"
#include "nodes/validate_update.h"
#include "partition/fragments.h"
#include "support/shuffled.h"

namespace sluice {
namespace {

using testing::any_cadence;
using testing::any_seed;
using testing::kLayers;
using testing::local_job;
using testing::ShuffledRun;
using testing::ShuffledWorld;
using testing::toy_learners;
using testing::ToyLearner;

constexpr Iteration kLength = 14;

const UpdateRule kInnerSgd{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
const UpdateRule kInnerAdamW{
    .rate = {.base = 0.01F}, .momentum = 0, .weight_decay = 0.01F, .optimizer = Optimizer::kAdamW};

// One value of the model on all workers, by the text of the papers.
class ValueReference {
 public:
  ValueReference(double initial, std::size_t index, std::size_t workers, std::int64_t fragment,
                 const Cadence& cadence, const UpdateRule& rule)
      : index_(index), fragment_(fragment), cadence_(cadence), rule_(rule), global_(initial) {
    own_.assign(workers, {.value = initial});
  }

  double own(std::size_t rank) const { return own_[rank].value; }
  // With which each worker makes the step to this iteration.
  std::vector<double> gradients(Iteration t) const {
    std::vector<double> all;
    for (std::size_t rank = 0; rank < own_.size(); ++rank) {
      const auto seen = static_cast<float>(own_[rank].value);
      all.push_back(static_cast<double>(ToyLearner::gradient(seen, index_, rank, t - 1)));
    }
    if (t <= cadence_.synchronous) {
      const double sum = std::accumulate(all.begin(), all.end(), 0.0);
      std::ranges::fill(all, sum / static_cast<double>(all.size()));
    }
    return all;
  }

  // Each worker's gradient is multiplied by its factor.
  void step(Iteration t, const std::vector<double>& factors) {
    const std::vector<double> of_workers = gradients(t);
    for (std::size_t rank = 0; rank < own_.size(); ++rank) {
      inner(own_[rank], of_workers[rank] * factors[rank], t);
    }
    if (t <= cadence_.synchronous) {
      global_ = own_.front().value;
      return;
    }
    const Iteration local = t - cadence_.synchronous;
    const Iteration turn = (fragment_ + 1) * cadence_.every / cadence_.fragments;
    if (local % cadence_.every == turn % cadence_.every) {
      due_ = t + cadence_.delay;
      mean_way_ = 0;
      for (const Replica& replica : own_) {
        mean_way_ += (global_ - replica.value) / static_cast<double>(own_.size());
      }
    }
    if (t == due_) {
      outer();
    }
  }

 private:
  struct Replica {
    double value = 0;
    double first = 0;   // momentum, or Adam's mean
    double second = 0;  // Adam's mean square
  };

  void inner(Replica& replica, double gradient, Iteration t) const {
    const auto rate = static_cast<double>(rule_.rate.base);
    const auto decay = static_cast<double>(rule_.weight_decay);
    if (rule_.optimizer == Optimizer::kSgd) {
      const double g = gradient + decay * replica.value;
      replica.first = static_cast<double>(rule_.momentum) * replica.first + g;
      replica.value -= rate * replica.first;
      return;
    }
    const double b1 = 0.9;
    const double b2 = 0.999;
    replica.value -= rate * decay * replica.value;
    replica.first = b1 * replica.first + (1 - b1) * gradient;
    replica.second = b2 * replica.second + (1 - b2) * gradient * gradient;
    const double mean = replica.first / (1 - std::pow(b1, static_cast<double>(t)));
    const double square = replica.second / (1 - std::pow(b2, static_cast<double>(t)));
    replica.value -= rate * mean / (std::sqrt(square) + 1e-8);
  }

  void outer() {
    if (cadence_.outer == Outer::kNesterov) {
      velocity_ = cadence_.momentum * velocity_ + mean_way_;
      global_ -= cadence_.rate * (mean_way_ + cadence_.momentum * velocity_);
    } else {
      global_ -= cadence_.rate * mean_way_;
    }
    for (Replica& replica : own_) {
      replica.value = cadence_.mix * replica.value + (1 - cadence_.mix) * global_;
    }
  }

  std::size_t index_;
  std::int64_t fragment_;
  Cadence cadence_;
  UpdateRule rule_;
  std::vector<Replica> own_;
  double global_;
  double velocity_ = 0;
  double mean_way_ = 0;
  Iteration due_ = -1;
};

// The model by the reference, in the order of its parameters.
std::vector<ValueReference> fresh_model(const Assembly& assembly, const UpdateRule& rule) {
  const Cadence& cadence = assembly.job.strategy.cadence;
  ToyLearner fresh(kLayers, 0);
  const auto fragments = fragments_of(*assembly.chunks, cadence.fragments);
  std::vector<ValueReference> model;
  for (std::size_t c = 0; c < fragments.size(); ++c) {
    const Range range = (*assembly.chunks)[ChunkId(c)].range;
    for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end);
         ++i) {
      model.emplace_back(static_cast<double>(fresh.parameters()[i]), i,
                         assembly.job.topology.workers(), fragments[c], cadence, rule);
    }
  }
  return model;
}

// What limits each worker's gradient to the norm, if there is a limit.
std::vector<double> factors_of(const std::vector<ValueReference>& model, Iteration t,
                               double limit) {
  std::vector<double> factors(model.front().gradients(t).size(), 1.0);
  for (std::size_t rank = 0; limit > 0 && rank < factors.size(); ++rank) {
    double squares = 0;
    for (const ValueReference& value : model) {
      squares += std::pow(value.gradients(t)[rank], 2);
    }
    factors[rank] = std::min(1.0, limit / (std::sqrt(squares) + 1e-6));
  }
  return factors;
}

void expect_reference(ShuffledRun& run, const UpdateRule& rule) {
  std::vector<ValueReference> model = fresh_model(run.assembly, rule);
  for (Iteration t = 1; t <= kLength; ++t) {
    const auto factors = factors_of(model, t, static_cast<double>(rule.clip_norm));
    for (ValueReference& value : model) {
      value.step(t, factors);
    }
  }
  for (std::size_t rank = 0; rank < run.learners.size(); ++rank) {
    const auto actual = run.parameters(rank);
    RC_ASSERT(actual.size() == model.size());
    for (std::size_t i = 0; i < model.size(); ++i) {
      RC_ASSERT(std::abs(static_cast<double>(actual[i]) - model[i].own(rank)) < 1e-5);
    }
  }
}

RC_GTEST_PROP(LocalSteps, AreThoseOfTheReference, ()) {
  const Cadence cadence = any_cadence();
  UpdateRule rule = *rc::gen::element(kInnerSgd, kInnerAdamW);
  rule.clip_norm = *rc::gen::element(0.0F, 1.5F);
  Job job = local_job(cadence, *rc::gen::inRange<std::size_t>(1, 5));
  job.strategy.partition = *rc::gen::element(Partition::kLayer, Partition::kSlice);
  job.strategy.order = *rc::gen::element(Order::kFifo, Order::kPriority, Order::kAfterBackward);
  job.strategy.collective = *rc::gen::element<std::optional<Collective>>(
      std::nullopt, Collective::kRing, Collective::kRecursiveDoubling, Collective::kHalvingDoubling,
      Collective::kBinaryTree, Collective::kDirect, Collective::kNative);
  job.strategy.sums_first = sums_first(rule);
  RC_ASSERT(validate(job.strategy));
  RC_ASSERT(validate(rule, job.strategy));
  ShuffledRun run(job, rule, any_seed(), kLength);
  RC_ASSERT(run.run());
  expect_reference(run, rule);
}

RC_GTEST_PROP(LocalSteps, DoNotDependOnTheOrderOfEvents, ()) {
  Job job = local_job(any_cadence(), *rc::gen::inRange<std::size_t>(1, 6));
  job.topology = Topology(job.topology.workers(), *rc::gen::inRange<std::size_t>(1, 3), 0);
  job.strategy.codec =
      *rc::gen::element(Codec::kNone, Codec::kBf16, Codec::kQuantise8, Codec::kTopK);
  job.strategy.error_feedback =
      job.strategy.gathered() || (job.strategy.coded() && *rc::gen::arbitrary<bool>());
  job.strategy.top_k = {.block = 8, .kept = 2};
  job.server_threads = *rc::gen::inRange(1, 4);
  ShuffledRun one(job, kInnerSgd, any_seed(), kLength);
  ShuffledRun other(job, kInnerSgd, any_seed(), kLength);
  RC_ASSERT(one.run());
  RC_ASSERT(other.run());
  for (std::size_t w = 0; w < job.topology.workers(); ++w) {
    RC_ASSERT(one.parameters(w) == other.parameters(w));
  }
}

// A run that rests in between, perhaps while sums are under way, ends as one that does not.
RC_GTEST_PROP(LocalSteps, EndAlikeInPhases, ()) {
  const Job job = local_job(any_cadence(), *rc::gen::inRange<std::size_t>(1, 5));
  ShuffledRun at_once(job, kInnerSgd, any_seed(), kLength);
  RC_ASSERT(at_once.run());
  ShuffledRun in_phases(job, kInnerSgd, any_seed(), *rc::gen::inRange<Iteration>(1, 7));
  RC_ASSERT(in_phases.run());
  RC_ASSERT(in_phases.run_on(*rc::gen::inRange<Iteration>(8, kLength)));
  RC_ASSERT(in_phases.run_on(kLength));
  for (std::size_t w = 0; w < job.topology.workers(); ++w) {
    RC_ASSERT(in_phases.parameters(w) == at_once.parameters(w));
  }
}

// After an exchange without a delay and a mix, all replicas are the global parameters.
RC_GTEST_PROP(LocalSteps, ReplicasAreEqualAfterAnExchange, ()) {
  Cadence cadence = any_cadence();
  cadence.fragments = 1;
  cadence.delay = 0;
  cadence.mix = 0;
  const Job job = local_job(cadence, *rc::gen::inRange<std::size_t>(2, 5));
  const Iteration last = cadence.synchronous + 2 * cadence.every;
  ShuffledRun run(job, kInnerSgd, any_seed(), last);
  RC_ASSERT(run.run());
  for (std::size_t w = 1; w < job.topology.workers(); ++w) {
    RC_ASSERT(run.parameters(w) == run.parameters(0));
  }
  RC_ASSERT(run.run_on(last + 1));
  RC_ASSERT(cadence.every == 1 || run.parameters(1) != run.parameters(0));
}

// What is synchronous has the bits of algorithm bsp.
RC_GTEST_PROP(LocalSteps, SynchronousIterationsAreThoseOfBsp, ()) {
  Cadence cadence = any_cadence();
  cadence.synchronous = kLength;
  Job job = local_job(cadence, *rc::gen::inRange<std::size_t>(1, 5));
  ShuffledRun local(job, kInnerAdamW, any_seed(), kLength);
  job.strategy.algorithm = Algorithm::kBsp;
  job.strategy.cadence = {};
  ShuffledRun bsp(job, kInnerAdamW, any_seed(), kLength);
  RC_ASSERT(local.run());
  RC_ASSERT(bsp.run());
  RC_ASSERT(local.parameters(0) == bsp.parameters(0));
}

// A worker is at most so far ahead as the traits promise.
RC_GTEST_PROP(LocalSteps, NobodyGetsFurtherAheadThanTheCadence, ()) {
  const Job job = local_job(any_cadence(), *rc::gen::inRange<std::size_t>(2, 5));
  const Iteration lead = traits_of(Algorithm::kLocal).max_lead(job.strategy);
  ShuffledRun run(job, kInnerSgd, any_seed(), kLength);
  run.world.watch = [&](const ShuffledWorld& /*now*/) {
    RC_ASSERT(run.lead() <= lead + 1);  // one more backward pass may be in flight
  };
  RC_ASSERT(run.run());
}

}  // namespace
}  // namespace sluice
