#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"

namespace sluice {

// The larger one of two middle values.
template <class T>
T median_of(std::vector<T> values) {
  check(!values.empty(), "a median needs at least one value");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The width of the middle half of the values.
template <class T>
T interquartile_range(std::vector<T> values) {
  check(!values.empty(), "an interquartile range needs at least one value");
  std::sort(values.begin(), values.end());
  const std::size_t outside = values.size() / 4;
  return values[values.size() - 1 - outside] - values[outside];
}

}  // namespace sluice
