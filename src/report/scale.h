#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

// Maps the values of an axis to 0 ... 1.
class Scale {
 public:
  enum class Kind : std::uint8_t {
    kAuto,      // logarithmic if the largest value is more than ten times the smallest, else from 0
    kFitted,    // linear, from a little below the smallest value to a little above the largest
    kFromZero,  // linear
    kExact,     // linear, from the smallest value to the largest
  };

  // Over finite values from `min` to `max`. A linear scale begins and ends at a tick, unless it is
  // exact.
  static Scale over(double min, double max, Kind kind);

  double place(double value) const;
  // Ascending, 2 to 12 of them, none outside the scale.
  std::vector<double> ticks() const;

 private:
  double min_ = 0;
  double max_ = 1;
  double step_ = 0;  // between ticks; 0: the scale is logarithmic
};

// A number at a tick, short: 0.5, 20k, 1.5M.
std::string tick_label(double value);

}  // namespace sluice
