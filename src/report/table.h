#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice {

// A text table with aligned columns, for reports.
class Table {
 public:
  enum class Align : bool { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  // A table whose columns have no titles has no header line.
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Takes one cell per column.
  void add_row(std::vector<std::string> cells);
  // Lines have no trailing blanks; the last one ends with a line break too.
  std::string render() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace sluice
