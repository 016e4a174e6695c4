#pragma once

#include <string>
#include <vector>

namespace sluice {

// Bars that consist of parts, one below the other, each with its name above it.
struct StackedBars {
  struct Bar {
    std::string name;
    std::vector<double> values;  // one for each part; what is not positive is left out
  };

  std::string title;
  std::string unit;
  std::vector<std::string> parts;
  std::vector<Bar> bars;
};

// For a page that has the style of charts and a key.
std::string to_inline_svg(const StackedBars& bars);

}  // namespace sluice
