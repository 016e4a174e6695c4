#pragma once

#include <chrono>

#include "base/units.h"

namespace sluice {

// Real time since the start of the run.
class Clock {
 public:
  Clock() = default;
  // That shows this now: of a process that joins a run which started before.
  explicit Clock(Time now)
      : start_(std::chrono::steady_clock::now() -
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(now)) {}

  Time now() const {
    return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now() - start_);
  }
  // The same moment on the system's clock.
  std::chrono::steady_clock::time_point at(Time moment) const {
    return start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(moment);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace sluice
