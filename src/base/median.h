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

}  // namespace sluice
