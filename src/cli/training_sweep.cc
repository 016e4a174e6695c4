#include "cli/training_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/file.h"
#include "cli/console.h"
#include "cli/simulate_training.h"
#include "cli/specs.h"
#include "cli/sweep_cells.h"
#include "cli/times_at.h"
#include "drivers/realtime/interrupt.h"
#include "report/line_chart.h"
#include "report/spread.h"
#include "report/table.h"
#include "session/training_sweep.h"

namespace sluice::cli {
namespace {

// What of an evaluation, and then of its run, is a column of the CSV file. How many samples there
// were is not to be taken for an axis.
constexpr std::array kOfEvaluation{"epoch", "samples", "time_s", "test_loss", "test_accuracy"};
constexpr const char* kEvaluationTitles = "epoch,samples_seen,time_s,test_loss,test_accuracy";
constexpr const char* kDiverged = "diverged";
constexpr std::array kOfRun{"iteration_us", "bytes_per_iteration", "egress_utilisation",
                            "ingress_utilisation"};

Result<VirtualTraining> training_of(const SweepCell& cell, const std::string& name,
                                    const std::string& folder) {
  auto spec = virtual_train_spec(cell.settings, cell.setup.cluster);
  if (!spec) {
    return spec.error();
  }
  VirtualTraining training{.name = name,
                           .spec = *std::move(spec),
                           .cluster = {.profile = cell.setup.profile,
                                       .cluster = cell.setup.cluster,
                                       .slowdowns = cell.setup.slowdowns}};
  training.spec.strategy = settled(std::move(training.spec.strategy), cell.setup.codec_choice);
  end_where_it_diverges(training.spec);
  RecordSpec& record = training.spec.record;
  record.folder = folder;
  for (KeptFile& kept : record.kept) {
    if (kept.name == "cluster.toml") {
      kept.text = to_toml(cell.setup.cluster);  // with the values of the combination
    }
  }
  return training;
}

// A number, also of those that JSON has as text.
double figure(const OrderedJson& of, const char* key) {
  const auto found = of.find(key);
  return found != of.end() && found->is_number() ? found->get<double>() : std::nan("");
}

// Those of a run, and a last one without results if it diverged.
OrderedJson evaluations_of(const OrderedJson& run) {
  OrderedJson all = run.value("evaluations", OrderedJson::array());
  if (run.contains(kDiverged)) {
    all.push_back({{"time_s", run.at("train_s")}});
  }
  return all;
}

std::string evaluations_csv(const Sweep& sweep, const std::vector<OrderedJson>& summaries) {
  std::string csv;
  for (const SweepAxis& axis : sweep.axes()) {
    csv += axis.key + ",";
  }
  csv += fmt::format("{},{},{}\n", kEvaluationTitles, fmt::join(kOfRun, ","), kDiverged);
  for (std::size_t cell = 0; cell < summaries.size(); ++cell) {
    const OrderedJson& run = summaries[cell];
    for (const OrderedJson& evaluation : evaluations_of(run)) {
      csv += fmt::format("{}", fmt::join(sweep.values(cell), ","));
      for (const char* key : kOfEvaluation) {
        csv += fmt::format(",{}", figure(evaluation, key));
      }
      for (const char* key : kOfRun) {
        csv += fmt::format(",{}", figure(run, key));
      }
      csv += run.contains(kDiverged) ? ",1\n" : ",0\n";
    }
  }
  return csv;
}

// Of the runs of one combination, which differ in their seeds. Only those count that did not
// diverge.
class SeedRuns {
 public:
  SeedRuns(const Sweep::Group& group, const std::vector<OrderedJson>& summaries) {
    for (const std::size_t cell : group.cells) {
      if (!summaries[cell].contains(kDiverged)) {
        runs_.push_back(&summaries[cell]);
      }
    }
    diverged_ = group.cells.size() - runs_.size();
  }

