#include "session/workload.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "drivers/realtime/steady_sleeper.h"
#include "drivers/virtual/compute_pace.h"
#include "learners/replay_learner.h"
#include "session/batch_shares.h"
#include "session/task.h"

namespace sluice {
namespace {

constexpr Iteration kReplayIterations = 20;

Result<Extent> extent_of(const TorchTask& task, const LengthSpec& length) {
  const Sharding sharding = task.sharding();
  Extent extent{.workers = task.workers,
                .batch = task.batch * task.accumulate,
                .iterations = length.iterations,
                .per_epoch = sharding.steps_per_epoch(),
                .samples_per_epoch = sharding.samples_per_epoch(),
                .sharding = sharding,
                .epochs_evaluated = length.evaluate_every};
  if (extent.per_epoch == 0) {
    return Error(fmt::format(
        "batch: {} workers with {} samples each need {}, and the data set has {}; use a smaller "
        "batch or fewer workers",
        task.workers, extent.batch, extent.batch * static_cast<std::int64_t>(task.workers),
        task.train->size()));
  }
  if (extent.iterations == 0) {
    extent.iterations = extent.per_epoch * length.epochs;
  }
  return extent;
}

// As the simulator has it: by the speed of a worker's host, jitter and its share of the batch.
Result<ReplayPace> pace_of(const std::optional<Cluster>& cluster, const Dealing& dealing) {
  if (!cluster && dealing.shares.empty()) {
    return ReplayPace();
  }
  if (cluster && cluster->topology.workers() != dealing.workers) {
    return Error(fmt::format("cluster: has {} workers, and the run has {}",
                             cluster->topology.workers(), dealing.workers));
  }
  Cluster world = cluster.value_or(Cluster());
  if (!cluster) {
    world.topology = Topology(dealing.workers, 1, 0);
  }
  const ComputePace pace(world, compute_factors(dealing.shares), dealing.seed);
  return ReplayPace(
      [pace](std::size_t rank, Iteration iteration) { return pace.slowdown(rank, iteration); });
}

}  // namespace

Dealing dealing_of(const TrainSpec& spec) {
  const Strategy& strategy = spec.strategy.strategy;
  return {.workers = spec.hosts.workers,
          .shares = spec.shares.parts,
          .joins_batches = traits_of(strategy.algorithm).sends == Sends::kGradients,
          .seed = strategy.seed};
}

Result<Workload> make_workload(const TaskSpec& spec, const LengthSpec& length,
                               const Dealing& dealing, const Log& log) {
  auto loader = std::make_shared<AheadLoader>(spec.loaders);
  auto found = make_task(spec, dealing.workers, log);
  if (!found) {
    return found.error();
  }
  TorchTask task = *std::move(found);
  task.loader = loader;
  task.shares = dealing.shares;
  task.joins_batches = dealing.joins_batches;
  auto extent = extent_of(task, length);
  if (!extent) {
    return extent.error();
  }
  auto factory = make_torch_learners(task);
  if (!factory) {
    return factory.error();
  }
  return Workload{.name = std::filesystem::path(task.model).stem(),
                  .extent = *extent,
                  .factory = *std::move(factory),
                  .task = std::move(task),
                  .loader = std::move(loader)};
}

Result<Workload> make_workload(const ProfileSpec& spec, const LengthSpec& length,
                               const Dealing& dealing, const Log& /*log*/) {
  auto profile = scaled_profile(spec);
  if (!profile) {
    return profile.error();
  }
  const auto pace = pace_of(spec.cluster, dealing);
  if (!pace) {
    return pace.error();
  }
  const std::size_t workers = dealing.workers;
  const Iteration iterations = length.iterations == 0 ? kReplayIterations : length.iterations;
  auto factory = make_replay_learners(*profile, std::make_shared<SteadySleeper>(), *pace);
  return Workload{.name = "replay-" + profile->name,
                  .extent = {.workers = workers,
                             .batch = profile->batch,
                             .iterations = iterations,
                             .per_epoch = iterations,
                             .samples_per_epoch =
                                 iterations * profile->batch * static_cast<std::int64_t>(workers)},
                  .factory = std::move(factory),
                  .task = std::nullopt,
                  .loader = nullptr};
}

Result<Profile> scaled_profile(const ProfileSpec& spec) {
  auto profile = read_profile(spec.path);
  if (!profile) {
    return profile;
  }
  if (const double us =
          to_us(profile->compute()) * spec.time_scale * static_cast<double>(spec.accumulate);
      us > kLongestPassUs) {
    return Error(fmt::format(
        "{}: brings the sum of all layers of {} to {:.3g} us, expected at most {:.3g} us",
        spec.accumulate > 1 ? "accumulate" : "time-scale", spec.path, us, kLongestPassUs));
  }
  return accumulated(scaled(*std::move(profile), spec.time_scale, spec.param_scale),
                     spec.accumulate);
}

}  // namespace sluice
