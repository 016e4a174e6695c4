#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/scale.h"

namespace sluice {

// Lines over a number, as a picture. What is not finite is left out.
struct LineChart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // x and y, in order of x
    // The smallest and the largest y of each point, drawn as a band; empty: there is none.
    std::vector<std::pair<double, double>> spread = {};
  };

  std::string x_title;
  std::string y_title;
  std::vector<Line> lines;
  std::string title = {};
  Scale::Kind x_scale = Scale::Kind::kAuto;
  Scale::Kind y_scale = Scale::Kind::kAuto;
};

// A self-contained SVG with a key, which suits light and dark pages.
std::string to_svg(const LineChart& chart);

// The same without style and key, for a page that has both.
std::string to_inline_svg(const LineChart& chart);

}  // namespace sluice
