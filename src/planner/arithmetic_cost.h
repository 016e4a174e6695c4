#pragma once

#include <functional>

#include "base/units.h"

namespace sluice {

// What a machine's arithmetic takes, for each byte of floats; the fields of Cluster.
struct ArithmeticCost {
  double reduce_ns_per_byte = 0;  // adding a gradient to another
  double update_ns_per_byte = 0;  // applying the update rule
  double code_ns_per_byte = 0;    // packing to bytes or unpacking them, mean of both
};

// By doing it, as training does; medians of several repetitions.
ArithmeticCost measured_arithmetic(const std::function<Time()>& now);

}  // namespace sluice
