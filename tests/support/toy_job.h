#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/job.h"
#include "nodes/presets.h"
#include "optimizers/update_rule.h"
#include "support/talkative.h"

namespace sluice::testing {

// One job for two drivers, to compare them. Layers are sent eager, by rendezvous, whole and in
// slices.
inline const std::vector<std::int64_t> kToyLayers{1000, 0, 30'000, 500, 70'001, 10};
inline constexpr std::int64_t kToySlice = 20'000;
inline const UpdateRule kToyRule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-4F};

// From text like PRESET or PRESET:PARTITION:COLLECTIVE.
inline Strategy toy_strategy(const std::string& words) {
  const std::size_t first = words.find(':');
  const std::size_t second = words.find(':', first + 1);
  Strategy strategy = talkative(find_preset(words.substr(0, first))->strategy);
  strategy.slice_params = kToySlice;
  if (second != std::string::npos) {
    strategy.partition = *value_of(kPartitionNames, words.substr(first + 1, second - first - 1));
    strategy.collective = value_of(kCollectiveNames, words.substr(second + 1));
  }
  return strategy;
}

// The same with servers of their own, from text like STRATEGY@SERVERS.
struct ToySetUp {
  Strategy strategy;
  std::size_t servers = 0;  // 0: beside the workers
};
inline ToySetUp toy_set_up(const std::string& words) {
  const std::size_t at = words.find('@');
  return {toy_strategy(words.substr(0, at)),
          at == std::string::npos ? 0 : std::stoul(words.substr(at + 1))};
}

// The job in phases; if layers are merged, each phase has another plan of groups.
struct ToyPhase {
  Job job;
  Iteration last;
};
inline std::vector<ToyPhase> toy_phases(Job job, Iteration iterations) {
  if (job.strategy.algorithm != Algorithm::kBsp) {
    return {{std::move(job), iterations}};
  }
  const bool merged = job.strategy.partition == Partition::kMerged;
  std::vector<ToyPhase> phases;
  for (const auto& [last, groups] :
       {std::pair<Iteration, std::vector<LayerGroup>>{iterations / 5, {}},
        {iterations / 2, {{3, 6}, {0, 3}}},
        {iterations, {{4, 6}, {2, 4}, {0, 2}}}}) {
    job.groups = merged ? groups : std::vector<LayerGroup>{};
    phases.push_back({job, last});
    job.first = last;
  }
  return phases;
}

}  // namespace sluice::testing
