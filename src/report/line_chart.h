#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice {

// Lines over a number, as a picture. An axis is logarithmic if its values are positive and differ
// by more than a factor of ten, unless both are to be linear.
struct LineChart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // x and y, not negative
  };

  std::string x_title;
  std::string y_title;
  std::vector<Line> lines;
  bool linear = false;
  double y_from = 0;  // where a linear y axis begins
};

// A self-contained SVG that suits light and dark pages.
std::string to_svg(const LineChart& chart);

}  // namespace sluice
