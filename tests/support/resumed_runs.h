#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/hash.h"
#include "nodes/presets.h"
#include "session/training.h"
#include "support/talkative.h"
#include "support/toy_learner.h"

// Runs of toy learners that are stopped and gone on with, on threads or as processes.
namespace sluice::testing {

inline const std::vector<std::int64_t> kResumedLayers{37, 0, 500, 12, 260, 3};

inline Strategy resumed_strategy(const Preset& preset) {
  Strategy strategy = talkative(preset.strategy);
  strategy.slice_params = 64;
  strategy.kvstore_split_params = 200;
  strategy.credit = 512;
  strategy.segment_params = 100;
  strategy.dgc.sparsity = 0.9;
  return strategy;
}

inline UpdateRule resumed_rule(const Preset& preset) {
  UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
  if (preset.optimizer != Optimizer::kSgd) {
    rule.optimizer = preset.optimizer;
    rule.rate.base = 0.001F;
  }
  return rule;
}

// Whether a run that goes on from a checkpoint must end with the bits of one that was never
// stopped.
inline bool has_exact_checkpoints(const Strategy& strategy) {
  const AlgorithmTraits& algorithm = traits_of(strategy.algorithm);
  return algorithm.replicas_agree() || algorithm.sends == Sends::kOuterGradients;
}

// A run up to some iteration: from the beginning, or from where the spec says.
struct ToyTraining {
  Job job;
  UpdateRule rule;
  Iteration until = 0;
  CheckpointSpec checkpoint = {};
  std::function<int()> interrupted = {};
  Log log = {};
  bool alike = false;  // all workers have the gradients of rank 0
};

struct ToyOutcome {
  std::vector<std::string> hashes;     // of the parameters of each worker of this process
  std::vector<float> parameters = {};  // of the first of them
  Iteration first = 0;
  std::optional<int> stopped = {};
  nlohmann::ordered_json checkpoints = {};
  std::uint64_t updates = 0;  // in this process
};

inline ToyOutcome train_toys(ProcessGroup& group, const ToyTraining& of) {
  Job job = of.job;
  std::vector<std::unique_ptr<Learner>> learners;
  for (const std::size_t rank : workers_here(group, job.topology)) {
    learners.push_back(std::make_unique<ToyLearner>(kResumedLayers, of.alike ? 0 : rank));
  }
  job.layers = ToyLearner(kResumedLayers, 0).layers();
  job.here = group.own_host();
  Extent extent{.workers = job.topology.workers(), .iterations = of.until, .per_epoch = of.until};
  auto found = find_checkpoint(group, of.checkpoint, job.topology, job.strategy, of.log);
  if (!found) {
    throw std::runtime_error(found.error().message());
  }
  const std::optional<Resumption> resumption = *std::move(found);
  if (resumption) {
    if (const auto fits = take_up(*resumption, job); !fits) {
      throw std::runtime_error(fits.error().message());
    }
    extent.first = job.first;
    extent.starts = job.starts;
  }
  const Clock clock;
  std::unique_ptr<Checkpoints> checkpoints;
  if (!of.checkpoint.folder.empty()) {
    checkpoints =
        std::make_unique<Checkpoints>(group, of.checkpoint, Json::object(), clock, of.log);
  }
  const Trained trained = run_training(job, {.group = group,
                                             .learners = learners,
                                             .rule = of.rule,
                                             .extent = extent,
                                             .clock = clock,
                                             .interrupted = of.interrupted,
                                             .checkpoints = checkpoints.get(),
                                             .resumption = resumption ? &*resumption : nullptr});
  ToyOutcome outcome{.hashes = {},
                     .parameters = {},
                     .first = job.first,
                     .stopped = trained.stopped,
                     .checkpoints = {},
                     .updates = static_cast<std::uint64_t>(trained.counters.updates)};
  if (checkpoints) {
    outcome.checkpoints = checkpoints->summary();
  }
  if (!learners.empty()) {
    const auto parameters = learners.front()->parameters();
    outcome.parameters.assign(parameters.begin(), parameters.end());
  }
  for (const auto& learner : learners) {
    outcome.hashes.push_back(fmt::format("{:016x}", hash_of(std::as_bytes(learner->parameters()))));
  }
  return outcome;
}

// Whether going on at these iterations, in runs of their own, makes no difference.
inline bool resumes_alike(ProcessGroup& group, const ToyTraining& whole,
                          const std::vector<Iteration>& stops, const std::string& folder) {
  const std::vector<std::string> expected = train_toys(group, whole).hashes;
  ToyTraining part = whole;
  part.checkpoint = {.folder = folder, .every = 4, .keep = 2, .resume = "auto"};
  Iteration before = 0;
  for (const Iteration stop : stops) {
    part.until = stop;
    if (train_toys(group, part).first != before) {
      return false;
    }
    before = stop;
  }
  part.until = whole.until;
  const ToyOutcome last = train_toys(group, part);
  return last.first == before && last.hashes == expected;
}

}  // namespace sluice::testing
