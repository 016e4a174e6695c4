#include "cli/simulate_sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file.h"
#include "cli/console.h"
#include "cli/profile_search.h"
#include "cli/simulated_setup.h"
#include "cli/specs.h"
#include "drivers/mpi/launch.h"
#include "report/line_chart.h"
#include "report/table.h"
#include "session/steady_run.h"
#include "session/sweep.h"

namespace sluice::cli {
namespace {

// What of a summary is a column of the CSV file.
constexpr std::array kFigures{
    "iteration_us",
    "compute_us",
    "exposed_communication_us",
    "bound_us",
    "samples_per_s",
    "egress_utilisation",
    "ingress_utilisation",
    "messages_per_iteration",
    "bytes_per_iteration",
    "overtakings_out_per_iteration",
    "overtakings_server_per_iteration",
};

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// As the same text would be read in a TOML file.
Json toml_value(const std::string& text) {
  const auto parsed = parse_toml("value = " + text, "");
  return parsed ? parsed->at("value") : Json(text);
}

// The settings of a cell, and what it changes in the cluster.
Result<SimulatedSetup> setup_of(const Settings& settings, const Sweep& sweep, std::size_t cell) {
  Settings::Flags flags{{"sweep", ""}};
  Json cluster_values = Json::object();
  const std::vector<std::string> values = sweep.values(cell);
  for (std::size_t a = 0; a < values.size(); ++a) {
    const std::string& key = sweep.axes()[a].key;
    if (settings.has(spelled(key))) {
      flags[spelled(key)] = values[a];
    } else {
      cluster_values[key] = toml_value(values[a]);
    }
  }
  auto resolved = settings.with(flags);
  if (!resolved) {
    return resolved.error();
  }
  Settings changed = *std::move(resolved);
  if (const auto located = locate_files(changed); !located) {
    return located.error();
  }
  return simulated_setup(changed, cluster_values);
}

Result<std::vector<SimulatedSetup>> setups_of(const Settings& settings, const Sweep& sweep) {
  std::vector<SimulatedSetup> setups;
  for (std::size_t cell = 0; cell < sweep.cells(); ++cell) {
    auto setup = setup_of(settings, sweep, cell);
    if (!setup) {
      return setup.error().within("--sweep: " + sweep.name(cell));
    }
    setups.push_back(*std::move(setup));
  }
  return setups;
}

// A line that a terminal redraws; elsewhere a line for each tenth.
void show_progress(std::size_t finished, std::size_t cells) {
  const bool ends = finished == cells;
  if (isatty(STDERR_FILENO) != 0) {
    std::cerr << fmt::format("\r{} of {} simulations{}", finished, cells, ends ? "\n" : "")
              << std::flush;
  } else if (ends || finished * 10 / cells != (finished - 1) * 10 / cells) {
    std::cerr << fmt::format("{} of {} simulations\n", finished, cells);
  }
}

std::vector<OrderedJson> summaries_of(const std::vector<SimulatedSetup>& setups,
                                      std::size_t threads) {
  std::vector<OrderedJson> summaries(setups.size());
  const auto run = [&](std::size_t cell) {
    const SimulatedSetup& setup = setups[cell];
    Record record;
    summaries[cell] = simulate_steadily({.job = setup.job,
                                         .profile = setup.profile,
                                         .cluster = setup.cluster,
                                         .preset = setup.preset,
                                         .iterations = setup.iterations},
                                        record)
                          .summary;
  };
  for_each_cell(setups.size(), threads, run,
                [&](std::size_t finished) { show_progress(finished, setups.size()); });
  return summaries;
}

std::string to_csv(const Sweep& sweep, const std::vector<OrderedJson>& summaries) {
  std::string csv;
  for (const SweepAxis& axis : sweep.axes()) {
    csv += axis.key + ",";
  }
  for (const char* figure : kFigures) {
    csv += fmt::format("{}{}", figure, figure == kFigures.back() ? "\n" : ",");
  }
  for (std::size_t cell = 0; cell < summaries.size(); ++cell) {
    for (const std::string& value : sweep.values(cell)) {
      csv += value + ",";
    }
    for (const char* figure : kFigures) {
      csv += fmt::format("{}{}", summaries[cell].at(figure).get<double>(),
                         figure == kFigures.back() ? "\n" : ",");
    }
  }
  return csv;
}

// Iteration times over the first axis of several numbers, with a line for each combination of the
// others; nothing if there is no such axis.
std::optional<LineChart> chart_of(const Sweep& sweep, const std::vector<OrderedJson>& summaries) {
  const auto& axes = sweep.axes();
  const auto is_x = [](const SweepAxis& axis) {
    return axis.values.size() > 1 && std::ranges::all_of(axis.values, [](const std::string& text) {
             return number(text).value_or(0) > 0;
           });
  };
  const auto found = std::ranges::find_if(axes, is_x);
  if (found == axes.end()) {
    return std::nullopt;
  }
  const auto x = static_cast<std::size_t>(found - axes.begin());
  LineChart chart{.x_title = found->key, .y_title = "ms per iteration", .lines = {}};
  for (std::size_t cell = 0; cell < summaries.size(); ++cell) {
    const std::vector<std::string> values = sweep.values(cell);
    std::string name;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (a != x) {
        name += fmt::format("{}{}", name.empty() ? "" : ", ",
                            number(values[a]) ? axes[a].key + " " + values[a] : values[a]);
      }
    }
    const double us = summaries[cell].at("iteration_us");
    auto line = std::ranges::find(chart.lines, name, &LineChart::Line::name);
    if (line == chart.lines.end()) {
      line = chart.lines.insert(chart.lines.end(), {.name = name, .points = {}});
    }
    line->points.emplace_back(*number(values[x]), std::max(us / 1000, 1e-9));
  }
  for (LineChart::Line& line : chart.lines) {
    std::ranges::sort(line.points);
  }
  return chart;
}

Table table_of(const Sweep& sweep, const std::vector<OrderedJson>& summaries) {
  std::vector<Table::Column> columns;
  for (const SweepAxis& axis : sweep.axes()) {
    const bool numbers =
        std::ranges::all_of(axis.values, [](const auto& text) { return number(text).has_value(); });
    columns.push_back({axis.key, numbers ? Table::Align::kRight : Table::Align::kLeft});
  }
  for (const char* title : {"iteration, ms", "of it exposed", "bound, ms", "samples/s", "out"}) {
    columns.push_back({title, Table::Align::kRight});
  }
  Table table(columns);
  for (std::size_t cell = 0; cell < summaries.size(); ++cell) {
    const OrderedJson& summary = summaries[cell];
    const auto figure = [&](const char* key) { return summary.at(key).get<double>(); };
    std::vector<std::string> row = sweep.values(cell);
    row.push_back(fmt::format("{:.3f}", figure("iteration_us") / 1000));
    row.push_back(fmt::format("{:.3f}", figure("exposed_communication_us") / 1000));
    row.push_back(fmt::format("{:.3f}", figure("bound_us") / 1000));
    row.push_back(fmt::format("{:.1f}", figure("samples_per_s")));
    row.push_back(fmt::format("{:.1f} %", 100 * figure("egress_utilisation")));
    table.add_row(std::move(row));
  }
  return table;
}

OrderedJson to_json(const Sweep& sweep, const std::vector<OrderedJson>& summaries) {
  OrderedJson cells = OrderedJson::array();
  for (std::size_t cell = 0; cell < summaries.size(); ++cell) {
    OrderedJson values;
    const std::vector<std::string> chosen = sweep.values(cell);
    for (std::size_t a = 0; a < chosen.size(); ++a) {
      values[sweep.axes()[a].key] = chosen[a];
    }
    cells.push_back({{"values", values}, {"summary", summaries[cell]}});
  }
  return {{"cells", cells}};
}

Result<void> write_files(const Sweep& sweep, const std::vector<OrderedJson>& summaries,
                         const OrderedJson& all, const RunFolder& folder) {
  if (auto written = folder.write_summary(all); !written) {
    return written;
  }
  if (auto written = write_file(folder.file("sweep.csv"), to_csv(sweep, summaries)); !written) {
    return written;
  }
  const auto chart = chart_of(sweep, summaries);
  return chart ? write_file(folder.file("sweep.svg"), to_svg(*chart)) : Result<void>();
}

}  // namespace

