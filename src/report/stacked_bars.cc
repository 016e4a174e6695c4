#include "report/stacked_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/chart_style.h"
#include "report/markup.h"
#include "report/scale.h"

namespace sluice {
namespace {

constexpr double kBarsLeft = 12;
constexpr double kBarsWidth = 696;
constexpr double kRow = 56;  // a name and its bar
constexpr double kBarTop = 28;
constexpr double kBarHeight = 20;
// A narrower part has no text in it.
constexpr double kTextWidth = 44;

double length(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

double total(const StackedBars::Bar& bar) {
  return std::accumulate(bar.values.begin(), bar.values.end(), 0.0,
                         [](double sum, double value) { return sum + length(value); });
}

std::string bar_row(const StackedBars& chart, std::size_t row, const Scale& scale) {
  const StackedBars::Bar& bar = chart.bars[row];
  const double top = kRow * static_cast<double>(row);
  const double sum = total(bar);
  std::string svg =
      fmt::format("<text class=\"name\" x=\"{}\" y=\"{}\">{}: {:.4g} {}</text>", kBarsLeft,
                  top + kBarTop - 6, escaped(bar.name), sum, escaped(chart.unit));
  double before = 0;
  for (std::size_t p = 0; p < std::min(bar.values.size(), chart.parts.size()); ++p) {
    const double value = length(bar.values[p]);
    if (value == 0) {
      continue;
    }
    const double left = kBarsLeft + kBarsWidth * scale.place(before);
    const double width = kBarsLeft + kBarsWidth * scale.place(before + value) - left;
    before += value;
    const double percent = 100 * value / sum;
    svg += fmt::format(
        "<g class=\"{}\"><rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{}\"><title>{}: {:.4g} {} ({:.1f} %)</title></rect></g>",
        series_class(p), left, top + kBarTop, width, kBarHeight, escaped(chart.parts[p]), value,
        escaped(chart.unit), percent);
    if (width >= kTextWidth) {
      svg += fmt::format(
          "<text class=\"inside\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.0f} %"
          "</text>",
          left + width / 2, top + kBarTop + 14, percent);
    }
  }
  return svg + "\n";
}

std::string bar_axis(const StackedBars& chart, const Scale& scale) {
  const double bottom = kRow * static_cast<double>(chart.bars.size());
  std::string svg;
  for (const double tick : scale.ticks()) {
    const double x = kBarsLeft + kBarsWidth * scale.place(tick);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"0\" x2=\"{0:.1f}\" y2=\"{1}\"/>"
        "<text x=\"{0:.1f}\" y=\"{2}\" text-anchor=\"{3}\">{4}{5}</text>",
        x, bottom, bottom + 18,
        tick == 0                           ? "start"
        : x > kBarsLeft + kBarsWidth * 0.98 ? "end"
                                            : "middle",
        tick_label(tick), tick == 0 ? "" : " " + escaped(chart.unit));
  }
  return svg + "\n";
}

}  // namespace

std::string to_inline_svg(const StackedBars& chart) {
  double longest = 0;
  for (const StackedBars::Bar& bar : chart.bars) {
    longest = std::max(longest, total(bar));
  }
  const Scale scale = Scale::over(0, longest, Scale::Kind::kExact);
  std::string svg = fmt::format(
      "<svg class=\"chart wide\" role=\"img\" viewBox=\"0 0 {} {}\">\n<title>{}</title><desc>Bars "
      "in {}</desc>\n",
      kBarsLeft * 2 + kBarsWidth, kRow * static_cast<double>(chart.bars.size()) + 26,
      escaped(chart.title), escaped(chart.unit));
  svg += bar_axis(chart, scale);
  for (std::size_t row = 0; row < chart.bars.size(); ++row) {
    svg += bar_row(chart, row, scale);
  }
  return svg + "</svg>\n";
}

}  // namespace sluice
