#pragma once

#include <functional>
#include <span>
#include <vector>

#include "formats/cluster.h"
#include "model/timing.h"
#include "nodes/assembly.h"
#include "protocol/observer.h"

namespace sluice {

// What it takes to synchronise M bytes of gradients over all workers, update included: a + b*M.

// The line with the least sum of squared relative errors of the medians, so that small sizes settle
// a and large ones b. Neither is negative, and b is not below what the wire alone takes. Needs two
// sizes.
AllReduceCost fit_allreduce(std::span<const Timing> timings, double wire_ns_per_byte = 0);

// No sum over so many machines takes less on links of this rate, whatever the collective: each
// machine must send 2 (n - 1) / n of the bytes, and receive as many.
double wire_ns_per_byte(std::size_t machines, double gbps);

// How far a line is from what was measured: (a + b*M) / median - 1.
double relative_error(const AllReduceCost& cost, const Timing& timing);

// As the simulator charges it for M bytes of gradients before they are packed: by the cluster's
// [allreduce] table, or fitted to the job's collective (the cheapest for each size, if it names
// none) on the cluster's links, between the smallest layer and all of them.
AllReduceCost simulated_allreduce(const Job& job, const Cluster& cluster);

// Trains idle learners with the assembly from the start up to iteration `last`.
using TrainAside =
    std::function<void(const Assembly& assembly, Iteration last, Observer& observer)>;

// As it is: sums of several sizes go through the engine itself, with the job's workers and
// strategy, and the first worker of this process takes the times.
std::vector<Timing> allreduce_timings(const Job& job, std::span<const std::int64_t> sizes,
                                      const TrainAside& train);
// The line for sums as large as the job's layers.
AllReduceCost measured_allreduce(const Job& job, const TrainAside& train);

}  // namespace sluice
