#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

namespace sluice {

// JSON has no infinity and no NaN. Such a value is written as the text "NaN", "Infinity" or
// "-Infinity", which every JSON reader accepts and Python's float() understands.
inline nlohmann::ordered_json json_number(double value) {
  if (std::isfinite(value)) {
    return value;
  }
  return std::isnan(value) ? "NaN" : (value > 0 ? "Infinity" : "-Infinity");
}

}  // namespace sluice
