#include "optimizers/rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice {
namespace {

// The share of the way from the end of the warm-up to the end of the run that lies behind.
double progress(const RateSchedule& rate, Iteration iteration) {
  const Iteration done = (iteration - 1) / rate.steps_of * rate.steps_of;
  if (done <= rate.warmup) {
    return 0;
  }
  const Iteration whole = std::max<Iteration>(1, rate.end - rate.warmup);
  return std::min(1.0, static_cast<double>(done - rate.warmup) / static_cast<double>(whole));
}

// The share of the base that is left when it falls from 1 (fallen = 0) to the final one (1).
float left(const RateSchedule& rate, double fallen) {
  return static_cast<float>(1 - (1 - static_cast<double>(rate.final_share)) * fallen);
}

}  // namespace

float RateSchedule::at(Iteration iteration) const {
  float rate = base;
  if (iteration <= warmup) {
    const float risen = static_cast<float>(iteration - 1) / static_cast<float>(warmup);
    rate *= warmup_from + (1 - warmup_from) * risen;
  }
  switch (shape) {
    case RateShape::kConstant:
      return rate;
    case RateShape::kStep:
      for (const Iteration drop : drops) {
        rate *= iteration > drop ? drop_factor : 1.0F;
      }
      return rate;
    case RateShape::kCosine:
      return rate * left(*this, (1 - std::cos(std::numbers::pi * progress(*this, iteration))) / 2);
    case RateShape::kLinear:
      return rate * left(*this, progress(*this, iteration));
  }
  return rate;
}

}  // namespace sluice
