#include "state/resharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "model/aggregation_groups.h"
#include "nodes/presets.h"
#include "nodes/reshardable.h"
#include "state/saved_state.h"
#include "support/generators.h"
#include "support/resumed_runs.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using testing::between;
using testing::kResumedLayers;

// A job of toy learners with its state.
struct ToyState {
  ToyState(const Strategy& strategy, const Topology& topology, const UpdateRule& rule)
      : learners(testing::toy_learners(kResumedLayers, topology.workers())),
        job{.layers = learners.front()->layers(), .topology = topology, .strategy = strategy},
        chunks(make_chunks(job.layers, strategy.uses_servers() ? topology.servers() : 1, strategy)),
        state(topology, learners, chunks, strategy, rule) {}

  // Of all nodes that the strategy uses: f(node, name, position in the whole array, value).
  void for_each_value(
      const std::function<void(NodeId, const std::string&, std::int64_t, float&)>& f) {
    for (std::size_t n = 0; n < job.topology.nodes(); ++n) {
      const NodeId node(n);
      if (!job.topology.is_worker(node) && !job.strategy.uses_servers()) {
        continue;
      }
      for (const Remembered& one : state.remembered(node, chunks, job.topology)) {
        const std::vector<std::int64_t> positions = positions_of(node, one.size());
        std::size_t next = 0;
        for (const std::span<float> part : one.parts) {
          for (float& value : part) {
            f(node, one.name, one.name == "clip_factor" ? 0 : positions[next++], value);
          }
        }
      }
    }
  }
  std::vector<HostId> hosts() const {
    std::vector<HostId> all;
    for (std::size_t h = 0; h < job.topology.hosts(); ++h) {
      all.emplace_back(h);
    }
    return all;
  }

  std::vector<std::unique_ptr<Learner>> learners;
  Job job;
  ChunkMap chunks;
  TrainingState state;

 private:
  std::vector<std::int64_t> positions_of(NodeId node, std::size_t size) const {
    std::vector<std::int64_t> positions;
    if (job.topology.is_worker(node)) {
      for (std::size_t i = 0; i < size; ++i) {
        positions.push_back(static_cast<std::int64_t>(i));
      }
      return positions;
    }
    for (const Chunk& chunk : chunks.all()) {
      if (chunk.server == job.topology.server_index(node)) {
        for (std::int64_t i = chunk.range.begin; i < chunk.range.end; ++i) {
          positions.push_back(i);
        }
      }
    }
    return positions;
  }
};

float some_value(const std::string& name, std::int64_t position, std::size_t of = 0) {
  const std::uint64_t key =
      mix(std::hash<std::string>()(name) ^ mix(static_cast<std::uint64_t>(position)) ^ mix(of + 9));
  return static_cast<float>(key >> 40U) * 0x1.0p-24F - 0.5F;
}

bool was_lost(const std::string& name) { return name.ends_with("residual"); }

// What a node of such a run can have, by what it does.
float value_in_run(const Job& job, NodeId node, const std::string& name, std::int64_t position) {
  const bool is_worker = job.topology.is_worker(node);
  const bool leads = is_worker && AggregationGroups(job).leader_of(node) == node;
  const Strategy& strategy = job.strategy;
  if (name == "clip_factor") {
    return 1;
  }
  if (name == "parameters") {
    return some_value(name, position, !is_worker && strategy.servers_sum() ? 1 : 0);
  }
  if (was_lost(name)) {
    const bool packs = strategy.error_feedback && !name.starts_with("dgc") &&
                       (leads || (!is_worker && strategy.servers_pack()));
    return packs ? some_value(name, position, is_worker ? node.index() + 1 : 0) : 0;
  }
  const bool on_servers = strategy.uses_servers() && !strategy.servers_sum();
  const bool updates = on_servers ? !is_worker : leads;
  return updates && !name.starts_with("dgc") ? some_value(name, position) : 0;
}

Topology any_resharded_topology(const Strategy& strategy) {
  const auto hosts = static_cast<std::size_t>(*between(1, 5));
  const auto apart = strategy.uses_servers() ? static_cast<std::size_t>(*between(0, 2)) : 0;
  const std::size_t sharing = *rc::gen::arbitrary<bool>() ? 1 : hosts;
  return {hosts, static_cast<std::size_t>(*between(1, 3)), apart, sharing,
          static_cast<std::size_t>(*between(1, 2))};
}

Strategy any_reshardable() {
  std::vector<Strategy> all;
  for (const Preset& preset : presets()) {
    if (check_reshardable(preset.strategy)) {
      all.push_back(testing::resumed_strategy(preset));
    }
  }
  Strategy strategy = *rc::gen::elementOf(all);
  if (!strategy.coded() && *rc::gen::arbitrary<bool>()) {
    strategy.codec = Codec::kQuantise8;
    strategy.error_feedback = *rc::gen::arbitrary<bool>();
  }
  if (!strategy.factored()) {
    strategy.local_aggregation = *rc::gen::arbitrary<bool>();
  }
  return strategy;
}

UpdateRule any_resharded_rule() {
  return {.momentum = *rc::gen::element(0.0F, 0.9F),
          .optimizer = *rc::gen::element(Optimizer::kSgd, Optimizer::kAdam, Optimizer::kAdagrad,
                                         Optimizer::kLamb)};
}

