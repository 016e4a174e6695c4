#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"

namespace sluice {

// Of two values in the middle the larger one.
template <class T>
T median_of(std::vector<T> values) {
  check(!values.empty(), "a median is one of several values");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How far the middle half of the values lie apart.
template <class T>
T interquartile_range(std::vector<T> values) {
  check(!values.empty(), "a spread is that of several values");
  std::sort(values.begin(), values.end());
  const std::size_t outside = values.size() / 4;
  return values[values.size() - 1 - outside] - values[outside];
}

}  // namespace sluice
