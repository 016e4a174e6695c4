#include "report/table.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace sluice {
namespace {

// The number of characters, not bytes, of UTF-8 text.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  check(cells.size() == columns_.size(), "a row has one cell for each column");
  rows_.push_back(std::move(cells));
}

std::string Table::render() const {
  std::vector<std::vector<std::string>> lines;
  if (std::ranges::any_of(columns_, [](const Column& c) { return !c.title.empty(); })) {
    auto& titles = lines.emplace_back();
    std::ranges::transform(columns_, std::back_inserter(titles), &Column::title);
  }
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      widths[c] = std::max(widths[c], width_of(line[c]));
    }
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t c = 0; c < line.size(); ++c) {
      const std::string padding(widths[c] - width_of(line[c]), ' ');
      row += c == 0 ? "" : "  ";
      row += columns_[c].align == Align::kRight ? padding + line[c] : line[c] + padding;
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace sluice
