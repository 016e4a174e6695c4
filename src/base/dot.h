#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace sluice {

// The sum of the products of two vectors of the same length, in double precision.
inline double dot(std::span<const float> a, std::span<const float> b) {
  std::array<double, 8> sums{};  // that do not wait for each other
  std::size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size()) {
    for (std::size_t j = 0; j < sums.size(); ++j) {
      sums[j] += static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
    }
  }
  double total = 0;
  for (; i < a.size(); ++i) {
    total += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  for (const double sum : sums) {
    total += sum;
  }
  return total;
}

}  // namespace sluice
