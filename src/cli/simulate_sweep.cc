#include "cli/simulate_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file.h"
#include "cli/console.h"
#include "cli/specs.h"
#include "cli/sweep_cells.h"
#include "cli/training_sweep.h"
#include "report/line_chart.h"
#include "report/table.h"
#include "session/record.h"
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
// Likewise of its breakdown.
constexpr std::array kShares{
    "computation_us",
    "local_aggregation_us",
    "global_aggregation_work_us",
    "global_aggregation_wait_us",
    "communication_exposed_us",
    "communication_hidden_us",
};

std::vector<OrderedJson> summaries_of(const std::vector<SweepCell>& cells, std::size_t threads) {
  std::vector<OrderedJson> summaries(cells.size());
  const auto run = [&](std::size_t cell) { summaries[cell] = steady_summary(cells[cell].setup); };
  for_each_cell(cells.size(), threads, run, [&](std::size_t finished) {
    show_cells_done(finished, cells.size(), "simulations");
  });
  return summaries;
}

std::string to_csv(const Sweep& sweep, const std::vector<OrderedJson>& summaries) {
  std::string csv;
  for (const SweepAxis& axis : sweep.axes()) {
    csv += axis.key + ",";
  }
  csv += fmt::format("{},{}\n", fmt::join(kFigures, ","), fmt::join(kShares, ","));
  for (std::size_t cell = 0; cell < summaries.size(); ++cell) {
    csv += fmt::format("{}", fmt::join(sweep.values(cell), ","));
    for (const char* figure : kFigures) {
      csv += fmt::format(",{}", summaries[cell].at(figure).get<double>());
    }
    for (const char* share : kShares) {
      csv += fmt::format(",{}", summaries[cell].at("breakdown").at(share).get<double>());
    }
    csv += "\n";
  }
  return csv;
}

// Iteration times over the first axis of several numbers, with a line for each combination of the
// others; nothing if there is no such axis.
std::optional<LineChart> chart_of(const Sweep& sweep, const std::vector<OrderedJson>& summaries) {
  const auto is_x = [](const SweepAxis& axis) {
    return axis.values.size() > 1 && std::ranges::all_of(axis.values, [](const std::string& text) {
             return number_in(text).value_or(0) > 0;
           });
  };
  const auto x = std::ranges::find_if(sweep.axes(), is_x);
  if (x == sweep.axes().end()) {
    return std::nullopt;
  }
  const auto at = static_cast<std::size_t>(x - sweep.axes().begin());
  LineChart chart{.x_title = x->key, .y_title = "ms per iteration", .lines = {}};
  for (const Sweep::Group& group : sweep.groups_over(x->key)) {
    LineChart::Line line{line_name(sweep.axes_without(x->key), group.values), {}};
    for (const std::size_t cell : group.cells) {
      const double us = summaries[cell].at("iteration_us");
      if (const auto place = number_in(sweep.values(cell)[at])) {
        line.points.emplace_back(*place, std::max(us / 1000, 1e-9));
      }
    }
    std::ranges::sort(line.points);
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

Table table_of(const Sweep& sweep, const std::vector<OrderedJson>& summaries) {
  std::vector<Table::Column> columns = axis_columns(sweep.axes());
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

Result<void> write_sweep(const Sweep& sweep, const std::vector<OrderedJson>& summaries,
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
  return run_sweep(settings, "sweep", [&](const Swept& swept) {
    if (settings.on("json")) {
      print(swept.all);
    } else {
      print(swept.table);
      print(fmt::format("{} in {}\n", swept.files, swept.folder.path().string()));
    }
    return kOk;
  });
}

int run_sweep(const Settings& settings, const std::string& name,
              const std::function<int(const Swept&)>& then) {
  if (const auto alone = settings.refuse(
          {"trace"}, "a sweep simulates many runs without it; leave it out, or --sweep");
      !alone) {
    return bad_input(alone.error());
  }
  const auto sweep = Sweep::parse(settings.text("sweep"));
  if (!sweep) {
    return bad_input(sweep.error().within("--sweep"));
  }
  if (settings.on("train")) {
    return sweep_trainings(settings, *sweep, name, then);
  }
  if (const auto plain = check_plain_simulation(settings); !plain) {
    return bad_input(plain.error());
  }
  const auto cells = sweep_cells(settings, *sweep);
  if (!cells) {
    return bad_input(cells.error());
  }
  const auto folder = open_run_folder(run_folder_spec(settings), name);
  if (!folder) {
    return bad_input(folder.error());
  }
  const auto summaries =
      summaries_of(*cells, static_cast<std::size_t>(settings.integer("threads")));
  const OrderedJson all = sweep_json(*sweep, summaries);
  if (const auto written = write_sweep(*sweep, summaries, all, *folder); !written) {
    return failed(written.error());
  }
  return then({.folder = *folder,
               .all = all,
               .table = table_of(*sweep, summaries).render(),
               .files = "sweep.csv and sweep.svg"});
}

}  // namespace sluice::cli