void sweep_over_presets(Settings::Flags& flags) {
  const auto preset = flags.find("preset");
  if (preset != flags.end() && preset->second.find(',') != std::string::npos) {
    std::string& sweep = flags["sweep"];
    sweep = "preset=" + preset->second + (sweep.empty() ? "" : " ") + sweep;
    flags.erase(preset);
  }
}

int simulate_sweep(const Settings& settings) {
  if (const auto alone = settings.refuse(
          {"train", "trace"}, "a sweep simulates many runs without it; leave it out, or --sweep");
      !alone) {
    return bad_input(alone.error());
  }
  if (const auto plain = check_plain_simulation(settings); !plain) {
    return bad_input(plain.error());
  }
  const auto sweep = Sweep::parse(settings.text("sweep"));
  if (!sweep) {
    return bad_input(sweep.error().within("--sweep"));
  }
  const auto setups = setups_of(settings, *sweep);
  if (!setups) {
    return bad_input(setups.error());
  }
  const auto folder = open_run_folder(run_folder_spec(settings), "sweep");
  if (!folder) {
    return bad_input(folder.error());
  }
  const auto summaries =
      summaries_of(*setups, static_cast<std::size_t>(settings.integer("threads")));
  const OrderedJson all = to_json(*sweep, summaries);
  if (const auto written = write_files(*sweep, summaries, all, *folder); !written) {
    return failed(written.error());
  }
  if (settings.on("json")) {
    print(all);
    return kOk;
  }
  print(table_of(*sweep, summaries).render());
  print(fmt::format("sweep.csv and sweep.svg in {}\n", folder->path().string()));
  return kOk;
}

}  // namespace sluice::cli
