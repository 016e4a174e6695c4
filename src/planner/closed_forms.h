#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "formats/cluster.h"
#include "formats/profile.h"

namespace sluice {

// The papers' equations for the time and the traffic of one iteration, with their equation numbers.
// Layers count from 0 here and from 1 there. Two parts are elsewhere: Table II of MG-WFBP, the cost
// a + b*M of an all-reduce, is collective_cost of collectives/cost.h; its Eq. 20 and 21 are
// merged_iteration of partition/merge.h.

// ---- MG-WFBP. A layer without parameters sends no message. --------------------------------------

// Eq. 3: one message per layer, nothing overlaps.
Duration naive_iteration(const Profile& profile, const AllReduceCost& cost);
// Eq. 3 with one message for all layers (SyncEASGD).
Duration single_iteration(const Profile& profile, const AllReduceCost& cost);
// Eq. 6-8: one message per layer, sent as soon as its gradient is final.
Duration wfbp_iteration(const Profile& profile, const AllReduceCost& cost);
// Eq. 11 and 12, cases 1 and 2 of WFBP: all messages but the first layer's hide behind backward.
Duration hidden_iteration(const Profile& profile, const AllReduceCost& cost);
// Eq. 13, case 3: from the message of layer `bottleneck` on, the channel is never idle. The printed
// sum of backward times has wrong indices; it runs over the layers down to the bottleneck. WFBP
// takes the largest of these times.
Duration exposed_iteration(const Profile& profile, const AllReduceCost& cost,
                           std::size_t bottleneck);
// Eq. 4 and 5: compared with one worker, if this much of the communication is exposed.
double speedup(std::size_t workers, Duration compute, Duration exposed);

// ---- Pipe-SGD. T iterations take T times as long. -----------------------------------------------

struct Stages {
  Duration update{0};
  Duration compute{0};  // forward and backward
  Duration communicate{0};
};

// Eq. 2: D-Sync, one stage after another.
Duration synchronous_iteration(const Stages& stages);
// Eq. 3: K iterations at a time, with unlimited computers and links.
Duration ideal_pipelined_iteration(const Stages& stages, std::int64_t depth);
// Eq. 4: one computer and one link per worker; the same for any K >= 2.
Duration pipelined_iteration(const Stages& stages);
// The communication in Eq. 5 (one segment: sequential) and Eq. 6 (pipelined with backward): every
// segment of the gradients pays the start-up and the synchronisation S. The compute stage of Eq. 6
// includes backward only up to the first segment.
Duration segmented_all_reduce(const AllReduceCost& cost, Bytes bytes, std::int64_t segments,
                              Duration sync);
// Eq. 7: throughput of a worker relative to one that trains alone.
double scaling_efficiency(const Stages& stages);

// ---- Analysis, Table I --------------------------------------------------------------------------

// How often the model's bytes cross the network per iteration and worker: the table's entries
// divided by M * N.
constexpr double bsp_traffic(double aggregated_workers) { return 2 / aggregated_workers; }  // l
inline constexpr double kAspTraffic = 2;
constexpr double ssp_traffic(double staleness) { return 1 + 1 / (staleness + 1); }  // s
constexpr double easgd_traffic(double period) { return 2 / period; }                // tau
inline constexpr double kAllReduceTraffic = 2;  // a ring needs 2 / N less
constexpr double gossip_traffic(double probability) { return probability; }  // p
inline constexpr double kPairwiseTraffic = 1;

}  // namespace sluice
