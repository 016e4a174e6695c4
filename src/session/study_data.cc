#include "session/study_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "session/sweep.h"

namespace sluice {
namespace {

constexpr const char* kSeed = "seed";
constexpr const char* kAccuracy = "test_accuracy";
constexpr const char* kUnset = "-";

bool is_same(const std::string& one, const std::string& other) {
  const auto number = number_in(one);
  return one == other || (number && number == number_in(other));
}

std::string text_of(const std::map<std::string, std::string>& values) {
  std::string text;
  for (const auto& [key, value] : values) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  }
  return text;
}

}  // namespace

Result<StudyData> StudyData::parse(const std::string& csv, const std::string& source) {
  StudyData data;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  data.columns_ = split_list(line);
  const auto first = std::ranges::find_if(data.columns_, [](const std::string& name) {
    return name == "epoch" || name == "iteration_us";
  });
  data.axes_ = static_cast<std::size_t>(first - data.columns_.begin());
  while (std::getline(lines, line)) {
    data.rows_.push_back(split_list(line));
    if (data.rows_.back().size() != data.columns_.size()) {
      return Error(fmt::format("{}: row {} has {} cells, and the first one {}", source,
                               data.rows_.size() + 1, data.rows_.back().size(),
                               data.columns_.size()));
    }
  }
  return data;
}

Result<std::size_t> StudyData::column(const std::string& name) const {
  const auto found = std::ranges::find(columns_, name);
  if (found == columns_.end()) {
    return Error(name + ": is no column of the data");
  }
  return static_cast<std::size_t>(found - columns_.begin());
}

double StudyData::number(const Row& row, std::size_t column) const {
  return number_in(row[column]).value_or(std::nan(""));
}

std::vector<StudyData::Row> StudyData::rows_at(const Values& values, const std::string& but) const {
  std::vector<Row> rows;
  std::ranges::copy_if(rows_, std::back_inserter(rows), [&](const Row& row) {
    return std::ranges::all_of(values, [&](const auto& value) {
      const auto c = column(value.first);
      return c && *c < axes_ && is_same(row[*c], value.second);
    });
  });
  for (std::size_t a = 0; a < axes_; ++a) {
    const bool is_free = columns_[a] != but && !values.contains(columns_[a]);
    const auto is_empty = [&](const Row& row) { return row[a].empty(); };
    if (is_free && std::ranges::any_of(rows, is_empty)) {
      std::erase_if(rows, [&](const Row& row) { return !is_empty(row); });
    }
  }
  return rows;
}

Result<std::vector<std::vector<StudyData::Row>>> StudyData::runs_at(const Values& values,
                                                                    const std::string& but) const {
  std::vector<std::vector<Row>> runs;
  std::vector<Row> cells;  // of the runs: their axes
  for (const Row& row : rows_at(values, but)) {
    const Row cell(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(axes_));
    if (cells.empty() || cells.back() != cell) {
      cells.push_back(cell);
      runs.emplace_back();
    }
    runs.back().push_back(row);
    for (std::size_t a = 0; a < axes_; ++a) {
      if (cell[a] != cells.front()[a] && columns_[a] != kSeed && columns_[a] != but) {
        return Error(fmt::format("{}: {} is {} and {}", text_of(values), columns_[a], cell[a],
                                 cells.front()[a]));
      }
    }
  }
  if (runs.empty()) {
    return Error(text_of(values) + ": is not in the data");
  }
  return runs;
}

Result<std::vector<double>> StudyData::figures_at(const StudyFigure& figure,
                                                  const Values& values) const {
  const auto of = column(figure.of);
  const auto per = column(figure.per.empty() ? figure.of : figure.per);
  const auto runs = runs_at(values, "");
  if (!of || !per || !runs) {
    return !of ? of.error() : !per ? per.error() : runs.error();
  }
  std::vector<double> figures;
  for (const std::vector<Row>& rows : *runs) {
    auto row = rows.end() - 1;
    if (figure.reaches) {
      const auto accuracy = column(kAccuracy);
      if (!accuracy) {
        return accuracy.error();
      }
      row = std::ranges::find_if(
          rows, [&](const Row& r) { return number(r, *accuracy) >= *figure.reaches; });
      if (row == rows.end()) {
        return Error(
            fmt::format("{}: an accuracy of {} is not reached", text_of(values), *figure.reaches));
      }
    }
    const double divisor = figure.per.empty() ? 1 : number(*row, *per);
    figures.push_back(figure.times * number(*row, *of) / divisor);
  }
  return figures;
}

