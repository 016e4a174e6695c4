#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/report.h"
#include "cli/simulate_faults.h"
#include "cli/simulate_sweep.h"
#include "cli/simulate_training.h"
#include "cli/simulated_setup.h"
#include "cli/specs.h"
#include "drivers/processes/launch.h"
#include "report/table.h"
#include "session/merging.h"
#include "session/record.h"
#include "session/steady_run.h"

namespace sluice::cli {
namespace {

// A row for each counted iteration, numbered as in the trace, where the warm-up comes first.
Result<void> write_metrics(const SimulationReport& report, RunFolder& folder) {
  const std::vector<Time>& starts = report.starts;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const OrderedJson row{{"iteration", static_cast<Iteration>(i) + report.first},
                          {"start_us", to_us(starts[i])},
                          {"length_us", to_us(starts[i + 1] - starts[i])}};
    if (auto written = folder.append_metrics(row); !written) {
      return written;
    }
  }
  return {};
}

void print_simulation(const OrderedJson& summary) {
  const auto ms = [&](const char* key) {
    return fmt::format("{:.3f} ms", summary[key].get<double>() / 1000);
  };
  const auto percent = [&](const char* key) {
    return fmt::format("{:.1f} %", summary[key].get<double>() * 100);
  };
  const auto number = [&](const char* key, int decimals) {
    return fmt::format("{:.{}f}", summary[key].get<double>(), decimals);
  };
  Table table({{""}, {"", Table::Align::kRight}});
  table.add_row({"preset", summary["preset"]});
  table.add_row({"iteration", ms("iteration_us")});
  table.add_row({"  of it compute", ms("compute_us")});
  table.add_row({"  exposed communication", ms("exposed_communication_us")});
  table.add_row({"lower bound", ms("bound_us")});
  table.add_row({"samples/s", number("samples_per_s", 1)});
  table.add_row({"network out", percent("egress_utilisation")});
  table.add_row({"network in", percent("ingress_utilisation")});
  table.add_row({"messages per iteration", number("messages_per_iteration", 0)});
  table.add_row({"bytes per iteration", number("bytes_per_iteration", 0)});
  table.add_row({"overtakings per iteration, out / in the server",
                 number("overtakings_out_per_iteration", 1) + " / " +
                     number("overtakings_server_per_iteration", 1)});
  table.add_row(
      {"communication hidden",
       fmt::format("{:.1f} %", summary["mechanism"]["hidden_share"].get<double>() * 100)});
  if (summary.contains("merging")) {
    add_rows(summary["merging"], table);
  }
  if (summary.contains("faults")) {
    add_fault_rows(summary["faults"], table);
  }
  print(table.render());
}

// Only if the user asks for it, by its name or by a trace in it.
Result<Record> record_for(const Settings& settings, const Profile& profile) {
  if (settings.text("run").empty() && settings.text("trace") != "auto") {
    return Record::without_folder(record_spec(settings));
  }
  const auto spec = record_spec(settings, {{.key = "profile", .name = "profile.json"},
                                           {.key = "cluster", .name = "cluster.toml"}});
  if (!spec) {
    return spec.error();
  }
  return Record::open(*spec, "simulate-" + settings.text("preset") + "-" + profile.name);
}

}  // namespace

int simulate(const Settings& settings) {
  if (const auto valid = check_fault_settings(settings); !valid) {
    return bad_input(valid.error());
  }
  if (!settings.text("sweep").empty()) {
    return simulate_sweep(settings);
  }
  if (const auto alone =
          settings.refuse({"times-at"}, "is for the trainings of a sweep; add --sweep");
      !alone) {
    return bad_input(alone.error());
  }
  auto prepared = simulated_setup(settings);
  if (!prepared) {
    return bad_input(prepared.error());
  }
  const SimulatedSetup setup = *std::move(prepared);
  for (const std::string& note : setup.notes) {
    spdlog::info(note);
  }
  if (settings.on("train")) {
    return simulate_training(settings, setup);
  }
  if (const auto plain = check_plain_simulation(settings); !plain) {
    return bad_input(plain.error());
  }
  const auto faults = fault_costs(settings, setup);
  if (!faults) {
    return bad_input(faults.error());
  }
  auto opened = record_for(settings, setup.profile);
  if (!opened) {
    return bad_input(opened.error());
  }
  Record record = *std::move(opened);
  SimulationReport report = simulate_steadily({.job = setup.job,
                                               .profile = setup.profile,
                                               .cluster = setup.cluster,
                                               .preset = setup.preset,
                                               .iterations = setup.iterations,
                                               .slowdowns = setup.slowdowns},
                                              record);
  if (setup.codec_choice) {
    report.summary["codec_choice"] = to_json(*setup.codec_choice);
  }
  if (*faults) {
    report.summary["faults"] = **faults;
  }
  if (record.has_folder()) {
    if (const auto written = write_metrics(report, record.folder()); !written) {
      return failed(written.error());
    }
  }
  if (const auto closed = record.close(report.summary, {host_name()}); !closed) {
    return failed(closed.error());
  }
  const std::string page = record.has_folder() ? report_of(record.folder().path()) : "";
  if (settings.on("json")) {
    print(report.summary);
    return kOk;
  }
  print_simulation(report.summary);
  if (!page.empty()) {
    print(fmt::format("report in {}\n", page));
  }
  return kOk;
}

}  // namespace sluice::cli
