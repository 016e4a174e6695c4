#include "lab/lab.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/report.h"
#include "cli/specs.h"
#include "drivers/mpi/mpi_world.h"
#include "drivers/processes/launch.h"
#include "session/record.h"

namespace sluice::cli {
namespace {

// The hosts and their links, by the flags or by a cluster's file.
Result<lab::Spec> hosts_of(const Settings& settings) {
  if (settings.text("cluster").empty()) {
    auto rates = lab::parse_rates(static_cast<std::size_t>(settings.integer("hosts")),
                                  settings.text("rate"), settings.text("rate-of"));
    if (!rates) {
      return rates.error();
    }
    return lab::Spec{.rates = *std::move(rates), .workers_per_host = 1, .command = {}};
  }
  if (const auto plain = settings.refuse({"hosts", "rate", "rate-of"},
                                         "the cluster's file has the hosts; leave one out");
      !plain) {
    return plain.error();
  }
  const auto cluster = read_cluster(settings.path("cluster"));
  if (!cluster) {
    return cluster.error();
  }
  auto spec = lab::spec_of(*cluster);
  return spec ? spec : spec.error().within(settings.text("cluster"));
}

Result<lab::Spec> spec_of(const Settings& settings, const std::vector<std::string>& command) {
  if (command.empty()) {
    return Error("lab: expected a command after --, such as: sluice lab -- hostname");
  }
  auto hosts = hosts_of(settings);
  if (!hosts) {
    return hosts.error();
  }
  lab::Spec spec = *std::move(hosts);
  if (settings.text("cluster").empty() || settings.is_chosen("workers-per-host")) {
    spec.workers_per_host = static_cast<std::size_t>(settings.integer("workers-per-host"));
  }
  spec.command = command;
  spec.on_head = settings.text("on") == "head";
  if (const std::string user = settings.text("user"); !user.empty()) {
    const auto account = lab::find_account(user);
    if (!account) {
      return account.error().within("--user");
    }
    spec.account = *account;
  }
  if (const auto missing = lab::missing(); !missing.empty()) {
    return Error(fmt::format("lab: this machine lacks {}", fmt::join(missing, ", and ")));
  }
  return spec;
}

OrderedJson summarise(const lab::Spec& spec, const lab::Outcome& outcome) {
  OrderedJson hosts = OrderedJson::array();
  for (std::size_t h = 0; h < spec.rates.size(); ++h) {
    const lab::Traffic traffic = h < outcome.traffic.size() ? outcome.traffic[h] : lab::Traffic{};
    hosts.push_back(
        {{"rate_bits_per_s", spec.rates[h] ? OrderedJson(*spec.rates[h]) : OrderedJson()},
         {"rx_bytes", traffic.rx},
         {"tx_bytes", traffic.tx}});
  }
  return {{"command", spec.command},
          {"workers_per_host", spec.workers_per_host},
          {"exit_code", outcome.exit_code},
          {"ran_s", to_seconds(outcome.ran)},
          {"hosts", hosts}};
}

}  // namespace

int lab(const Settings& settings, const std::vector<std::string>& command) {
  const auto spec = spec_of(settings, command);
  if (!spec) {
    return bad_input(spec.error());
  }
  const auto folder = open_run_folder(run_folder_spec(settings), "lab");
  if (!folder) {
    return bad_input(folder.error());
  }
  if (const std::string library = mpi_info().library; misfit(Pmi::kPmix, library)) {
    spdlog::warn(
        "a lab starts its processes with Open MPI's mpirun, but this sluice was built with {}: in "
        "the lab its processes will not find each other; build it with Open MPI for that",
        library);
  }
  const std::time_t started = std::time(nullptr);
  const std::string path = folder->file("utilisation.csv");
  std::ofstream samples(path);
  const auto outcome = lab::run(*spec, samples);
  if (!outcome) {
    const bool delays = outcome.error().message().find("netem") != std::string::npos;
    return failed(Error(outcome.error().message() +
                        (delays ? "; latency_us of a host needs netem, the kernel's module "
                                  "sch_netem: load it, or leave latency_us out of the file"
                                : ""))
                      .within("lab"));
  }
  samples.close();
  if (!samples) {
    return failed(Error(path + ": cannot be written; is the disk full?"));
  }
  OrderedJson summary = summarise(*spec, *outcome);
  summary["run"] = run_of(settings.command_line(), started, {sluice::host_name()});
  if (const auto written = folder->write_summary(summary); !written) {
    return failed(written.error());
  }
  spdlog::info("traffic of the hosts' links, every 10 ms: {}; report in {}", path,
               report_of(folder->path()));
  return outcome->exit_code;
}

}  // namespace sluice::cli