Result<void> reshard(ToyState& from, ToyState& to) {
  Resharding resharding(
      {from.job.topology, from.chunks},
      {.state = to.state, .job = to.job, .chunks = to.chunks, .hosts = to.hosts()});
  for (const HostId host : from.hosts()) {
    const std::vector<TensorCopy> copies =
        copy_state({.state = from.state,
                    .topology = from.job.topology,
                    .chunks = from.chunks,
                    .has_servers = from.job.strategy.uses_servers(),
                    .host = host});
    std::vector<StoredTensor> tensors;
    for (const TensorCopy& copy : copies) {
      tensors.push_back(copy.view());
    }
    if (auto taken = resharding.take(host, tensors); !taken) {
      return taken;
    }
  }
  return {};
}

// By name and position: the sum over these nodes.
using ResidualSums = std::map<std::pair<std::string, std::int64_t>, double>;

ResidualSums residuals_of(ToyState& of, bool workers) {
  ResidualSums sums;
  of.for_each_value([&](NodeId node, const std::string& name, std::int64_t position, float& value) {
    if (was_lost(name) && of.job.topology.is_worker(node) == workers) {
      sums[{name, position}] += static_cast<double>(value);
    }
  });
  return sums;
}

struct ReshardedToys {
  ReshardedToys()
      : strategy(any_reshardable()),
        rule(any_resharded_rule()),
        before(strategy, any_resharded_topology(strategy), rule),
        after(cut_otherwise(strategy), any_resharded_topology(strategy), rule) {
    before.for_each_value(
        [&](NodeId node, const std::string& name, std::int64_t position, float& value) {
          value = value_in_run(before.job, node, name, position);
        });
  }

  static Strategy cut_otherwise(Strategy strategy) {
    strategy.slice_params = *between(20, 200);
    strategy.join_params = *rc::gen::element<std::int64_t>(0, 40);
    return strategy;
  }

  Strategy strategy;
  UpdateRule rule;
  ToyState before;
  ToyState after;
};

RC_GTEST_PROP(ReshardingTest, EveryNodeHasTheValuesOfItsParameters, ()) {
  ReshardedToys change;
  const auto taken = reshard(change.before, change.after);
  RC_ASSERT(static_cast<bool>(taken));
  const Job& job = change.after.job;
  change.after.for_each_value(
      [&](NodeId node, const std::string& name, std::int64_t position, float& value) {
        const bool scratch =
            name == "parameters" && !job.topology.is_worker(node) && job.strategy.servers_sum();
        if (!was_lost(name) && !scratch) {
          RC_ASSERT(std::bit_cast<std::uint32_t>(value) ==
                    std::bit_cast<std::uint32_t>(value_in_run(job, node, name, position)));
        }
      });
}

// What goes into the mean gradient later is what was left out of it before.
RC_GTEST_PROP(ReshardingTest, WhatPackingHasLostCountsAsMuchInTheMean, ()) {
  ReshardedToys change;
  RC_ASSERT(static_cast<bool>(reshard(change.before, change.after)));
  const auto workers_before = static_cast<double>(change.before.job.topology.workers());
  const auto workers_after = static_cast<double>(change.after.job.topology.workers());
  for (const bool workers : {true, false}) {
    const ResidualSums before = residuals_of(change.before, workers);
    const ResidualSums after = residuals_of(change.after, workers);
    RC_ASSERT(before.size() == after.size());
    for (const auto& [where, sum] : before) {
      RC_ASSERT(std::abs(sum / workers_before - after.at(where) / workers_after) < 1e-5);
    }
  }
}

// Only those who pack can use it.
RC_GTEST_PROP(ReshardingTest, OnlyThoseWhoPackHaveWhatWasLost, ()) {
  ReshardedToys change;
  RC_ASSERT(static_cast<bool>(reshard(change.before, change.after)));
  const AggregationGroups groups(change.after.job);
  change.after.for_each_value(
      [&](NodeId node, const std::string& name, std::int64_t /*position*/, float& value) {
        if (was_lost(name) && change.after.job.topology.is_worker(node)) {
          RC_ASSERT(groups.leader_of(node) == node || value == 0.0F);
        }
      });
}

class WrongReshardingTest : public ::testing::Test {
 protected:
  std::string complaint(const std::function<void(ToyState&)>& change) {
    ToyState before(strategy_, Topology(4, 1, 0), rule_);
    before.for_each_value([&](NodeId node, const std::string& name, std::int64_t i, float& value) {
      value = value_in_run(before.job, node, name, i);
    });
    change(before);
    ToyState after(strategy_, Topology(2, 1, 0), rule_after_);
    const auto taken = reshard(before, after);
    return taken ? "" : taken.error().message();
  }

  Strategy strategy_ = testing::resumed_strategy(*find_preset("p3"));
  UpdateRule rule_{.momentum = 0.9F};
  UpdateRule rule_after_ = rule_;
};

// So another way of cutting the model than that of the checkpoint is found out.
TEST_F(WrongReshardingTest, ServersThatDoNotHaveTheWorkersParametersAreRefused) {
  EXPECT_EQ(complaint([](ToyState&) {}), "");
  EXPECT_THAT(complaint([](ToyState& before) {
                before.for_each_value([&](NodeId node, const std::string& name, std::int64_t i,
                                          float& value) {
                  if (name == "parameters" && !before.job.topology.is_worker(node) && i == 300) {
                    value += 1;
                  }
                });
              }),
              ::testing::HasSubstr("is not what worker 0 has there"));
}

TEST_F(WrongReshardingTest, WhatNobodyHasIsRefused) {
  rule_after_.momentum = 0;
  EXPECT_THAT(complaint([](ToyState&) {}), ::testing::HasSubstr("is nothing that this run has"));
}

}  // namespace
}  // namespace sluice
