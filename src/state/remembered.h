#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sluice {

// Numbers of a node that later iterations depend on, under a name. The parts make up one array.
struct Remembered {
  std::string name;
  std::vector<std::span<float>> parts;

  std::size_t size() const {
    std::size_t sum = 0;
    for (const auto& part : parts) {
      sum += part.size();
    }
    return sum;
  }
};

}  // namespace sluice
