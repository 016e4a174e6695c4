#include "report/page/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <tuple>

#include "report/page/limits.h"
#include "report/page/run_charts.h"

namespace sluice {
namespace {

using Figure = std::function<std::optional<double>(const RunData&)>;

// Of the runs that did not diverge, if each of them has it.
std::optional<Spread> spread_of(const SeededRuns& of, const Figure& figure) {
  std::vector<double> values;
  for (const RunData& run : of.runs) {
    if (run.has_diverged()) {
      continue;
    }
    const auto value = figure(run);
    if (!value) {
      return std::nullopt;
    }
    values.push_back(*value);
  }
  return values.empty() ? std::nullopt : std::optional(Spread::of(values));
}

Figure number_times(const char* key, double factor) {
  return [key, factor](const RunData& run) -> std::optional<double> {
    const auto value = run.number({key});
    return value ? std::optional(*value * factor) : std::nullopt;
  };
}

std::optional<double> megabytes_of(const RunData& run) {
  const auto bytes = run.number({"mechanism", "bytes"});
  const double iterations = run.number({"iterations"}).value_or(0);
  return bytes && iterations > 0 ? std::optional(*bytes / iterations / 1e6) : std::nullopt;
}

std::optional<double> link_percent_of(const RunData& run) {
  const auto use = link_use(run);
  return use ? std::optional(*use * 100) : std::nullopt;
}

// The smallest of the last values of all runs that did not diverge.
double shared_end(const std::vector<SeededRuns>& all, double RunStep::*x) {
  double end = std::numeric_limits<double>::infinity();
  for (const SeededRuns& of : all) {
    for (const RunData& run : of.runs) {
      if (!run.has_diverged()) {
        end = std::min(end, run.steps.empty() ? 0 : run.steps.back().*x);
      }
    }
  }
  return std::isfinite(end) ? end : 0;
}

double samples_at(const RunData& run, double step) {
  const auto after = std::ranges::upper_bound(run.steps, step, {}, &RunStep::step);
  return after == run.steps.begin() ? 0 : std::prev(after)->samples;
}

std::string text_of(const std::optional<Spread>& spread, int decimals) {
  return spread ? spread->text(decimals) : "";
}

// The mean of the curves where all of them are, with their spread.
LineChart::Line mean_line(const std::string& name, const std::vector<Curve>& curves) {
  constexpr int kPlaces = 120;
  LineChart::Line line{.name = name, .points = {}};
  double begin = -std::numeric_limits<double>::infinity();
  double end = std::numeric_limits<double>::infinity();
  if (curves.empty()) {
    return line;
  }
  for (const Curve& curve : curves) {
    if (curve.empty()) {
      return line;
    }
    begin = std::max(begin, curve.front().first);
    end = std::min(end, curve.back().first);
  }
  for (int i = 0; i <= kPlaces && begin <= end; ++i) {
    const double x = i == kPlaces ? end : begin + (end - begin) * i / kPlaces;
    double sum = 0;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const Curve& curve : curves) {
      const double y = value_at(curve, x).value_or(std::numeric_limits<double>::quiet_NaN());
      sum += y;
      low = std::min(low, y);
      high = std::max(high, y);
    }
    line.points.emplace_back(x, sum / static_cast<double>(curves.size()));
    line.spread.emplace_back(low, high);
  }
  return line;
}

Charts curves_of(const std::vector<SeededRuns>& all, const std::string& seconds) {
  Charts charts;
  for (const auto& [curve_of, what, unit] : {std::tuple{&loss_curve, "Training loss", "loss"},
                                             std::tuple{&accuracy_curve, "Test accuracy", "%"}}) {
    for (const By by : {By::kSamples, By::kSeconds}) {
      const bool by_samples = by == By::kSamples;
      LineChart chart{.x_title = by_samples ? "samples" : seconds,
                      .y_title = unit,
                      .lines = {},
                      .title = fmt::format("{} by {}", what, by_samples ? "samples" : "time"),
                      .x_scale = Scale::Kind::kExact,
                      .y_scale = Scale::Kind::kFitted};
      bool is_there = false;
      for (const SeededRuns& of : all) {
        std::vector<Curve> curves;
        for (const RunData& run : of.runs) {
          if (!run.has_diverged()) {
            curves.push_back(curve_of(run, by));
          }
        }
        chart.lines.push_back(mean_line(of.name, curves));
        is_there = is_there || chart.lines.back().points.size() > 1;
      }
      if (is_there) {
        charts.charts.push_back(std::move(chart));
      }
    }
  }
  return charts;
}

// The names with the smallest mean: "p3 has", "p3 and kvstore have"; empty if no name has the
// figure.
std::string best_of(const Comparison& comparison, std::optional<Spread> ComparedFigures::*figure) {
  constexpr double kEqual = 1e-6;  // sums of floats may differ so much
  double least = std::numeric_limits<double>::infinity();
  for (const ComparedFigures& row : comparison.rows) {
    least = std::min(least, row.*figure ? (row.*figure)->mean : least);
  }
  std::vector<std::string> names;
  for (const ComparedFigures& row : comparison.rows) {
    if (row.*figure && (row.*figure)->mean <= least + kEqual * std::abs(least)) {
      names.push_back(row.name);
    }
  }
  return names.empty()
             ? ""
             : fmt::format("{} {}", fmt::join(names, " and "), names.size() == 1 ? "has" : "have");
}

Statement statement_of(const Comparison& comparison, const std::string& seconds) {
  Statement statement{.headline = "", .sentences = {}};
  const std::string fastest = best_of(comparison, &ComparedFigures::iteration_ms);
  const std::string by_samples = best_of(comparison, &ComparedFigures::loss_at_samples);
  const std::string by_seconds = best_of(comparison, &ComparedFigures::loss_at_seconds);
  statement.headline = fastest.empty() ? "No run has been measured."
                                       : fmt::format("{} the shortest iteration.", fastest);
  if (!by_samples.empty()) {
    statement.sentences.push_back(
        fmt::format("After {:.0f} samples {} the lowest loss: that is how well it learns.",
                    comparison.samples, by_samples));
  }
  if (!by_seconds.empty()) {
    statement.sentences.push_back(
        fmt::format("After {:.4g} {} {} the lowest loss: that also counts how fast it is.",
                    comparison.seconds, seconds, by_seconds));
  }
  for (const ComparedFigures& row : comparison.rows) {
    if (row.diverged > 0) {
      statement.sentences.push_back(fmt::format(
          "{} diverged in {} of {} runs, whose loss or gradients were not finite; these runs are "
          "left out. A lower --lr or a longer --warmup-epochs may help.",
          row.name, row.diverged, row.runs));
    }
  }
  return statement;
}

}  // namespace

