#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/network.h"
#include "cli/profile_search.h"
#include "cli/report.h"
#include "cli/specs.h"
#include "cli/train_report.h"
#include "cli/training_sweep.h"
#include "report/page/comparison.h"
#include "report/progress.h"
#include "report/table.h"
#include "session/process_group.h"
#include "session/record.h"
#include "session/sweep.h"
#include "session/training_session.h"

namespace sluice::cli {
namespace {

constexpr const char* kSeedAxis = "seed";

// The presets, what --sweep adds, and the seeds: the last axis changes fastest.
Result<Sweep> trainings_of(const Settings& settings) {
  std::string text = settings.text("sweep");
  if (text.find(';') != std::string::npos) {
    return Error("--sweep: compare takes one table");
  }
  if (!text.starts_with("preset=")) {
    text = fmt::format("preset={} {}", settings.text("preset"), text);
  }
  std::string seeds;
  for (std::int64_t i = 0; i < settings.integer("seeds"); ++i) {
    seeds += fmt::format("{}{}", i == 0 ? "" : ",", settings.integer("seed") + i);
  }
  auto sweep = Sweep::parse(fmt::format("{} {}={}", text, kSeedAxis, seeds));
  return sweep ? std::move(sweep) : sweep.error().within("--sweep");
}

std::string cell_folder(const RunFolder& folder, std::size_t cell) {
  return folder.file(fmt::format("cells/{:03}", cell + 1)).string();
}

// What the trainings have recorded, with a report for each.
Result<std::vector<SeededRuns>> read_cells(const RunFolder& folder, const Sweep& sweep) {
  std::vector<SeededRuns> all;
  for (const Sweep::Group& group : sweep.groups_over(kSeedAxis)) {
    SeededRuns runs{.name = line_name(sweep.axes_without(kSeedAxis), group.values), .runs = {}};
    for (const std::size_t cell : group.cells) {
      const std::string path = cell_folder(folder, cell);
      auto run = read_run(path);
      if (!run) {
        return run.error();
      }
      runs.runs.push_back(*std::move(run));
      report_of(path);
    }
    all.push_back(std::move(runs));
  }
  return all;
}

OrderedJson spread_json(const std::optional<Spread>& spread) {
  return spread ? OrderedJson{{"mean", spread->mean}, {"deviation", spread->deviation}}
                : OrderedJson();
}

OrderedJson comparison_json(const Comparison& comparison) {
  auto rows = OrderedJson::array();
  for (const ComparedFigures& row : comparison.rows) {
    rows.push_back({{"name", row.name},
                    {"runs", row.runs},
                    {"diverged", row.diverged},
                    {"iteration_ms", spread_json(row.iteration_ms)},
                    {"megabytes_per_iteration", spread_json(row.megabytes)},
                    {"link_percent", spread_json(row.link_percent)},
                    {"train_s", spread_json(row.seconds)},
                    {"loss_at_samples", spread_json(row.loss_at_samples)},
                    {"accuracy_at_samples", spread_json(row.accuracy_at_samples)},
                    {"loss_at_seconds", spread_json(row.loss_at_seconds)},
                    {"accuracy_at_seconds", spread_json(row.accuracy_at_seconds)}});
  }
  return {{"samples", comparison.samples}, {"seconds", comparison.seconds}, {"rows", rows}};
}

// The same table as in the page.
std::string text_of(const PageTable& of) {
  std::vector<Table::Column> columns;
  for (const std::string& title : of.titles) {
    columns.push_back({title, columns.empty() ? Table::Align::kLeft : Table::Align::kRight});
  }
  Table table(columns);
  for (const auto& row : of.rows) {
    table.add_row(row);
  }
  return table.render();
}

int show(const Settings& settings, const Sweep& sweep, const RunFolder& folder) {
  const auto all = read_cells(folder, sweep);
  if (!all) {
    return failed(all.error());
  }
  const bool is_real = settings.on("real");
  const Comparison comparison = sluice::compare(*all);
  const std::string path = folder.file("report.html").string();
  const std::string subtitle = fmt::format(
      "{} · {} seed{} · {}", settings.text("model"), settings.integer("seeds"),
      settings.integer("seeds") == 1 ? "" : "s", is_real ? "in real time" : "in virtual time");
  const OrderedJson json = comparison_json(comparison);
  for (const auto& [file, text] :
       {std::pair{path, to_html(seeds_page(*all, subtitle))},
        std::pair{folder.file("comparison.json").string(), json.dump(2) + "\n"}}) {
    if (const auto written = write_file(file, text); !written) {
      return failed(written.error());
    }
  }
  if (settings.on("json")) {
    print(json);
  } else {
    print(text_of(table_of(comparison, !is_real)));
    print(fmt::format("{}\nreport in {}\n", marks_of(comparison, !is_real), path));
  }
  return kOk;
}

int compare_virtually(const Settings& settings, const Sweep& sweep) {
  if (const auto plain =
          settings.refuse({"workers", "workers-per-host", "servers-per-host", "loaders", "trace"},
                          "is for --real; in virtual time the cluster's file has the hosts");
      !plain) {
    return bad_input(plain.error());
  }
  return sweep_trainings(settings, sweep, "compare",
                         [&](const Swept& swept) { return show(settings, sweep, swept.folder); });
}

// The settings of each training.
Result<std::vector<Settings>> settings_of_cells(const Settings& settings, const Sweep& sweep) {
  std::vector<Settings> all;
  for (std::size_t cell = 0; cell < sweep.cells(); ++cell) {
    Settings::Flags flags{{"sweep", ""}};
    const std::vector<std::string>& values = sweep.values(cell);
    for (std::size_t a = 0; a < values.size(); ++a) {
      const std::string key = spelled(sweep.axes()[a].key);
      if (!settings.has(key)) {
        return Error(fmt::format("--sweep: {}: is not a setting of train", key));
      }
      flags[key] = values[a];
    }
    auto changed = settings.with(flags);
    if (!changed) {
      return changed.error().within(sweep.name(cell));
    }
    Settings own = *std::move(changed);
    if (const auto located = locate_files(own); !located) {
      return located.error();
    }
    all.push_back(std::move(own));
  }
  return all;
}

// What one training is to do; `folder` is where its record goes, or why it cannot.
Result<TrainSpec> spec_of_cell(const ProcessGroup& group, Settings& settings,
                               const Result<std::string>& folder) {
  if (!folder) {
    return folder.error();
  }
  if (const auto dictated = dictate_workers(group, settings); !dictated) {
    return dictated.error();
  }
  auto spec = train_spec(settings);
  if (!spec) {
    return spec.error();
  }
  TrainSpec named = *std::move(spec);
  end_where_it_diverges(named);
  named.record.folder = *folder;
  return named;
}

// One training as train does it; an exit code.
int train_cell(ProcessGroup& group, Settings settings, const Result<std::string>& folder) {
  Progress progress(
      std::cerr, isatty(STDERR_FILENO) != 0 ? Progress::Style::kTerminal : Progress::Style::kPlain);
  Log log = session_log();
  log.progress = &progress;
  const auto spec = spec_of_cell(group, settings, folder);
  auto prepared = TrainingSession::prepare(group, spec, agreement_of(settings), log);
  if (!prepared) {
    return group.is_leader() ? bad_input(prepared.error()) : kBadInput;
  }
  const TrainReport report = TrainingSession(*std::move(prepared)).run();
  if (report.fault) {
    return group.is_leader() ? failed(*report.fault) : kFailed;
  }
  return report.stopped ? 128 + *report.stopped : kOk;
}

// One after the other, so that they do not disturb each other. Only the leader has a folder.
int compare_really(ProcessGroup& group, const Settings& settings, const Sweep& sweep) {
  const auto cells = settings_of_cells(settings, sweep);
  if (!cells) {
    return group.is_leader() ? bad_input(cells.error()) : kBadInput;
  }
  std::optional<Result<RunFolder>> folder;
  if (group.is_leader()) {
    folder = open_run_folder(run_folder_spec(settings), "compare");
  }
  const auto place = [&](std::size_t cell) -> Result<std::string> {
    if (!folder) {
      return std::string();
    }
    return *folder ? Result<std::string>(cell_folder(**folder, cell)) : folder->error();
  };
  for (std::size_t cell = 0; cell < sweep.cells(); ++cell) {
    if (group.is_leader()) {
      spdlog::info("{} of {}: {}", cell + 1, sweep.cells(), sweep.name(cell));
    }
    if (const int code = train_cell(group, (*cells)[cell], place(cell)); code != kOk) {
      return code;
    }
  }
  int code = kOk;
  if (folder) {
    group.attend([&] { code = show(settings, sweep, **folder); });
  }
  return code;
}

}  // namespace

int compare(const Settings& settings) {
  const auto sweep = trainings_of(settings);
  if (!sweep) {
    return bad_input(sweep.error());
  }
  if (!settings.on("real")) {
    return compare_virtually(settings, *sweep);
  }
  if (const auto plain = settings.refuse({"cluster", "profile", "threads", "trace", "save"},
                                         "has no effect with --real; leave it out");
      !plain) {
    return bad_input(plain.error());
  }
  const auto group = join_processes(warn, fail);
  if (!group) {
    return failed(group.error());
  }
  (*group)->carry_by(transport_choice(settings));
  return run_in(**group, [&] { return compare_really(**group, settings, *sweep); });
}

}  // namespace sluice::cli
