#include "session/probing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/median.h"
#include "collectives/cost.h"
#include "drivers/realtime/processor.h"
#include "model/message_size.h"
#include "nodes/presets.h"
#include "planner/allreduce_cost.h"
#include "planner/arithmetic_cost.h"
#include "planner/measurement_doubts.h"
#include "planner/processor_cost.h"
#include "session/training.h"

namespace sluice {

double CollectiveFit::mean_error() const {
  double sum = 0;
  for (const Timing& point : points) {
    sum += std::abs(relative_error(line, point));
  }
  return sum / static_cast<double>(points.size());
}

double CollectiveFit::worst_error() const {
  double worst = 0;
  for (const Timing& point : points) {
    worst = std::max(worst, std::abs(relative_error(line, point)));
  }
  return worst;
}

namespace {

constexpr Duration kCoresTime = std::chrono::milliseconds(50);

// Every process measures its own; the leader gets the medians of all, the others keep theirs.
std::vector<double> medians_of(ProcessGroup& group, std::vector<double> own,
                               const std::string& what) {
  std::vector<std::vector<double>> all(own.size());
  for (const std::string& text : group.to_leader(nlohmann::json(own).dump(), what)) {
    const auto values = nlohmann::json::parse(text).get<std::vector<double>>();
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].push_back(values.at(i));
    }
  }
  if (group.is_leader()) {
    std::ranges::transform(all, own.begin(), [](const auto& values) { return median_of(values); });
  }
  return own;
}

ArithmeticCost arithmetic_of(ProcessGroup& group, const Clock& clock) {
  const ArithmeticCost own = measured_arithmetic([&] { return clock.now(); });
  const auto medians =
      medians_of(group, {own.reduce_ns_per_byte, own.update_ns_per_byte, own.code_ns_per_byte},
                 "the time of its arithmetic");
  return {medians[0], medians[1], medians[2]};
}

// Sums from 1 KB, each four times the one before, as long as the network moves one in 50 ms.
std::vector<std::int64_t> sizes_for(double gbps) {
  constexpr std::int64_t kMin = 64 << 10;
  constexpr std::int64_t kMax = 4 << 20;
  const auto max = std::clamp(static_cast<std::int64_t>(gbps * 50e6 / 8 / kFloatBytes), kMin, kMax);
  std::vector<std::int64_t> sizes;
  for (std::int64_t params = 256; params <= max; params *= 4) {
    sizes.push_back(params);
  }
  return sizes;
}

// All-reduces of whole models, and whether MPI can make them.
struct Summing {
  Job job;
  bool with_mpi = false;
};

// As in train, every process is a host. The cluster gets the threads that a host will have, and
// over TCP there are no fragments.
Summing summing_job(ProcessGroup& group, std::size_t per_machine, Cluster& cluster) {
  Job job;
  job.topology = Topology(group.size(), 1, 0, per_machine);
  job.strategy = find_preset("single")->strategy;
  const NetworkFacts facts = group.tune(job, {});
  cluster.server_threads = job.server_threads;
  const bool over_tcp = facts.carrier && facts.carrier->is_tcp();
  const bool two_threads = over_tcp ? facts.carrier->threads > 1
                                    : facts.long_messages && facts.long_messages->receiving_thread;
  cluster.message_threads = two_threads ? 2 : 1;
  cluster.fragment_bytes = over_tcp ? 0 : cluster.fragment_bytes;
  return {std::move(job), facts.long_messages.has_value()};
}

TrainAside aside(ProcessGroup& group, const Clock& clock, bool may_spin = true) {
  return [&, may_spin](const Assembly& assembly, Iteration last, Observer& observer) {
    train_idle(group, clock, assembly, last, observer, may_spin);
  };
}

