#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "base/id.h"
#include "base/units.h"

// What drivers report of the steps of learners.
namespace sluice {

// A worker has completed an iteration.
struct StepReport {
  std::size_t rank = 0;
  Iteration iteration = 0;
  std::optional<double> loss;  // none: the learner has none
  Time at{0};                  // of the process of worker 0
};

// A loss or a gradient that is infinite or NaN.
struct NonFinite {
  std::size_t rank = 0;
  Iteration iteration = 0;
  std::optional<LayerId> layer;  // whose gradient it is; none: it is the loss
};

using OnNonFinite = std::function<void(const NonFinite& found)>;

}  // namespace sluice
