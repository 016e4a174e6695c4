#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/median.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/network.h"
#include "cli/specs.h"
#include "collectives/cost.h"
#include "drivers/mpi/launch.h"
#include "nodes/presets.h"
#include "planner/allreduce_cost.h"
#include "planner/arithmetic_cost.h"
#include "planner/measurement_doubts.h"
#include "planner/network_fit.h"
#include "report/table.h"
#include "session/training.h"

namespace sluice::cli {
namespace {

constexpr SurveySpec kCloseLook{.enough = std::chrono::milliseconds(100), .repetitions = 5};

struct CollectiveFit {
  Collective collective;
  std::vector<Timing> points;
  AllReduceCost line = {};
  std::optional<AllReduceCost> theory = {};  // the closed form of alpha, beta and gamma
  std::vector<std::string> doubts = {};

  std::string name() const { return std::string(name_of(kCollectiveNames, collective)); }
  double mean_error() const;
  double worst_error() const;
};

struct Measured {
  std::vector<std::string> hosts;
  NetworkFit network;
  std::vector<CollectiveFit> collectives;
  Cluster cluster;
  std::vector<std::string> doubts;  // why the measurements may be wrong
};

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

// The load average of the last minute; 0 if the system does not report it.
double load_of_machine() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0.0;
}

// The loads of all machines of the group, on the leader.
std::vector<MachineLoad> loads_of(ProcessGroup& group, double own_load) {
  const OrderedJson self{host_name(), own_load, std::thread::hardware_concurrency()};
  std::map<std::string, MachineLoad> machines;
  for (const std::string& text : group.to_leader(self.dump(), "the load of its machine")) {
    const OrderedJson member = OrderedJson::parse(text);
    MachineLoad& machine = machines[member.at(0)];
    machine.processes += machine.host.empty() ? 0 : 1;
    machine.host = member.at(0);
    machine.load = member.at(1);
    machine.cores = std::max<std::size_t>(member.at(2).get<std::size_t>(), 1);
  }
  std::vector<MachineLoad> loads;
  for (const auto& [host, machine] : machines) {
    loads.push_back(machine);
  }
  return loads;
}

// Every process measures its own; the leader gets the median of all.
ArithmeticCost arithmetic_of(ProcessGroup& group, const Clock& clock) {
  const ArithmeticCost own = measured_arithmetic([&] { return clock.now(); });
  const OrderedJson self{own.reduce_ns_per_byte, own.update_ns_per_byte, own.code_ns_per_byte};
  std::vector<double> reduce;
  std::vector<double> update;
  std::vector<double> code;
  for (const std::string& text : group.to_leader(self.dump(), "the time of its arithmetic")) {
    const OrderedJson costs = OrderedJson::parse(text);
    reduce.push_back(costs.at(0));
    update.push_back(costs.at(1));
    code.push_back(costs.at(2));
  }
  return group.is_leader() ? ArithmeticCost{median_of(reduce), median_of(update), median_of(code)}
                           : own;
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

// All-reduces of whole models; as in train, every process is a host.
Job summing_job(ProcessGroup& group, std::size_t per_machine) {
  Job job;
  job.topology = Topology(group.size(), 1, 0, per_machine);
  job.strategy = find_preset("single")->strategy;
  group.tune(job, {});
  return job;
}

std::vector<Timing> timings_of(ProcessGroup& group, const Clock& clock, const Job& job,
                               std::span<const std::int64_t> sizes) {
  return allreduce_timings(job, sizes,
                           [&](const Assembly& assembly, Iteration last, Observer& observer) {
                             train_idle(group, clock, assembly, last, observer);
                           });
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

// Some results are known only to the leader; the others do without.
Measured measure(ProcessGroup& group, const std::optional<Survey>& survey,
                 std::size_t per_machine) {
  const Clock clock;
  Measured measured;
  Cluster& cluster = measured.cluster;
  cluster.topology = topology_of(group.size(), per_machine);
  if (survey) {
    measured.network = fit_network(*survey);
    cluster.latency = measured.network.latency;
    cluster.bandwidth_gbps = measured.network.gbps;
    // On faster links the cost of an announcement is too small to measure.
    const bool is_slow = per_machine < group.size() && cluster.bandwidth_gbps < kSlowGbps;
    cluster.fragment_bytes = is_slow ? fragment_bytes(cluster.bandwidth_gbps) : 0;
    for (const auto& member : survey->members) {
      measured.hosts.push_back(member->host);
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
  const OrderedJson sizes = OrderedJson::parse(group.from_leader(
      OrderedJson(sizes_for(cluster.bandwidth_gbps)).dump(), "the sizes of the sums"));
  Job job = summing_job(group, per_machine);
  for (const auto& [collective, name] : kCollectiveNames) {
    job.strategy.collective = collective;
    if (!check_driver_sums(job.strategy, job.topology)) {
      continue;
    }
    spdlog::info("measuring all-reduces: {}", name);
    CollectiveFit fit = fit_of(
        collective, timings_of(group, clock, job, sizes.get<std::vector<std::int64_t>>()), wire);
    measured.doubts.insert(measured.doubts.end(), fit.doubts.begin(), fit.doubts.end());
    if (survey && !job.strategy.driver_sums()) {
      fit.theory = collective_cost(load_of(collective, {.size = group.size()}), cluster.link());
    }
    measured.collectives.push_back(std::move(fit));
  }
  return measured;
}

OrderedJson points_beside(const AllReduceCost& line, const std::vector<Timing>& points) {
  OrderedJson rows = OrderedJson::array();
  for (const Timing& point : points) {
    rows.push_back({{"bytes", point.bytes},
                    {"median_us", to_us(point.median)},
                    {"min_us", to_us(point.min)},
                    {"max_us", to_us(point.max)},
                    {"interquartile_range_us", to_us(point.spread)},
                    {"fitted_us", to_us(line.time(point.bytes))},
                    {"error", relative_error(line, point)}});
  }
  return rows;
}

OrderedJson summarise(const Measured& measured, const std::string& out) {
  const Cluster& cluster = measured.cluster;
  OrderedJson links = OrderedJson::array();
  for (const Link& link : measured.network.links) {
    links.push_back(to_json(link));
  }
  OrderedJson collectives = OrderedJson::array();
  for (const CollectiveFit& fit : measured.collectives) {
    const auto& theory = fit.theory;
    collectives.push_back(
        {{"collective", fit.name()},
         {"startup_us", to_us(fit.line.startup)},
         {"ns_per_byte", fit.line.ns_per_byte},
         {"mean_error", fit.mean_error()},
         {"worst_error", fit.worst_error()},
         {"theory_startup_us", theory ? OrderedJson(to_us(theory->startup)) : OrderedJson()},
         {"theory_ns_per_byte", theory ? OrderedJson(theory->ns_per_byte) : OrderedJson()},
         {"points", points_beside(fit.line, fit.points)}});
  }
  return {{"hosts", measured.hosts},
          {"latency_us", to_us(cluster.latency)},
          {"bandwidth_gbps", cluster.bandwidth_gbps},
          {"reduce_ns_per_byte", cluster.reduce_ns_per_byte},
          {"update_ns_per_byte", cluster.update_ns_per_byte},
          {"code_ns_per_byte", cluster.code_ns_per_byte},
          {"links", links},
          {"points", points_beside(measured.network.line(), measured.network.points)},
          {"collectives", collectives},
          {"warnings", measured.doubts},
          {"out", out}};
}

void add_points(Table& table, const std::string& what, const OrderedJson& points) {
  for (const OrderedJson& point : points) {
    const auto us = [&](const char* key) {
      return fmt::format("{:.1f}", point[key].get<double>());
    };
    table.add_row({what, fmt::format("{}", point["bytes"].get<Bytes>()), us("median_us"),
                   us("min_us"), us("max_us"), us("fitted_us"),
                   fmt::format("{:+.0f} %", 100 * point["error"].get<double>())});
  }
}

void print_tables(const OrderedJson& summary) {
  constexpr auto kRight = Table::Align::kRight;
  Table points({{""},
                {"bytes", kRight},
                {"median us", kRight},
                {"least", kRight},
                {"most", kRight},
                {"fitted", kRight},
                {"error", kRight}});
  add_points(points, "message and answer", summary["points"]);
  Table lines({{"all-reduce"},
               {"a us", kRight},
               {"b ns/B", kRight},
               {"mean error", kRight},
               {"worst", kRight},
               {"a by alpha", kRight},
               {"b by beta, gamma", kRight}});
  for (const OrderedJson& fit : summary["collectives"]) {
    const auto number = [&](const char* key) {
      return fit[key].is_null() ? "" : fmt::format("{:.4g}", fit[key].get<double>());
    };
    const auto percent = [&](const char* key) {
      return fmt::format("{:.0f} %", 100 * fit[key].get<double>());
    };
    add_points(points, fit["collective"], fit["points"]);
    lines.add_row({fit["collective"], number("startup_us"), number("ns_per_byte"),
                   percent("mean_error"), percent("worst_error"), number("theory_startup_us"),
                   number("theory_ns_per_byte")});
  }
  Table machine({{""}, {"", kRight}});
  for (const auto& [key, unit] :
       {std::pair{"latency_us", "us"}, std::pair{"bandwidth_gbps", "Gb/s"},
        std::pair{"reduce_ns_per_byte", "ns/B"}, std::pair{"update_ns_per_byte", "ns/B"},
        std::pair{"code_ns_per_byte", "ns/B"}}) {
    machine.add_row({key, fmt::format("{:.4g} {}", summary[key].get<double>(), unit)});
  }
  print(points.render() + "\n" + lines.render() + "\n" + machine.render());
  print(fmt::format("cluster in {}\n", summary["out"].get<std::string>()));
}

std::string file_of(const Measured& measured, const std::string& replacement) {
  const std::set<std::string> hosts(measured.hosts.begin(), measured.hosts.end());
  Cluster cluster = measured.cluster;
  std::string doubts;
  for (const std::string& doubt : measured.doubts) {
    doubts += fmt::format("# Warning: {}.\n", one_line(doubt));
  }
  std::string comments;
  for (const CollectiveFit& fit : measured.collectives) {
    if (fit.name() == replacement) {
      cluster.allreduce = fit.line;
    }
    comments += fmt::format("#   {}: startup_us = {:.6g}, ns_per_byte = {:.6g}\n", fit.name(),
                            to_us(fit.line.startup), fit.line.ns_per_byte);
  }
  return fmt::format(
      "# Measured by sluice probe with {} processes on {}.\n{}"
      "# All-reduces took, by collective, as an [allreduce] table in place of the network:\n"
      "{}{}",
      measured.hosts.size(), fmt::join(hosts, ", "), doubts, comments, to_toml(cluster));
}

int probe(ProcessGroup& group, const Settings& settings) {
  const double load = load_of_machine();
  spdlog::info("measuring the links between {} processes", group.size());
  const auto survey = group.survey(kCloseLook);
  if (survey && !survey->silent.empty()) {
    const auto [a, b] = survey->silent.front();
    failed(
        Error(fmt::format("{} and {} do not hear each other; sluice doctor --net, started the "
                          "same way, tells more",
                          survey->name(a), survey->name(b))));
    give_up(group);
  }
  const std::string out = settings.text("out");
  const auto roster = check_in(group, agreement_of(settings),
                               group.is_leader() ? check_writable(out) : Result<void>());
  if (!roster) {
    return group.is_leader() ? bad_input(roster.error()) : kBadInput;
  }
  spdlog::info("{}", text_of(*roster));
  const std::string replacement = settings.text("allreduce");
  if (replacement == name_of(kCollectiveNames, Collective::kSharedMemory) &&
      roster->per_machine != group.size()) {
    const Error error(
        "--allreduce: the processes are on several machines, which cannot share memory");
    return group.is_leader() ? bad_input(error) : kBadInput;
  }
  Measured measured = measure(group, survey, roster->per_machine);
  const std::vector<std::string> busy = doubts_of(loads_of(group, load));
  int code = kOk;
  if (group.is_leader()) {
    measured.doubts.insert(measured.doubts.begin(), busy.begin(), busy.end());
    for (const std::string& doubt : measured.doubts) {
      spdlog::warn(doubt);
    }
    const OrderedJson summary = summarise(measured, out);
    const auto written = write_file(out, file_of(measured, replacement));
    if (settings.on("json")) {
      print(summary);
    } else {
      print_tables(summary);
    }
    code = written ? kOk : failed(written.error());
  }
  return std::stoi(group.from_leader(std::to_string(code), "the end of the probe"));
}

}  // namespace

int probe(const Settings& settings) {
  const auto group = join_network("probe --out cluster.toml");
  if (!group) {
    return bad_input(group.error());
  }
  return run_in(**group, [&] { return probe(**group, settings); });
}

}  // namespace sluice::cli