// All measure at the same time. Time spent on looking for messages is no cost of theirs.
void measure_processors(ProcessGroup& group, const Clock& clock, const Job& job,
                        const ArithmeticCost& arithmetic, Cluster& cluster) {
  const MessageCost own =
      measured_message_cost(job, arithmetic, aside(group, clock, false), processor_time);
  group.from_leader("", "the start of measuring the cores");
  const auto medians =
      medians_of(group, {to_us(own.startup), own.ns_per_byte, measured_cores(kCoresTime)},
                 "the costs of its processor");
  cluster.sending = cluster.receiving = {from_us(medians[0]), medians[1]};
  cluster.cores = medians[2] * static_cast<double>(cluster.topology.workers_per_host());
}

// Processes that share a machine are its workers, unless there is only one machine.
Topology topology_of(std::size_t processes, std::size_t per_machine) {
  return per_machine == processes ? Topology(processes, 1, 0)
                                  : Topology(processes / per_machine, per_machine, 0);
}

// The times of the sums, fitted by a line that the wire allows, and the doubts about it.
CollectiveFit fit_of(Collective collective, std::vector<Timing> points, double wire) {
  CollectiveFit fit{.collective = collective, .points = std::move(points)};
  fit.line = fit_allreduce(fit.points, wire);
  fit.doubts = doubts_of(MeasuredSums{.collective = fit.name(),
                                      .points = fit.points,
                                      .ns_per_byte = fit_allreduce(fit.points).ns_per_byte,
                                      .wire_ns_per_byte = wire});
  return fit;
}

}  // namespace

Measured measure_cluster(ProcessGroup& group, const std::optional<Survey>& survey,
                         std::size_t per_machine, const Log& log) {
  const Clock clock;
  Measured measured;
  Cluster& cluster = measured.cluster;
  cluster.topology = topology_of(group.size(), per_machine);
  if (survey) {
    measured.network = fit_network(*survey);
    cluster.latency = measured.network.latency;
    cluster.bandwidth_gbps = measured.network.gbps;
    // On faster links the cost of an announcement is too small to measure.
    const bool is_slow =
        per_machine < group.size() && message_size(cluster.link().ns_per_byte, true).eager();
    cluster.fragment_bytes = is_slow ? fragment_bytes(cluster.bandwidth_gbps) : 0;
    for (const auto& info : survey->ranks) {
      measured.hosts.push_back(info->host);
    }
    measured.doubts = doubts_of(measured.network);
  }
  // Processes of one machine have no wire between them.
  const std::size_t machines = group.size() / per_machine;
  const double wire =
      survey && machines > 1 ? wire_ns_per_byte(machines, cluster.bandwidth_gbps) : 0;
  const ArithmeticCost arithmetic = arithmetic_of(group, clock);
  cluster.reduce_ns_per_byte = arithmetic.reduce_ns_per_byte;
  cluster.update_ns_per_byte = arithmetic.update_ns_per_byte;
  cluster.code_ns_per_byte = arithmetic.code_ns_per_byte;
  const nlohmann::json sizes = nlohmann::json::parse(group.from_leader(
      nlohmann::json(sizes_for(cluster.bandwidth_gbps)).dump(), "the sizes of the sums"));
  auto [job, with_mpi] = summing_job(group, per_machine, cluster);
  if (machines > 1) {
    log.info("measuring processor time");
    measure_processors(group, clock, job, arithmetic, cluster);
  }
  for (const auto& [collective, name] : kCollectiveNames) {
    job.strategy.collective = collective;
    if (!check_driver_sums(job.strategy, job.topology) ||
        (job.strategy.driver_sums() && !with_mpi)) {
      continue;
    }
    log.info(fmt::format("measuring all-reduces: {}", name));
    CollectiveFit fit = fit_of(
        collective,
        allreduce_timings(job, sizes.get<std::vector<std::int64_t>>(), aside(group, clock)), wire);
    measured.doubts.insert(measured.doubts.end(), fit.doubts.begin(), fit.doubts.end());
    if (survey && !job.strategy.driver_sums()) {
      fit.theory = collective_cost(load_of(collective, {.size = group.size()}), cluster.link());
    }
    measured.collectives.push_back(std::move(fit));
  }
  return measured;
}

}  // namespace sluice
