#include "session/contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/spread.h"
#include "session/sweep.h"

namespace sluice {
namespace {

using Curve = StudyData::Curve;

// The runs of one competitor, which differ in their seeds.
struct Competitor {
  std::string name;
  std::vector<Curve> curves;

  // When it has seen all samples.
  double end() const {
    double sum = 0;
    for (const Curve& curve : curves) {
      sum += curve.seconds.back();
    }
    return sum / static_cast<double>(curves.size());
  }
  bool diverged() const {
    return std::ranges::any_of(curves,
                               [](const Curve& c) { return !std::isfinite(c.figures.back()); });
  }
};

// None: there is no evaluation yet.
std::optional<double> figure_after(const Curve& curve, double seconds) {
  const auto later = std::ranges::upper_bound(curve.seconds, seconds);
  if (later == curve.seconds.begin()) {
    return std::nullopt;
  }
  const auto i = static_cast<std::size_t>(later - curve.seconds.begin()) - 1;
  if (later == curve.seconds.end()) {
    return curve.figures[i];
  }
  const double part = (seconds - curve.seconds[i]) / (curve.seconds[i + 1] - curve.seconds[i]);
  return curve.figures[i] + part * (curve.figures[i + 1] - curve.figures[i]);
}

std::optional<Spread> spread_after(const Competitor& competitor, double seconds) {
  std::vector<double> figures;
  for (const Curve& curve : competitor.curves) {
    const auto figure = figure_after(curve, seconds);
    if (!figure) {
      return std::nullopt;
    }
    figures.push_back(*figure);
  }
  return Spread::of(figures);
}

Board::Cell winner_after(const std::vector<Competitor>& all, double seconds) {
  Board::Cell cell;
  double smallest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto spread = all[i].diverged() ? std::nullopt : spread_after(all[i], seconds);
    cell.all.push_back(
        fmt::format("{}: {}", all[i].name, spread ? spread->text(3) : std::string("-")));
    if (spread && spread->mean < smallest) {
      smallest = spread->mean;
      cell.name = all[i].name;
      cell.figure = spread->text(3);
      cell.series = i;
    }
  }
  return cell;
}

double first_end(const std::vector<Competitor>& all) {
  double first = std::numeric_limits<double>::infinity();
  for (const Competitor& competitor : all) {
    if (!competitor.diverged()) {
      first = std::min(first, competitor.end());
    }
  }
  return first;
}

// The contests of a row, by column.
Result<std::vector<std::vector<Competitor>>> competitors_of(const StudyContest& contest,
                                                            const StudyData& data,
                                                            const StudyData::Values& row,
                                                            const Sweep& columns,
                                                            const Sweep& among) {
  std::vector<std::vector<Competitor>> all(columns.cells());
  for (std::size_t c = 0; c < columns.cells(); ++c) {
    for (std::size_t a = 0; a < among.cells(); ++a) {
      StudyData::Values values = among.values_by_key(a);
      values.insert(row.begin(), row.end());
      values.merge(columns.values_by_key(c));
      auto curves = data.curves(contest.of, values);
      if (!curves) {
        return curves.error();
      }
      all[c].push_back({line_name(among.axes(), among.values(a)), *std::move(curves)});
    }
  }
  return all;
}

}  // namespace

Result<Board> decide(const StudyContest& contest, const StudyData& data) {
  const auto among = Sweep::parse(contest.among);
  const auto rows = Sweep::parse(contest.rows);
  const auto columns = Sweep::parse(contest.columns);
  if (!among || !rows || !columns) {
    return !among ? among.error() : !rows ? rows.error() : columns.error();
  }
  Board board{.title = contest.title, .columns = {"equal samples"}, .rows = {}};
  for (std::size_t c = 0; c < columns->cells(); ++c) {
    board.columns.push_back("equal seconds, " + columns->name(c));
  }
  for (std::size_t r = 0; r < rows->cells(); ++r) {
    const auto all = competitors_of(contest, data, rows->values_by_key(r), *columns, *among);
    if (!all) {
      return all.error();
    }
    Board::Row& row = board.rows.emplace_back();
    row.name = distinct_name(*rows, r);
    row.cells.push_back(winner_after(all->front(), std::numeric_limits<double>::infinity()));
    for (const std::vector<Competitor>& column : *all) {
      row.cells.push_back(winner_after(column, first_end(column)));
    }
  }
  return board;
}

}  // namespace sluice
