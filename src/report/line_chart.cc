#include "report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace sluice {
namespace {

constexpr double kHeight = 360;
constexpr double kLeft = 70;
constexpr double kTop = 16;
constexpr double kPlotWidth = 400;
constexpr double kPlotHeight = 290;
constexpr double kKeyLeft = kLeft + kPlotWidth + 12;
constexpr double kKeyText = kKeyLeft + 24;
constexpr double kLetter = 7;  // about the width of one
// Told apart in most kinds of colour blindness; repeated with dashes.
constexpr std::array kColours{"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// Maps the values of an axis to 0..1.
class Scale {
 public:
  void cover(double value) {
    check(value >= 0, "a chart has no negative values");
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }
  // After all values.
  void settle(bool linear, double from) {
    logarithmic_ = !linear && min_ > 0 && max_ > 10 * min_;
    if (!logarithmic_) {
      min_ = from;
      max_ = max_ > min_ ? max_ : min_ + 1;
    }
  }
  double place(double value) const {
    return logarithmic_ ? std::log(value / min_) / std::log(max_ / min_)
                        : (value - min_) / (max_ - min_);
  }
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (logarithmic_) {
      for (double power = std::pow(10, std::floor(std::log10(min_))); power <= max_; power *= 10) {
        for (const double step : {1.0, 2.0, 5.0}) {
          const double tick = power * step;
          if (tick >= min_ * 0.999 && tick <= max_ * 1.001) {
            ticks.push_back(tick);
          }
        }
      }
      return ticks;
    }
    const double rough = (max_ - min_) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough / power < 2 ? 1 : rough / power < 5 ? 2 : 5);
    for (double tick = std::ceil(min_ / step) * step; tick <= max_ * 1.001; tick += step) {
      ticks.push_back(tick);
    }
    return ticks;
  }

 private:
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = 0;
  bool logarithmic_ = false;
};

double x_of(const Scale& scale, double value) { return kLeft + kPlotWidth * scale.place(value); }
double y_of(const Scale& scale, double value) {
  return kTop + kPlotHeight * (1 - scale.place(value));
}

std::string axes(const LineChart& chart, const Scale& x, const Scale& y) {
  std::string svg;
  const double bottom = kTop + kPlotHeight;
  for (const double tick : x.ticks()) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
        x_of(x, tick), kTop, bottom, bottom + 16, tick);
  }
  for (const double tick : y.ticks()) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
        kLeft, y_of(y, tick), kLeft + kPlotWidth, kLeft - 6, y_of(y, tick) + 4, tick);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     kLeft + kPlotWidth / 2, kHeight - 10, escaped(chart.x_title));
  svg += fmt::format(
      "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      kTop + kPlotHeight / 2, escaped(chart.y_title));
  return svg;
}

std::string line(const LineChart::Line& of, std::size_t index, const Scale& x, const Scale& y) {
  const char* colour = kColours[index % kColours.size()];
  const std::size_t round = index / kColours.size();
  const std::string dashes =
      round == 0 ? "" : fmt::format(" stroke-dasharray=\"{} {}\"", 8 / round + 1, 3);
  std::string points;
  std::string svg;
  for (const auto& [px, py] : of.points) {
    points += fmt::format("{:.1f},{:.1f} ", x_of(x, px), y_of(y, py));
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {:g}, {:g}</title>"
        "</circle>\n",
        x_of(x, px), y_of(y, py), colour, escaped(of.name), px, py);
  }
  const double key_y = kTop + 12 + 16 * static_cast<double>(index);
  svg += fmt::format(
      "<polyline points=\"{0}\" fill=\"none\" stroke=\"{1}\" stroke-width=\"2\"{2}/>"
      "<line x1=\"{3}\" y1=\"{4}\" x2=\"{5}\" y2=\"{4}\" stroke=\"{1}\" stroke-width=\"2\"{2}/>"
      "<text x=\"{6}\" y=\"{7}\">{8}</text>\n",
      points, colour, dashes, kKeyLeft, key_y, kKeyLeft + 18, kKeyText, key_y + 4,
      escaped(of.name));
  return svg;
}

}  // namespace

std::string to_svg(const LineChart& chart) {
  Scale x;
  Scale y;
  std::size_t longest = 0;
  for (const LineChart::Line& of : chart.lines) {
    longest = std::max(longest, of.name.size());
    for (const auto& [px, py] : of.points) {
      x.cover(px);
      y.cover(py);
    }
  }
  x.settle(chart.linear, 0);
  y.settle(chart.linear, chart.y_from);
  const double height = std::max(kHeight, kTop + 24 + 16 * static_cast<double>(chart.lines.size()));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\">\n<style>text{{font:12px sans-serif;fill:#333}}.grid{{stroke:#ccc}}"
      "@media (prefers-color-scheme:dark){{text{{fill:#ddd}}.grid{{stroke:#555}}}}</style>\n",
      kKeyText + kLetter * static_cast<double>(longest + 1), height);
  svg += axes(chart, x, y);
  for (std::size_t l = 0; l < chart.lines.size(); ++l) {
    svg += line(chart.lines[l], l, x, y);
  }
  return svg + "</svg>\n";
}

}  // namespace sluice
