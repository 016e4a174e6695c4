#pragma once

#include <chrono>

#include "base/units.h"

namespace sluice {

// Real time since the start of the run.
class Clock {
 public:
  Time now() const {
    return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now() - start_);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace sluice
