#pragma once

#include <functional>

#include "base/units.h"
#include "model/codec.h"

namespace sluice {

// The time of a machine's arithmetic per byte of floats; see the fields of Cluster.
struct ArithmeticCost {
  double reduce_ns_per_byte = 0;  // adding one gradient to another
  double update_ns_per_byte = 0;  // applying the update rule
  double code_ns_per_byte = 0;    // mean of packing and unpacking
};

// Measures the same arithmetic as in training; medians of several repetitions.
ArithmeticCost measured_arithmetic(const std::function<Time()>& now);
// Likewise of one codec: the mean of packing and unpacking, or the selection of a sparse one.
double measured_packing(Codec codec, const std::function<Time()>& now);

}  // namespace sluice