std::optional<double> value_at(const Curve& curve, double x) {
  if (curve.empty() || x < curve.front().first || x > curve.back().first) {
    return std::nullopt;
  }
  const auto after =
      std::ranges::lower_bound(curve, x, {}, [](const auto& point) { return point.first; });
  if (after->first == x) {
    return after->second;
  }
  const auto [x0, y0] = *std::prev(after);
  const auto [x1, y1] = *after;
  return y0 + (y1 - y0) * ((x - x0) / (x1 - x0));
}

Curve loss_curve(const RunData& run, By by) {
  const std::size_t window = std::max<std::size_t>(1, run.steps.size() / 20);
  Curve curve;
  std::vector<double> losses;
  for (const RunStep& step : run.steps) {
    if (!step.loss) {
      return {};
    }
    losses.push_back(*step.loss);
    const std::size_t count = std::min(losses.size(), window);
    double sum = 0;
    for (std::size_t i = losses.size() - count; i < losses.size(); ++i) {
      sum += losses[i];
    }
    curve.emplace_back(by == By::kSamples ? step.samples : step.seconds,
                       sum / static_cast<double>(count));
  }
  return curve;
}

Curve accuracy_curve(const RunData& run, By by) {
  Curve curve;
  for (const RunEvaluation& evaluation : run.evaluations) {
    curve.emplace_back(by == By::kSamples ? samples_at(run, evaluation.step) : evaluation.seconds,
                       evaluation.accuracy * 100);
  }
  return curve;
}

Comparison compare(const std::vector<SeededRuns>& all) {
  Comparison comparison{.samples = shared_end(all, &RunStep::samples),
                        .seconds = shared_end(all, &RunStep::seconds),
                        .rows = {}};
  const double samples = comparison.samples;
  const double seconds = comparison.seconds;
  for (const SeededRuns& of : all) {
    const auto at = [&](auto curve_of, By by) {
      const double x = by == By::kSamples ? samples : seconds;
      return spread_of(of, [&](const RunData& run) { return value_at(curve_of(run, by), x); });
    };
    const auto diverged = std::ranges::count_if(of.runs, &RunData::has_diverged);
    comparison.rows.push_back({.name = of.name,
                               .runs = of.runs.size(),
                               .diverged = static_cast<std::size_t>(diverged),
                               .iteration_ms = spread_of(of, number_times("iteration_us", 1e-3)),
                               .megabytes = spread_of(of, megabytes_of),
                               .link_percent = spread_of(of, link_percent_of),
                               .seconds = spread_of(of, number_times("train_s", 1)),
                               .loss_at_samples = at(loss_curve, By::kSamples),
                               .accuracy_at_samples = at(accuracy_curve, By::kSamples),
                               .loss_at_seconds = at(loss_curve, By::kSeconds),
                               .accuracy_at_seconds = at(accuracy_curve, By::kSeconds)});
  }
  return comparison;
}

