#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sluice {

// Who did what when, in lanes one below the other.
struct TimeLine {
  struct Span {
    double begin = 0;
    double end = 0;
    std::size_t kind = 0;
    std::string name = {};
  };
  struct Lane {
    std::string name;
    std::vector<Span> spans;  // in order of their beginnings
  };

  std::string title;
  std::string unit;
  std::vector<std::string> kinds;
  double length = 0;  // the time line begins at 0
  std::vector<Lane> lanes;
};

// For a page that has the style of charts and a key. Spans of one kind that no eye tells apart are
// drawn as one.
std::string to_inline_svg(const TimeLine& chart);

// For a file. Spans of one kind that are short and close together become one.
nlohmann::ordered_json to_json(const TimeLine& chart);
Result<TimeLine> time_line_from(const nlohmann::json& json);

// How much of each of so many equal parts of the time a lane was busy, at the middle of the part.
std::vector<std::pair<double, double>> busy_shares(const TimeLine& chart,
                                                   const TimeLine::Lane& lane, std::size_t bins);

}  // namespace sluice
