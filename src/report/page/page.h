#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "report/line_chart.h"
#include "report/stacked_bars.h"
#include "report/time_line.h"

// A page for people to look at, as plain values. All texts are as they are: to_html() escapes them.
namespace sluice {

// What stands out at the top of a section.
struct Statement {
  std::string headline;
  std::vector<std::string> sentences;
};

// A few figures in large type.
struct Highlights {
  std::vector<std::pair<std::string, std::string>> figures;  // name and value
};

struct PageTable {
  std::vector<std::string> titles;  // the first column holds names, the others values
  std::vector<std::vector<std::string>> rows;
  std::string folded = {};  // if not empty, the table is folded under this text
};

struct Paragraph {
  std::string text;
};

// Charts that stand side by side where there is room.
struct Charts {
  std::vector<LineChart> charts;
};

using Block =
    std::variant<Statement, Highlights, PageTable, Paragraph, Charts, StackedBars, TimeLine>;

struct Section {
  std::string title;
  std::vector<Block> blocks;
};

struct Page {
  std::string title;
  std::string subtitle;
  std::vector<Section> sections;
};

// One file that needs no other: style and pictures are inside. Every chart has its numbers in a
// table beside it.
std::string to_html(const Page& page);

}  // namespace sluice
