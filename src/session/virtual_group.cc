#include "session/virtual_group.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "drivers/virtual/simulator.h"
#include "session/local_group.h"
#include "session/simulated_job.h"
#include "session/step_threads.h"

namespace sluice {
namespace {

class VirtualGroup final : public LocalGroup {
 public:
  explicit VirtualGroup(VirtualCluster cluster) : cluster_(std::move(cluster)) {}

  std::optional<Topology> topology() const override { return cluster_.cluster.topology; }
  std::optional<Time> virtual_now() const override { return now_; }
  std::optional<NetworkUse> network_use() const override { return use_; }
  Result<void> fits(const std::function<std::vector<Layer>()>& layers) const override;
  NetworkFacts tune(Job& job, const ChosenSizes& chosen) override;
  std::optional<int> train(const Phase& phase) override;

 private:
  VirtualCluster cluster_;
  Time now_{0};
  NetworkUse use_;
};

Result<void> VirtualGroup::fits(const std::function<std::vector<Layer>()>& layers_of_model) const {
  const std::vector<Layer> layers = layers_of_model();
  const Profile& profile = cluster_.profile;
  const std::vector<Layer> own = profile.layout();
  if (own.size() != layers.size()) {
    return Error(
        fmt::format("profile {}: has {} layers, and the model has {}; \"sluice profile\" makes one "
                    "of the model",
                    profile.name, own.size(), layers.size()));
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (own[l].range.size() != layers[l].range.size()) {
      return Error(fmt::format(
          "profile {}: layer {} has {} parameters, and layer {} of the model has {}; \"sluice "
          "profile\" makes one of the model",
          profile.name, own[l].name, own[l].range.size(), layers[l].name, layers[l].range.size()));
    }
  }
  return {};
}

NetworkFacts VirtualGroup::tune(Job& job, const ChosenSizes& chosen) {
  const auto made = simulated_job({.preset = "", .strategy = job.strategy, .chosen = chosen},
                                  cluster_.profile, cluster_.cluster);
  check(static_cast<bool>(made), "the caller has checked the job");
  const std::vector<Layer> layers = std::exchange(job.layers, {});
  job = *made;
  job.layers = layers;  // with the names of the model
  NetworkFacts facts;
  if (job.strategy.partition == Partition::kMerged) {
    facts.merging = plan_groups(job, cluster_.profile, cluster_.cluster);
  }
  return facts;
}

std::optional<int> VirtualGroup::train(const Phase& phase) {
  check(phase.first == 0, "a simulated run has one phase");
  StepThreads threads(cluster_.threads, phase.topology.workers(), phase.start);
  VirtualNumbers numbers;
  numbers.chunks = &phase.chunks;
  numbers.strategy = phase.strategy;
  numbers.state = &phase.state;
  numbers.computing = &threads;
  numbers.on_step = [&](const StepReport& step) {
    now_ = step.at;
    if (phase.on_step) {
      phase.on_step(step);
    }
  };
  numbers.on_boundary = [&](Iteration iteration, Time now) {
    now_ = now;
    if (phase.on_boundary) {
      phase.on_boundary(iteration);
    }
  };
  numbers.boundary_every = phase.boundary_every;
  numbers.on_nonfinite = phase.on_nonfinite;
  numbers.interrupted = phase.interrupted;
  const SimulationResult result = simulate({.profile = cluster_.profile,
                                            .cluster = cluster_.cluster,
                                            .hosts = phase.hosts,
                                            .iterations = phase.last,
                                            .channel_order = phase.strategy.order,
                                            .observer = phase.observer,
                                            .numbers = &numbers,
                                            .slowdowns = cluster_.slowdowns,
                                            .seed = phase.strategy.seed});
  now_ = result.end;
  const bool channel = cluster_.cluster.allreduce.has_value();
  use_ = {.bytes = result.bytes,
          .egress_busy = channel ? result.channel_busy : result.egress_busy,
          .ingress_busy = channel ? result.channel_busy : result.ingress_busy};
  return result.stopped;
}

}  // namespace

std::unique_ptr<ProcessGroup> make_virtual_group(VirtualCluster cluster) {
  return std::make_unique<VirtualGroup>(std::move(cluster));
}

}  // namespace sluice
