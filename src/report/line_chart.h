#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice {

// Lines over a number, as a picture. An axis is logarithmic if its values differ by more than a
// factor of ten.
struct LineChart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // x and y, both positive
  };

  std::string x_title;
  std::string y_title;
  std::vector<Line> lines;
};

// A self-contained SVG that suits light and dark pages.
std::string to_svg(const LineChart& chart);

}  // namespace sluice
