#include "report/page/run_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "report/page/limits.h"

namespace sluice {
namespace {

using Runs = std::vector<const RunData*>;
using Points = std::vector<std::pair<double, double>>;

constexpr std::size_t kMaxPoints = 160;

// A line for each run that has any points.
LineChart chart_of(const Runs& runs, LineChart chart,
                   const std::function<Points(const RunData&)>& points_of) {
  chart.x_scale = Scale::Kind::kExact;
  chart.y_scale = Scale::Kind::kFitted;
  for (const RunData* run : runs) {
    if (Points points = points_of(*run); !points.empty()) {
      chart.lines.push_back(thinned({.name = run->name, .points = std::move(points)}, kMaxPoints));
    }
  }
  return chart;
}

Points losses(const RunData& run, double RunStep::*x) {
  Points points;
  for (const RunStep& step : run.steps) {
    if (step.loss) {
      points.emplace_back(step.*x, *step.loss);
    }
  }
  return points;
}

Points accuracies(const RunData& run, double RunEvaluation::*x) {
  Points points;
  for (const RunEvaluation& evaluation : run.evaluations) {
    points.emplace_back(evaluation.*x, evaluation.accuracy * 100);
  }
  return points;
}

std::string seconds_of(const Runs& runs) {
  const bool all_virtual = std::ranges::all_of(runs, &RunData::is_virtual);
  return all_virtual ? "virtual seconds" : "seconds";
}

// Megabits per second of one direction of a host's link, from byte counts.
LineChart::Line rate_line(const RunData& run, std::size_t host, double LinkSample::*bytes,
                          const std::string& name) {
  LineChart::Line line{.name = name, .points = {}};
  const LinkSample* before = nullptr;
  for (const LinkSample& sample : run.links) {
    if (sample.host != host) {
      continue;
    }
    if (before != nullptr && sample.seconds > before->seconds) {
      line.points.emplace_back(sample.seconds, (sample.*bytes - before->*bytes) * 8e-6 /
                                                   (sample.seconds - before->seconds));
    }
    before = &sample;
  }
  return thinned(line, kMaxPoints);
}

Charts lab_charts(const RunData& run) {
  constexpr std::size_t kMaxHosts = 8;
  std::size_t hosts = 0;
  for (const LinkSample& sample : run.links) {
    hosts = std::max(hosts, std::min(sample.host + 1, kMaxHosts));
  }
  Charts charts;
  for (const auto& [title, bytes] :
       {std::pair{"Out", &LinkSample::sent}, std::pair{"In", &LinkSample::received}}) {
    LineChart chart{.x_title = "seconds",
                    .y_title = "Mb/s",
                    .lines = {},
                    .title = fmt::format("{} of the hosts", title),
                    .x_scale = Scale::Kind::kExact,
                    .y_scale = Scale::Kind::kFromZero};
    for (std::size_t h = 0; h < hosts; ++h) {
      chart.lines.push_back(rate_line(run, h, bytes, fmt::format("host {}", h)));
    }
    charts.charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace

LineChart::Line thinned(const LineChart::Line& line, std::size_t max) {
  if (line.points.size() <= max) {
    return line;
  }
  LineChart::Line result{.name = line.name, .points = {}};
  for (std::size_t i = 0; i < max; ++i) {
    const std::size_t begin = i * line.points.size() / max;
    const std::size_t end = (i + 1) * line.points.size() / max;
    double x = 0;
    double y = 0;
    double low = line.points[begin].second;
    double high = low;
    for (std::size_t p = begin; p < end; ++p) {
      const auto [px, py] = line.points[p];
      x += px;
      y += py;
      low = std::min(low, py);
      high = std::max(high, py);
    }
    const auto count = static_cast<double>(end - begin);
    result.points.emplace_back(x / count, y / count);
    result.spread.emplace_back(low, high);
  }
  return result;
}

Charts learning_charts(const Runs& runs) {
  const std::string seconds = seconds_of(runs);
  std::vector<LineChart> all{
      chart_of(runs,
               {.x_title = "iteration",
                .y_title = "loss",
                .lines = {},
                .title = "Training loss by iteration"},
               [](const RunData& run) { return losses(run, &RunStep::step); }),
      chart_of(
          runs,
          {.x_title = seconds, .y_title = "loss", .lines = {}, .title = "Training loss by time"},
          [](const RunData& run) { return losses(run, &RunStep::seconds); }),
      chart_of(runs,
               {.x_title = "epoch", .y_title = "%", .lines = {}, .title = "Test accuracy by epoch"},
               [](const RunData& run) { return accuracies(run, &RunEvaluation::epoch); }),
      chart_of(runs,
               {.x_title = seconds, .y_title = "%", .lines = {}, .title = "Test accuracy by time"},
               [](const RunData& run) { return accuracies(run, &RunEvaluation::seconds); })};
  // A single point is no curve.
  std::erase_if(all, [](const LineChart& chart) {
    return std::ranges::all_of(chart.lines, [](const auto& l) { return l.points.size() < 2; });
  });
  return {std::move(all)};
}

StackedBars breakdown_bars(const Runs& runs) {
  StackedBars bars{.title = "Where the time of an iteration goes (mean over the workers)",
                   .unit = "ms",
                   .parts = {"compute", "exposed communication", "sums and updates", "loading",
                             "other waits", "rest"},
                   .bars = {}};
  for (const RunData* run : runs) {
    if (const auto times = iteration_times(*run)) {
      bars.bars.push_back(
          {run->name,
           {times->compute / 1000, times->communication / 1000, times->aggregation / 1000,
            times->loading / 1000, times->others / 1000, times->rest / 1000}});
    }
  }
  return bars;
}

Charts utilisation_charts(const RunData& run) {
  if (!run.links.empty()) {
    return lab_charts(run);
  }
  constexpr std::size_t kBins = 60;
  if (!run.time_line || run.time_line->length <= 0) {
    return {};
  }
  Charts charts;
  for (const auto& [end, title] : {std::pair{": out", "Out of the hosts, in the time line above"},
                                   std::pair{": in", "Into the hosts, in the time line above"}}) {
    LineChart chart{.x_title = run.time_line->unit,
                    .y_title = "busy, %",
                    .lines = {},
                    .title = title,
                    .x_scale = Scale::Kind::kExact,
                    .y_scale = Scale::Kind::kFromZero};
    for (const TimeLine::Lane& lane : run.time_line->lanes) {
      if (lane.name.ends_with(end)) {
        Points shares = busy_shares(*run.time_line, lane, kBins);
        std::ranges::for_each(shares, [](auto& point) { point.second *= 100; });
        chart.lines.push_back({lane.name.substr(0, lane.name.size() - std::string_view(end).size()),
                               std::move(shares)});
      }
    }
    if (!chart.lines.empty()) {
      charts.charts.push_back(std::move(chart));
    }
  }
  return charts;
}

}  // namespace sluice
