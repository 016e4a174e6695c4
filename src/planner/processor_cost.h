#pragma once

#include <functional>
#include <span>

#include "formats/cluster.h"
#include "planner/allreduce_cost.h"
#include "planner/arithmetic_cost.h"

namespace sluice {

// What the messages of some iterations cost a process.
struct ProcessorSample {
  double messages = 0;  // sent; as many were received
  double bytes = 0;     // likewise
  Duration time{0};     // of all its threads, without arithmetic
};

// The cost of a message at each of its ends: both are taken to be alike, since one process pays
// for both at a time. Least squares of the relative errors; neither part is negative. Needs two
// lengths of messages.
MessageCost fit_message_cost(std::span<const ProcessorSample> samples);

// Measured: slices of several lengths go through the engine itself, to servers and back, on the
// job's hosts. `processor_time` is what all threads of this process have used so far.
MessageCost measured_message_cost(const Job& job, const ArithmeticCost& arithmetic,
                                  const TrainAside& train,
                                  const std::function<Duration()>& processor_time);

}  // namespace sluice
