#pragma once

#include <functional>
#include <span>
#include <vector>

#include "formats/cluster.h"
#include "model/timing.h"
#include "nodes/assembly.h"
#include "partition/merge.h"
#include "protocol/observer.h"

namespace sluice {

// The time to synchronise M bytes of gradients over all workers, including the update: a + b*M.

// The line with the least sum of squared relative errors of the medians, so that small sizes
// determine a and large ones b. Neither is negative, and b is at least what the wire takes. Needs
// two sizes.
AllReduceCost fit_allreduce(std::span<const Timing> timings, double wire_ns_per_byte = 0);

// The minimum for a sum over this many machines at this rate, with any collective: each machine
// must send 2 (n - 1) / n of the bytes, and receive as many.
double wire_ns_per_byte(std::size_t machines, double gbps);

// How far the line is from the measurement: (a + b*M) / median - 1.
double relative_error(const AllReduceCost& cost, const Timing& timing);

// What the simulator charges for M bytes of gradients before packing. Uses the cluster's
// [allreduce] table, or a fit to the job's collective (the cheapest for each size, if the job names
// none) on the cluster's links, from the smallest layer up to all layers together.
StreamCost simulated_allreduce(const Job& job, const Cluster& cluster);

// Trains idle learners with the assembly from the start up to iteration `last`.
using TrainAside =
    std::function<void(const Assembly& assembly, Iteration last, Observer& observer)>;

// Measured: sums of several sizes run through the engine itself, with the job's workers and
// strategy. The first worker of this process takes the times.
std::vector<Timing> allreduce_timings(const Job& job, std::span<const std::int64_t> sizes,
                                      const TrainAside& train);
// The lines for sums of the sizes of the job's layers, alone and several at once.
StreamCost measured_allreduce(const Job& job, const TrainAside& train);

}  // namespace sluice