std::string marks_of(const Comparison& comparison, bool is_virtual) {
  return fmt::format("S: after {:.0f} samples, T: after {:.4g} {}, as far as all runs came.",
                     comparison.samples, comparison.seconds, is_virtual ? "virtual s" : "s");
}

PageTable table_of(const Comparison& comparison, bool is_virtual) {
  struct Column {
    std::string title;
    std::optional<Spread> ComparedFigures::*figure;
    int decimals;
  };
  PageTable table{.titles = {""}, .rows = {}};
  const bool some_diverged = std::ranges::any_of(comparison.rows, &ComparedFigures::diverged);
  if (some_diverged) {
    table.titles.emplace_back("diverged");
  }
  for (const ComparedFigures& row : comparison.rows) {
    table.rows.push_back({row.name});
    if (some_diverged) {
      table.rows.back().push_back(
          row.diverged == 0 ? "" : fmt::format("{} of {}", row.diverged, row.runs));
    }
  }
  for (const Column& column :
       {Column{"iteration, ms", &ComparedFigures::iteration_ms, 3},
        Column{"MB/iteration", &ComparedFigures::megabytes, 2},
        Column{"link, %", &ComparedFigures::link_percent, 1},
        Column{is_virtual ? "virtual s" : "s", &ComparedFigures::seconds, 3},
        Column{"loss at S", &ComparedFigures::loss_at_samples, 4},
        Column{"accuracy at S, %", &ComparedFigures::accuracy_at_samples, 2},
        Column{"loss at T", &ComparedFigures::loss_at_seconds, 4},
        Column{"accuracy at T, %", &ComparedFigures::accuracy_at_seconds, 2}}) {
    const bool is_there = std::ranges::any_of(comparison.rows, [&](const ComparedFigures& row) {
      return (row.*column.figure).has_value();
    });
    if (!is_there) {
      continue;
    }
    table.titles.push_back(column.title);
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      table.rows[r].push_back(text_of(comparison.rows[r].*column.figure, column.decimals));
    }
  }
  return table;
}

Page seeds_page(const std::vector<SeededRuns>& all, const std::string& subtitle) {
  const bool is_virtual = all.front().runs.front().is_virtual();
  const std::string seconds = is_virtual ? "virtual seconds" : "seconds";
  const Comparison comparison = compare(all);
  Page page{.title = "Comparison", .subtitle = subtitle, .sections = {}};
  page.sections.push_back(
      {.title = "Figures",
       .blocks = {statement_of(comparison, seconds), table_of(comparison, is_virtual),
                  Paragraph{marks_of(comparison, is_virtual) +
                            " Means over the seeds, with their standard deviation. Loss is that of "
                            "training, averaged over the last twentieth of the steps; accuracy is "
                            "that of the test, between two evaluations on a straight line."}}});
  if (Charts charts = curves_of(all, seconds); !charts.charts.empty()) {
    page.sections.push_back({.title = "Learning", .blocks = {std::move(charts)}});
  }
  Section limits{.title = "What limits the runs", .blocks = {}};
  std::vector<RunData> firsts;
  for (const SeededRuns& of : all) {
    firsts.push_back(of.runs.front());
    firsts.back().name = of.name;
  }
  std::vector<const RunData*> pointers;
  for (const RunData& run : firsts) {
    pointers.push_back(&run);
  }
  if (StackedBars bars = breakdown_bars(pointers); !bars.bars.empty()) {
    bars.title += ", first seed";
    limits.blocks.emplace_back(std::move(bars));
  }
  for (const RunData& run : firsts) {
    if (run.has_diverged()) {
      continue;
    }
    Statement statement = limits_of(run);
    statement.headline = run.name + ": " + statement.headline;
    limits.blocks.emplace_back(std::move(statement));
  }
  page.sections.push_back(std::move(limits));
  return page;
}

}  // namespace sluice
