#include "report/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/chart_style.h"
#include "report/markup.h"
#include "report/page/style.h"

namespace sluice {
namespace {

// Rows of the table beside a chart; more points than this are thinned out.
constexpr std::size_t kMaxRows = 30;

std::string list_item(const std::string& classes, const std::string& text) {
  return fmt::format("<li><i class=\"{}\"></i>{}</li>", classes, escaped(text));
}

// An unnamed series is left out.
std::string legend(const std::vector<std::string>& names) {
  std::string items;
  for (std::size_t i = 0; i < names.size(); ++i) {
    items += names[i].empty() ? "" : list_item(series_class(i), names[i]);
  }
  return "<ul class=\"legend\">" + items + "</ul>";
}

std::string table_row(const std::vector<std::string>& cells, std::size_t columns) {
  std::string row = "<tr>";
  for (std::size_t c = 0; c < columns; ++c) {
    const std::string text = c < cells.size() ? escaped(cells[c]) : "";
    row += c == 0 ? "<th scope=\"row\">" + text + "</th>" : "<td>" + text + "</td>";
  }
  return row + "</tr>\n";
}

std::string html_of(const PageTable& table) {
  std::string html = "<div class=\"scroll\"><table>";
  const bool titled = std::ranges::any_of(table.titles, [](const auto& t) { return !t.empty(); });
  if (titled) {
    html += "<thead><tr>";
    for (const std::string& title : table.titles) {
      html += "<th scope=\"col\">" + escaped(title) + "</th>";
    }
    html += "</tr></thead>";
  }
  html += "<tbody>\n";
  for (const auto& row : table.rows) {
    html += table_row(row, table.titles.size());
  }
  html += "</tbody></table></div>\n";
  return table.folded.empty()
             ? html
             : "<details><summary>" + escaped(table.folded) + "</summary>" + html + "</details>\n";
}

// The numbers of a chart.
PageTable numbers_of(const LineChart& chart) {
  PageTable table{.titles = {chart.x_title, chart.y_title}, .rows = {}, .folded = "Numbers"};
  if (chart.lines.size() > 1) {
    table.titles.insert(table.titles.begin(), "");
  }
  for (const LineChart::Line& line : chart.lines) {
    const std::size_t every =
        std::max<std::size_t>(1, (line.points.size() + kMaxRows - 1) / kMaxRows);
    for (std::size_t i = 0; i < line.points.size(); i += every) {
      const auto [x, y] = line.points[i];
      std::vector<std::string> row{fmt::format("{:.6g}", x), fmt::format("{:.5g}", y)};
      if (chart.lines.size() > 1) {
        row.insert(row.begin(), line.name);
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

PageTable numbers_of(const StackedBars& chart) {
  PageTable table{.titles = {""}, .rows = {}, .folded = "Numbers"};
  for (const StackedBars::Bar& bar : chart.bars) {
    table.titles.push_back(bar.name + ", " + chart.unit);
  }
  for (std::size_t p = 0; p < chart.parts.size(); ++p) {
    std::vector<std::string> row{chart.parts[p]};
    for (const StackedBars::Bar& bar : chart.bars) {
      row.push_back(p < bar.values.size() ? fmt::format("{:.4g}", bar.values[p]) : "");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// How much of the time each lane spent on what.
PageTable numbers_of(const TimeLine& chart) {
  PageTable table{.titles = {""}, .rows = {}, .folded = "Numbers"};
  for (const std::string& kind : chart.kinds) {
    table.titles.push_back(kind + ", " + chart.unit);
  }
  for (const TimeLine::Lane& lane : chart.lanes) {
    std::vector<double> sums(chart.kinds.size());
    for (const TimeLine::Span& span : lane.spans) {
      if (span.kind < sums.size()) {
        sums[span.kind] += span.end - span.begin;
      }
    }
    std::vector<std::string> row{lane.name};
    for (const double sum : sums) {
      row.push_back(fmt::format("{:.4g}", sum));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string figure(const std::string& title, const std::string& svg,
                   const std::vector<std::string>& names, const PageTable& numbers) {
  return fmt::format("<figure><figcaption>{}</figcaption>\n{}{}{}</figure>\n", escaped(title), svg,
                     names.size() > 1 ? legend(names) : "", html_of(numbers));
}

std::string html_of(const LineChart& chart) {
  std::vector<std::string> names;
  for (const LineChart::Line& line : chart.lines) {
    names.push_back(line.name);
  }
  return figure(chart.title, to_inline_svg(chart), names, numbers_of(chart));
}

std::string html_of(const Charts& charts) {
  std::string html;
  for (const LineChart& chart : charts.charts) {
    html += html_of(chart);
  }
  return html.empty() ? "" : "<div class=\"charts\">" + html + "</div>\n";
}

std::string html_of(const StackedBars& chart) {
  std::vector<std::string> names(chart.parts.size());
  for (const StackedBars::Bar& bar : chart.bars) {
    for (std::size_t p = 0; p < std::min(names.size(), bar.values.size()); ++p) {
      names[p] = bar.values[p] > 0 ? chart.parts[p] : names[p];
    }
  }
  return figure(chart.title, to_inline_svg(chart), names, numbers_of(chart));
}

std::string html_of(const TimeLine& chart) {
  std::vector<std::string> names(chart.kinds.size());
  for (const TimeLine::Lane& lane : chart.lanes) {
    for (const TimeLine::Span& span : lane.spans) {
      if (span.kind < names.size()) {
        names[span.kind] = chart.kinds[span.kind];
      }
    }
  }
  return figure(chart.title, to_inline_svg(chart), names, numbers_of(chart));
}

std::string html_of(const Statement& statement) {
  std::string html =
      "<div class=\"statement\"><p><strong>" + escaped(statement.headline) + "</strong></p>";
  for (const std::string& sentence : statement.sentences) {
    html += "<p>" + escaped(sentence) + "</p>";
  }
  return html + "</div>\n";
}

std::string html_of(const Highlights& highlights) {
  std::string html = "<dl class=\"highlights\">";
  for (const auto& [name, value] : highlights.figures) {
    html += "<div><dt>" + escaped(name) + "</dt><dd>" + escaped(value) + "</dd></div>";
  }
  return html + "</dl>\n";
}

std::string html_of(const Paragraph& paragraph) {
  return "<p>" + escaped(paragraph.text) + "</p>\n";
}

std::string html_of(const Section& section) {
  std::string html = "<section>";
  if (!section.title.empty()) {
    html += "<h2>" + escaped(section.title) + "</h2>\n";
  }
  for (const Block& block : section.blocks) {
    html += std::visit([](const auto& of) { return html_of(of); }, block);
  }
  return html + "</section>\n";
}

}  // namespace

std::string to_html(const Page& page) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0}</title>\n<style>{1}{2}</style></head>\n<body><main>\n"
      "<header><h1>{0}</h1><p>{3}</p></header>\n",
      escaped(page.title), page_css(), chart_css(), escaped(page.subtitle));
  for (const Section& section : page.sections) {
    html += html_of(section);
  }
  return html + "</main></body></html>\n";
}

}  // namespace sluice
