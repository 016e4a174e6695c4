#include "cli/sweep_cells.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "cli/profile_search.h"

namespace sluice::cli {
namespace {

// As the same text would be read in a TOML file.
Json toml_value(const std::string& text) {
  const auto parsed = parse_toml("value = " + text, "");
  return parsed ? parsed->at("value") : Json(text);
}

// The settings of a cell, and what it changes in the cluster.
Result<SweepCell> cell_of(const Settings& settings, const Sweep& sweep, std::size_t cell) {
  Settings::Flags flags{{"sweep", ""}};
  Json cluster_values = Json::object();
  const std::vector<std::string>& values = sweep.values(cell);
  for (std::size_t a = 0; a < values.size(); ++a) {
    const std::string& key = sweep.axes()[a].key;
    if (values[a].empty()) {
      continue;  // a table without this axis
    }
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
  auto setup = simulated_setup(changed, cluster_values);
  if (!setup) {
    return setup.error();
  }
  return SweepCell{.settings = std::move(changed), .setup = *std::move(setup)};
}

}  // namespace

Result<std::vector<SweepCell>> sweep_cells(const Settings& settings, const Sweep& sweep) {
  std::vector<SweepCell> cells;
  for (std::size_t c = 0; c < sweep.cells(); ++c) {
    auto cell = cell_of(settings, sweep, c);
    if (!cell) {
      return cell.error().within("--sweep: " + sweep.name(c));
    }
    cells.push_back(*std::move(cell));
  }
  return cells;
}

void show_cells_done(std::size_t finished, std::size_t cells, const char* noun) {
  const bool ends = finished == cells;
  if (isatty(STDERR_FILENO) != 0) {
    constexpr std::size_t kWidth = 30;
    const std::size_t full = finished * kWidth / cells;
    std::cerr << fmt::format("\r[{:#<{}}{:{}}] {} of {} {}{}", "", full, "", kWidth - full,
                             finished, cells, noun, ends ? "\n" : "")
              << std::flush;
  } else if (ends || finished * 10 / cells != (finished - 1) * 10 / cells) {
    std::cerr << fmt::format("{} of {} {}\n", finished, cells, noun);
  }
}

std::vector<Table::Column> axis_columns(const std::vector<SweepAxis>& axes) {
  std::vector<Table::Column> columns;
  for (const SweepAxis& axis : axes) {
    const bool numbers = std::ranges::all_of(
        axis.values, [](const std::string& text) { return number_in(text).has_value(); });
    columns.push_back({axis.key, numbers ? Table::Align::kRight : Table::Align::kLeft});
  }
  return columns;
}

OrderedJson sweep_json(const Sweep& sweep, const std::vector<OrderedJson>& summaries) {
  OrderedJson cells = OrderedJson::array();
  for (std::size_t cell = 0; cell < summaries.size(); ++cell) {
    OrderedJson values;
    const std::vector<std::string>& chosen = sweep.values(cell);
    for (std::size_t a = 0; a < chosen.size(); ++a) {
      if (!chosen[a].empty()) {
        values[sweep.axes()[a].key] = chosen[a];
      }
    }
    cells.push_back({{"values", values}, {"summary", summaries[cell]}});
  }
  return {{"cells", cells}};
}

}  // namespace sluice::cli