  bool none() const { return runs_.empty(); }
  // "diverged", "1 of 3 diverged", or nothing.
  std::string divergence() const {
    return diverged_ == 0 ? ""
           : none()       ? kDiverged
                    : fmt::format("{} of {} {}", diverged_, diverged_ + runs_.size(), kDiverged);
  }
  Spread of_run(const char* key, double factor = 1) const {
    std::vector<double> values;
    for (const OrderedJson* run : runs_) {
      values.push_back(factor * figure(*run, key));
    }
    return Spread::of(values);
  }
  std::size_t evaluations() const {
    std::size_t least = none() ? 0 : SIZE_MAX;
    for (const OrderedJson* run : runs_) {
      least = std::min(least, run->at("evaluations").size());
    }
    return least;
  }
  double of_evaluation(std::size_t index, const char* key) const {
    std::vector<double> values;
    for (const OrderedJson* run : runs_) {
      values.push_back(figure(run->at("evaluations")[index], key));
    }
    return Spread::of(values).mean;
  }

 private:
  std::vector<const OrderedJson*> runs_;
  std::size_t diverged_ = 0;
};

constexpr const char* kSeed = "seed";

// Accuracies below this are left out: those of beginners would flatten what comes after them.
double lowest_shown(const std::vector<SeedRuns>& all) {
  double lowest = 100;
  for (const SeedRuns& runs : all) {
    if (runs.evaluations() > 0) {
      lowest = std::min(lowest, 100 * runs.of_evaluation(runs.evaluations() / 3, "test_accuracy"));
    }
  }
  return std::floor(lowest / 10) * 10;
}

LineChart chart_of(const Sweep& sweep, const std::vector<OrderedJson>& summaries, const char* key,
                   const char* title) {
  LineChart chart{.x_title = title,
                  .y_title = "test accuracy, %",
                  .lines = {},
                  .x_scale = Scale::Kind::kFromZero,
                  .y_scale = Scale::Kind::kFitted};
  const std::vector<SweepAxis> axes = sweep.axes_without(kSeed);
  std::vector<SeedRuns> all;
  for (const Sweep::Group& group : sweep.groups_over(kSeed)) {
    all.emplace_back(group, summaries);
    chart.lines.push_back({.name = line_name(axes, group.values), .points = {}});
  }
  const double lowest = lowest_shown(all);
  for (std::size_t l = 0; l < all.size(); ++l) {
    for (std::size_t e = 0; e < all[l].evaluations(); ++e) {
      const double accuracy = 100 * all[l].of_evaluation(e, "test_accuracy");
      if (accuracy >= lowest) {
        chart.lines[l].points.emplace_back(all[l].of_evaluation(e, key), accuracy);
      }
    }
  }
  return chart;
}

Table training_table(const Sweep& sweep, const std::vector<OrderedJson>& summaries) {
  std::vector<Table::Column> columns = axis_columns(sweep.axes_without(kSeed));
  for (const char* title :
       {"accuracy, %", "test loss", "virtual s", "iteration, ms", "MB/iteration", "out, %"}) {
    columns.push_back({title, Table::Align::kRight});
  }
  Table table(columns);
  for (const Sweep::Group& group : sweep.groups_over(kSeed)) {
    const SeedRuns runs(group, summaries);
    std::vector<std::string> row = group.values;
    if (runs.none()) {
      row.push_back(runs.divergence());
      row.resize(columns.size());
      table.add_row(std::move(row));
      continue;
    }
    const std::string divergence = runs.divergence();
    row.push_back(runs.of_run("test_accuracy", 100).text(2) +
                  (divergence.empty() ? "" : " (" + divergence + ")"));
    row.push_back(runs.of_run("test_loss").text(4));
    row.push_back(runs.of_run("train_s").text(3));
    row.push_back(runs.of_run("iteration_us", 1e-3).text(3));
    row.push_back(fmt::format("{:.3f}", runs.of_run("bytes_per_iteration", 1e-6).mean));
    row.push_back(fmt::format("{:.1f}", runs.of_run("egress_utilisation", 100).mean));
    table.add_row(std::move(row));
  }
  return table;
}

Result<void> write_trainings(const Sweep& sweep, const std::vector<OrderedJson>& summaries,
                             const OrderedJson& all, const RunFolder& folder) {
  if (auto written = folder.write_summary(all); !written) {
    return written;
  }
  const auto svg = [&](const char* key, const char* title) {
    return to_svg(chart_of(sweep, summaries, key, title));
  };
  for (const auto& [name, text] :
       {std::pair<const char*, std::string>{"sweep.csv", evaluations_csv(sweep, summaries)},
        {"epochs.svg", svg("epoch", "epochs")},
        {"seconds.svg", svg("time_s", "virtual seconds")}}) {
    if (auto written = write_file(folder.file(name), text); !written) {
      return written;
    }
  }
  return {};
}

// Of every so many cells the first one trains, and keeps its record in a folder of its own in
// `folder`. An error names the combination.
Result<TrainingSweep> prepare_trainings(const Settings& settings, const Sweep& sweep,
                                        const std::vector<SweepCell>& cells, std::size_t each,
                                        const RunFolder& folder) {
  std::set<std::string> notes;
  std::vector<VirtualTraining> trainings;
  for (std::size_t c = 0; c < cells.size(); c += each) {
    const SweepCell& cell = cells[c];
    const std::string name = "--sweep: " + sweep.name(c);
    auto training =
        training_of(cell, name, folder.file(fmt::format("cells/{:03}", c / each + 1)).string());
    if (!training) {
      return training.error().within(name);
    }
    trainings.push_back(*std::move(training));
    if (std::string note = note_on_batch(cell.settings, cell.setup.profile);
        !note.empty() && notes.insert(note).second) {
      spdlog::warn(note);
    }
  }
  return TrainingSweep::prepare(
      std::move(trainings), static_cast<std::size_t>(settings.integer("threads")), session_log());
}

}  // namespace

void end_where_it_diverges(TrainSpec& spec) {
  if (spec.on_nonfinite == NonFiniteAction::kStop) {
    spec.on_nonfinite = NonFiniteAction::kEnd;
  }
}

int sweep_trainings(const Settings& settings, const Sweep& asked, const std::string& folder_name,
                    const std::function<int(const Swept&)>& then) {
  if (const auto alone = settings.refuse({"save"}, "a sweep trains many models; leave it out");
      !alone) {
    return bad_input(alone.error());
  }
  const auto all_cells = with_times(settings, asked);
  if (!all_cells) {
    return bad_input(all_cells.error());
  }
  const Sweep& sweep = *all_cells;
  const auto cells = sweep_cells(settings, sweep);
  if (!cells) {
    return bad_input(cells.error());
  }
  const std::size_t each = sweep.cells() / asked.cells();
  if (each > 1) {
    if (const auto valid = check_times(sweep, *cells); !valid) {
      return bad_input(valid.error());
    }
  }
  const auto folder = open_run_folder(run_folder_spec(settings), folder_name);
  if (!folder) {
    return bad_input(folder.error());
  }
  auto trainings = prepare_trainings(settings, sweep, *cells, each, *folder);
  if (!trainings) {
    return bad_input(trainings.error());
  }
  const auto [trained, stopped] = TrainingSweep(*std::move(trainings)).run([&](std::size_t n) {
    show_cells_done(n, asked.cells(), "trainings");
  });
  if (stopped) {
    warn(fmt::format("stopped by {}; the records of trainings that had ended are in {}",
                     signal_name(*stopped), folder->file("cells").string()));
    return 128 + *stopped;
  }
  const std::vector<OrderedJson> summaries =
      timed(sweep, *cells, trained, static_cast<std::size_t>(settings.integer("threads")));
  const OrderedJson all = sweep_json(sweep, summaries);
  if (const auto written = write_trainings(sweep, summaries, all, *folder); !written) {
    return failed(written.error());
  }
  return then({.folder = *folder,
               .all = all,
               .table = training_table(sweep, summaries).render(),
               .files = "sweep.csv, epochs.svg and seconds.svg"});
}

}  // namespace sluice::cli
