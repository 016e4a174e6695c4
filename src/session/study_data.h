#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/study.h"
#include "report/line_chart.h"
#include "report/spread.h"

namespace sluice {

// The rows of a sweep's CSV file, as a study looks at them. The axes come first, up to the first
// column of results. Of trainings each evaluation is a row, and cells that differ in their seeds
// are measurements of the same thing.
class StudyData {
 public:
  using Values = std::map<std::string, std::string>;  // by axis

  // Errors name the source.
  static Result<StudyData> parse(const std::string& csv, const std::string& source);

  // Errors say what is not in the data.
  Result<Spread> figure(const StudyFigure& figure) const;
  Result<LineChart> picture(const StudyPicture& picture) const;

  // What a column has at each evaluation of a run, and when.
  struct Curve {
    std::vector<double> seconds;
    std::vector<double> figures;
  };
  // One for each seed.
  Result<std::vector<Curve>> curves(const std::string& of, const Values& values) const;

 private:
  using Row = std::vector<std::string>;

  Result<std::size_t> column(const std::string& name) const;
  double number(const Row& row, std::size_t column) const;
  // Those with these values. An axis that is not named is one that the row's table does not have,
  // if there are such rows.
  std::vector<Row> rows_at(const Values& values, const std::string& but) const;
  // The rows of each seed, in their order. All rows with these values must belong to one cell,
  // apart from their seeds and the axis `but`.
  Result<std::vector<std::vector<Row>>> runs_at(const Values& values, const std::string& but) const;
  // One number for each seed.
  Result<std::vector<double>> figures_at(const StudyFigure& figure, const Values& values) const;
  Result<LineChart::Line> line(const StudyPicture& picture, const Values& values) const;

  std::vector<std::string> columns_;
  std::size_t axes_ = 0;
  std::vector<Row> rows_;
};

}  // namespace sluice
