#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice {

// A table of winners: who is best in each row and column.
struct Board {
  struct Cell {
    std::string name;  // of the winner; empty: there is none
    std::string figure;
    std::size_t series = 0;        // a winner has the same colour everywhere
    std::vector<std::string> all;  // the figures of all, with their names
  };
  struct Row {
    std::string name;
    std::vector<Cell> cells;  // one for each column
  };

  std::string title;
  std::vector<std::string> columns;
  std::vector<Row> rows;
};

// A self-contained SVG, which suits light and dark pages.
std::string to_svg(const Board& board);

// The same as lines of text.
std::string to_text(const Board& board);

}  // namespace sluice
