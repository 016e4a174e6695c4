#pragma once

#include <thread>

#include "drivers/realtime/clock.h"
#include "learners/sleeper.h"

namespace sluice {

class SteadySleeper final : public Sleeper {
 public:
  Time now() const override { return clock_.now(); }
  void rest_until(Time moment) const override { std::this_thread::sleep_until(clock_.at(moment)); }

 private:
  Clock clock_;
};

}  // namespace sluice
