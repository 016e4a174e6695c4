#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/network.h"
#include "cli/specs.h"
#include "drivers/processes/launch.h"
#include "planner/allreduce_cost.h"
#include "planner/measurement_doubts.h"
#include "report/line_chart.h"
#include "report/table.h"
#include "session/probing.h"

namespace sluice::cli {
namespace {

constexpr SurveySpec kCloseLook{.enough = std::chrono::milliseconds(100), .repetitions = 5};

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
    const OrderedJson report = OrderedJson::parse(text);
    MachineLoad& machine = machines[report.at(0)];
    machine.processes += machine.host.empty() ? 0 : 1;
    machine.host = report.at(0);
    machine.load = report.at(1);
    machine.cores = std::max<std::size_t>(report.at(2).get<std::size_t>(), 1);
  }
  std::vector<MachineLoad> loads;
  for (const auto& [host, machine] : machines) {
    loads.push_back(machine);
  }
  return loads;
}

OrderedJson points_beside(const AllReduceCost& line, const std::vector<Timing>& points) {
  OrderedJson rows = OrderedJson::array();
  for (const Timing& point : points) {
    rows.push_back({{"bytes", point.bytes},
                    {"median_us", to_us(point.median)},
                    {"min_us", to_us(point.min)},
                    {"max_us", to_us(point.max)},
                    {"interquartile_range_us", to_us(point.interquartile_range)},
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
          {"message_us", to_us(cluster.sending.startup)},
          {"message_ns_per_byte", cluster.sending.ns_per_byte},
          {"cores", cluster.cores},
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
        std::pair{"code_ns_per_byte", "ns/B"}, std::pair{"message_us", "us"},
        std::pair{"message_ns_per_byte", "ns/B"}, std::pair{"cores", ""}}) {
    machine.add_row({key, fmt::format("{:.4g} {}", summary[key].get<double>(), unit)});
  }
  print(points.render() + "\n" + lines.render() + "\n" + machine.render());
  print(fmt::format("cluster in {}, its all-reduces as a picture beside it\n",
                    summary["out"].get<std::string>()));
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

// The times of all-reduces by their length, each beside its line a + b*M (MG-WFBP, Figure 5b).
LineChart allreduce_picture(const Measured& measured) {
  LineChart chart{.x_title = "bytes", .y_title = "us per all-reduce", .lines = {}};
  for (const CollectiveFit& fit : measured.collectives) {
    LineChart::Line medians{.name = fit.name(), .points = {}};
    LineChart::Line fitted{.name = fit.name() + ", a + b M", .points = {}};
    for (const Timing& point : fit.points) {
      const auto bytes = static_cast<double>(point.bytes);
      medians.points.emplace_back(bytes, to_us(point.median));
      fitted.points.emplace_back(bytes, to_us(fit.line.time(point.bytes)));
    }
    chart.lines.push_back(std::move(medians));
    chart.lines.push_back(std::move(fitted));
  }
  return chart;
}

Result<void> write_measured(const Measured& measured, const std::string& replacement,
                            const std::string& out) {
  if (auto written = write_file(out, file_of(measured, replacement)); !written) {
    return written;
  }
  const auto picture = std::filesystem::path(out).replace_extension(".svg");
  return write_file(picture.string(), to_svg(allreduce_picture(measured)));
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
  Measured measured = measure_cluster(group, survey, roster->per_machine, session_log());
  const std::vector<std::string> busy = doubts_of(loads_of(group, load));
  int code = kOk;
  if (group.is_leader()) {
    measured.doubts.insert(measured.doubts.begin(), busy.begin(), busy.end());
    for (const std::string& doubt : measured.doubts) {
      spdlog::warn(doubt);
    }
    const OrderedJson summary = summarise(measured, out);
    const auto written = write_measured(measured, replacement, out);
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