Result<Spread> StudyData::figure(const StudyFigure& figure) const {
  const auto at = Sweep::parse(figure.at);
  if (!at) {
    return at.error();
  }
  std::optional<Spread> largest;
  for (std::size_t cell = 0; cell < at->cells(); ++cell) {
    Values values = at->values_by_key(cell);
    auto figures = figures_at(figure, values);
    if (!figures) {
      return figures.error();
    }
    std::vector<double> numbers = *std::move(figures);
    if (!figure.over.empty()) {
      const auto over = Sweep::parse(figure.over);
      if (!over) {
        return over.error();
      }
      for (const auto& [key, value] : over->values_by_key(0)) {
        value == kUnset ? static_cast<void>(values.erase(key))
                        : static_cast<void>(values[key] = value);
      }
      const auto others = figures_at(figure, values);
      if (!others || others->size() != numbers.size()) {
        return others ? Error(text_of(values) + ": has another number of seeds") : others.error();
      }
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] *= figure.times / (*others)[i];  // a ratio, times the factor once
      }
    }
    const Spread spread = Spread::of(numbers);
    if (!largest || spread.mean > largest->mean) {
      largest = spread;
    }
  }
  return *largest;
}

Result<std::vector<StudyData::Curve>> StudyData::curves(const std::string& of,
                                                        const Values& values) const {
  const auto figure = column(of);
  const auto seconds = column("time_s");
  const auto runs = runs_at(values, "");
  if (!figure || !seconds || !runs) {
    return !figure ? figure.error() : !seconds ? seconds.error() : runs.error();
  }
  std::vector<Curve> curves;
  for (const std::vector<Row>& rows : *runs) {
    Curve& curve = curves.emplace_back();
    for (const Row& row : rows) {
      curve.seconds.push_back(number(row, *seconds));
      curve.figures.push_back(number(row, *figure));
    }
  }
  return curves;
}

Result<LineChart::Line> StudyData::line(const StudyPicture& picture, const Values& values) const {
  const auto x = column(picture.x);
  const auto y = column(picture.y);
  const auto runs = runs_at(values, picture.x);
  if (!x || !y || !runs) {
    return !x ? x.error() : !y ? y.error() : runs.error();
  }
  // Points of all seeds, by place in a run or by the value of an axis.
  std::map<double, std::pair<std::vector<double>, std::vector<double>>> points;
  for (const std::vector<Row>& rows : *runs) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const bool axis = *x < axes_;
      if (axis && r + 1 < rows.size()) {
        continue;  // the last evaluation counts
      }
      auto& [xs, ys] = points[axis ? number(rows[r], *x) : static_cast<double>(r)];
      xs.push_back(number(rows[r], *x));
      ys.push_back(picture.times * number(rows[r], *y));
    }
  }
  LineChart::Line line;
  for (const auto& [key, seeds] : points) {
    const double mean = Spread::of(seeds.second).mean;
    if (mean >= picture.y_from) {
      line.points.emplace_back(Spread::of(seeds.first).mean, mean);
    }
  }
  return line;
}

Result<LineChart> StudyData::picture(const StudyPicture& picture) const {
  const auto at = Sweep::parse(picture.at);
  if (!at) {
    return at.error();
  }
  const auto scale = [&](Scale::Kind linear) {
    return picture.linear ? linear : Scale::Kind::kAuto;
  };
  const bool has_start = picture.y_from != 0;
  LineChart chart{.x_title = picture.x_title,
                  .y_title = picture.y_title,
                  .lines = {},
                  .x_scale = scale(Scale::Kind::kFromZero),
                  .y_scale = scale(has_start ? Scale::Kind::kFitted : Scale::Kind::kFromZero)};
  for (std::size_t cell = 0; cell < at->cells(); ++cell) {
    auto line = this->line(picture, at->values_by_key(cell));
    if (!line) {
      return line.error();
    }
    chart.lines.push_back(*std::move(line));
    chart.lines.back().name = distinct_name(*at, cell);
  }
  return chart;
}

}  // namespace sluice
