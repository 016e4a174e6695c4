#include "report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/chart_style.h"
#include "report/markup.h"

namespace sluice {
namespace {

// Where the points are, in the units of the picture.
struct Frame {
  double left;
  double top;
  double width;
  double height;

  double bottom() const { return top + height; }
  double right() const { return left + width; }
};

constexpr Frame kPageFrame{.left = 52, .top = 12, .width = 356, .height = 200};
constexpr Frame kFileFrame{.left = 70, .top = 16, .width = 400, .height = 290};
constexpr double kBelow = 48;  // ticks and title of the axis
constexpr double kKeyGap = 16;
constexpr double kKeyRow = 18;
constexpr double kLetter = 7;  // about the width of one
// More points than this are drawn as a line only.
constexpr std::size_t kMaxDots = 40;

// The finite values of an axis.
struct Values {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();

  void cover(double value) {
    if (std::isfinite(value)) {
      min = std::min(min, value);
      max = std::max(max, value);
    }
  }
  Scale scale(Scale::Kind kind) const {
    return min <= max ? Scale::over(min, max, kind) : Scale::over(0, 1, Scale::Kind::kFromZero);
  }
};

class Plot {
 public:
  Plot(const LineChart& chart, const Frame& frame)
      : chart_(chart), frame_(frame), x_(x_scale(chart)), y_(y_scale(chart)) {}

  std::string axes() const;
  std::string line(const LineChart::Line& line, std::size_t index) const;

 private:
  static Scale x_scale(const LineChart& chart) {
    Values values;
    for (const LineChart::Line& line : chart.lines) {
      for (const auto& [x, y] : line.points) {
        values.cover(x);
      }
    }
    return values.scale(chart.x_scale);
  }
  static Scale y_scale(const LineChart& chart) {
    Values values;
    for (const LineChart::Line& line : chart.lines) {
      for (const auto& [x, y] : line.points) {
        values.cover(y);
      }
      for (const auto& [low, high] : line.spread) {
        values.cover(low);
        values.cover(high);
      }
    }
    return values.scale(chart.y_scale);
  }
  double x_of(double value) const { return frame_.left + frame_.width * x_.place(value); }
  double y_of(double value) const { return frame_.top + frame_.height * (1 - y_.place(value)); }
  std::string at(double x, double y) const {
    return fmt::format("{:.1f},{:.1f} ", x_of(x), y_of(y));
  }
  std::string band(const LineChart::Line& line) const;
  std::string dots(const LineChart::Line& line) const;

  const LineChart& chart_;
  Frame frame_;
  Scale x_;
  Scale y_;
};

std::string Plot::axes() const {
  std::string svg;
  for (const double tick : x_.ticks()) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        x_of(tick), frame_.top, frame_.bottom(), frame_.bottom() + 17, tick_label(tick));
  }
  for (const double tick : y_.ticks()) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        frame_.left, y_of(tick), frame_.right(), frame_.left - 7, y_of(tick) + 4, tick_label(tick));
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     frame_.left + frame_.width / 2, frame_.bottom() + 38, escaped(chart_.x_title));
  return svg + fmt::format(
                   "<text transform=\"translate(13 {}) rotate(-90)\" text-anchor=\"middle\">{}"
                   "</text>\n",
                   frame_.top + frame_.height / 2, escaped(chart_.y_title));
}

std::string Plot::band(const LineChart::Line& line) const {
  std::string upper;
  std::string lower;
  for (std::size_t i = 0; i < std::min(line.points.size(), line.spread.size()); ++i) {
    const double x = line.points[i].first;
    const auto [low, high] = line.spread[i];
    if (std::isfinite(x) && std::isfinite(low) && std::isfinite(high)) {
      upper += at(x, high);
      lower.insert(0, at(x, low));
    }
  }
  return upper.empty() ? ""
                       : fmt::format("<polygon class=\"area\" points=\"{}{}\"/>", upper, lower);
}

std::string Plot::dots(const LineChart::Line& line) const {
  std::string svg;
  for (const auto& [x, y] : line.points) {
    if (std::isfinite(x) && std::isfinite(y)) {
      svg += fmt::format(
          "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: {:g}, {:g}</title>"
          "</circle>",
          x_of(x), y_of(y), escaped(line.name), x, y);
    }
  }
  return svg;
}

std::string Plot::line(const LineChart::Line& line, std::size_t index) const {
  std::string points;
  for (const auto& [x, y] : line.points) {
    if (std::isfinite(x) && std::isfinite(y)) {
      points += at(x, y);
    }
  }
  return fmt::format(
      "<g class=\"{}\">{}<polyline class=\"line\" points=\"{}\"{}><title>{}</title></polyline>{}"
      "</g>\n",
      series_class(index), band(line), points, series_dashes(index), escaped(line.name),
      line.points.size() <= kMaxDots ? dots(line) : "");
}

// What a screen reader says.
std::string spoken(const LineChart& chart) {
  std::string names;
  for (const LineChart::Line& line : chart.lines) {
    names += (names.empty() ? "" : ", ") + line.name;
  }
  const std::string title =
      chart.title.empty() ? chart.y_title + " by " + chart.x_title : chart.title;
  return fmt::format("<title>{}</title><desc>{} by {}: {}</desc>\n", escaped(title),
                     escaped(chart.y_title), escaped(chart.x_title), escaped(names));
}

std::string body(const LineChart& chart, const Frame& frame) {
  const Plot plot(chart, frame);
  std::string svg = spoken(chart) + plot.axes();
  for (std::size_t l = 0; l < chart.lines.size(); ++l) {
    svg += plot.line(chart.lines[l], l);
  }
  return svg;
}

std::string key(const LineChart& chart, const Frame& frame) {
  const double left = frame.right() + kKeyGap;
  std::string svg;
  for (std::size_t l = 0; l < chart.lines.size(); ++l) {
    const double y = frame.top + 8 + kKeyRow * static_cast<double>(l);
    svg += fmt::format(
        "<g class=\"{}\"><line class=\"line\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/></g>"
        "<text x=\"{}\" y=\"{}\">{}</text>\n",
        series_class(l), left, y, left + 20, y, series_dashes(l), left + 27, y + 4,
        escaped(chart.lines[l].name));
  }
  return svg;
}

}  // namespace

std::string to_svg(const LineChart& chart) {
  std::size_t longest = 0;
  for (const LineChart::Line& line : chart.lines) {
    longest = std::max(longest, line.name.size());
  }
  const Frame& frame = kFileFrame;
  const double key_height = frame.top + kKeyRow * static_cast<double>(chart.lines.size() + 1);
  const double key_width = kKeyGap + 27 + kLetter * static_cast<double>(longest + 1);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" "
             "viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n<style>{2}</style>\n",
             frame.right() + key_width, std::max(frame.bottom() + kBelow, key_height),
             chart_css()) +
         body(chart, frame) + key(chart, frame) + "</svg>\n";
}

std::string to_inline_svg(const LineChart& chart) {
  const Frame& frame = kPageFrame;
  return fmt::format("<svg class=\"chart\" role=\"img\" viewBox=\"0 0 {} {}\">\n",
                     frame.right() + 18, frame.bottom() + kBelow) +
         body(chart, frame) + "</svg>\n";
}

}  // namespace sluice
