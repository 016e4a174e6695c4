#include "cli/simulate_faults.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "session/fault_costs.h"

namespace sluice::cli {
namespace {

// From text like 500it.
Result<Iteration> interval_of(const std::string& text) {
  Iteration iterations = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, iterations);
  if (error != std::errc() || iterations < 1 || std::string(unit, end) != "it") {
    return Error("--checkpoint-every: is " + text +
                 ", expected a number of iterations such as 500it");
  }
  return iterations;
}

}  // namespace

Result<void> check_fault_settings(const Settings& settings) {
  if (settings.on("train") || !settings.text("sweep").empty()) {
    return settings.refuse({"faults", "fault-seed", "checkpoint-every"},
                           "is for one simulation without a training; leave it out, or --train "
                           "and --sweep");
  }
  if (settings.text("faults").empty() && settings.integer("fault-seed") == 0) {
    return settings.refuse({"checkpoint-every"}, "is for --faults and --fault-seed");
  }
  return {};
}

Result<std::optional<nlohmann::ordered_json>> fault_costs(const Settings& settings,
                                                          const SimulatedSetup& setup) {
  const std::string file = settings.text("faults");
  const auto seed = static_cast<std::uint64_t>(settings.integer("fault-seed"));
  if (file.empty() && seed == 0) {
    return std::optional<nlohmann::ordered_json>();
  }
  if (setup.cluster.allreduce) {
    return Error(
        "--faults, --fault-seed: the cluster's [allreduce] table has neither hosts nor "
        "links that could fail; give bandwidth_gbps instead");
  }
  const auto every = interval_of(settings.text("checkpoint-every"));
  if (!every) {
    return every.error();
  }
  auto faults =
      file.empty() ? Result<Faults>(Faults()) : read_faults(file, setup.cluster.topology.hosts());
  if (!faults) {
    return faults.error();
  }
  FaultyRun run{.job = setup.job,
                .profile = setup.profile,
                .cluster = setup.cluster,
                .iterations = setup.iterations,
                .slowdowns = setup.slowdowns,
                .faults = *std::move(faults),
                .seed = seed == 0 ? 1 : seed,
                .checkpoint_every = *every};
  auto costs = costs_of_faults(std::move(run));
  if (!costs) {
    return costs.error();
  }
  return std::optional(*std::move(costs));
}

void add_fault_rows(const nlohmann::ordered_json& costs, Table& table) {
  const auto number = [&](const char* key) { return costs[key].get<double>(); };
  table.add_row({"faults", fmt::format("{:.0f}", number("faults"))});
  table.add_row({"  time with them, without",
                 fmt::format("{:.3f} s, {:.3f} s", number("total_s"), number("calm_s"))});
  table.add_row({"  time lost", fmt::format("{:.3f} s", number("time_lost_s"))});
  table.add_row({"  iterations of workers lost", fmt::format("{:.0f}", number("iterations_lost"))});
  table.add_row({"  restarts, checkpoints",
                 fmt::format("{:.0f}, {:.0f}", number("restarts"), number("checkpoints"))});
}

}  // namespace sluice::cli
