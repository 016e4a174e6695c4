#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <string>

namespace sluice {

// Some measurements of one thing: their mean and their (sample) standard deviation.
struct Spread {
  double mean = 0;
  double deviation = 0;
  std::size_t count = 0;

  static Spread of(std::span<const double> values) {
    Spread spread{.mean = 0, .deviation = 0, .count = values.size()};
    for (const double value : values) {
      spread.mean += value / static_cast<double>(values.size());
    }
    double squares = 0;
    for (const double value : values) {
      squares += (value - spread.mean) * (value - spread.mean);
    }
    if (values.size() > 1) {
      spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
    }
    return spread;
  }

  // "89.2 ± 0.3", or without the deviation if there is one measurement.
  std::string text(int decimals) const {
    return count > 1 ? fmt::format("{:.{}f} ± {:.{}f}", mean, decimals, deviation, decimals)
                     : fmt::format("{:.{}f}", mean, decimals);
  }
};

}  // namespace sluice
