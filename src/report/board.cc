#include "report/board.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/chart_style.h"
#include "report/markup.h"
#include "report/table.h"

namespace sluice {
namespace {

constexpr double kHead = 56;  // title and names of the columns
constexpr double kRowHeight = 40;
constexpr double kPadding = 12;
constexpr double kCharacter = 7;  // about the width of one

double column_width(std::size_t characters) {
  return kCharacter * static_cast<double>(characters) + 2 * kPadding;
}

std::string text_at(double x, double y, const std::string& text) {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", x, y, escaped(text));
}

std::string cell_svg(const Board::Cell& cell, double x, double y, double width) {
  if (cell.name.empty()) {
    return text_at(x + kPadding, y + 24, "-");
  }
  return fmt::format(
      "<g class=\"{}\"><rect class=\"area\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
      "height=\"{:.0f}\"><title>{}</title></rect></g>{}{}\n",
      series_class(cell.series), x + 1, y + 1, width - 2, kRowHeight - 2,
      escaped(fmt::format("{}", fmt::join(cell.all, "; "))),
      text_at(x + kPadding, y + 17, cell.name), text_at(x + kPadding, y + 32, cell.figure));
}

}  // namespace

std::string to_svg(const Board& board) {
  std::size_t names = 0;
  std::vector<double> widths;
  for (const std::string& column : board.columns) {
    widths.push_back(column_width(column.size()));
  }
  for (const Board::Row& row : board.rows) {
    names = std::max(names, row.name.size());
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      const std::size_t longest = std::max(row.cells[c].name.size(), row.cells[c].figure.size());
      widths[c] = std::max(widths[c], column_width(longest));
    }
  }
  std::string body;
  double x = column_width(names);
  for (std::size_t c = 0; c < board.columns.size(); ++c) {
    body += text_at(x + kPadding, kHead - 8, board.columns[c]) + "\n";
    for (std::size_t r = 0; r < board.rows.size(); ++r) {
      const double y = kHead + kRowHeight * static_cast<double>(r);
      body += cell_svg(board.rows[r].cells[c], x, y, widths[c]);
    }
    x += widths[c];
  }
  for (std::size_t r = 0; r < board.rows.size(); ++r) {
    const double y = kHead + kRowHeight * static_cast<double>(r);
    body += text_at(kPadding, y + 24, board.rows[r].name) + "\n";
  }
  const double width = std::max(x, column_width(board.title.size())) + kPadding;
  const double height = kHead + kRowHeight * static_cast<double>(board.rows.size()) + kPadding;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\"><style>{2}</style>\n"
      "<title>{3}</title>{4}\n{5}</svg>\n",
      width, height, chart_css(), escaped(board.title), text_at(kPadding, 20, board.title), body);
}

std::string to_text(const Board& board) {
  std::vector<Table::Column> columns{{""}};
  for (const std::string& column : board.columns) {
    columns.push_back({column});
  }
  Table table(columns);
  for (const Board::Row& row : board.rows) {
    std::vector<std::string> cells{row.name};
    for (const Board::Cell& cell : row.cells) {
      cells.push_back(cell.name.empty() ? "-" : fmt::format("{}, {}", cell.name, cell.figure));
    }
    table.add_row(std::move(cells));
  }
  return table.render();
}

}  // namespace sluice
