#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "formats/cluster.h"
#include "formats/profile.h"

namespace sluice {

// The papers' equations for the time of one iteration and for what it moves. Equation numbers are
// theirs. Layers count from 0 here and from 1 there. Table II of MG-WFBP, which gives the cost
// a + b*M of an all-reduce, is collective_cost of collectives/cost.h; its Eq. 20 and 21 are
// merged_iteration of partition/merge.h.

// ---- MG-WFBP. A layer without parameters sends no message. --------------------------------------

// Eq. 3: one message a layer, nothing overlaps.
Duration naive_iteration(const Profile& profile, const AllReduceCost& cost);
// Eq. 3 with one message for all layers (SyncEASGD).
Duration single_iteration(const Profile& profile, const AllReduceCost& cost);
// Eq. 6-8: one message a layer, as soon as its gradient is final.
Duration wfbp_iteration(const Profile& profile, const AllReduceCost& cost);
// Eq. 11 and 12, cases 1 and 2 of WFBP: all messages but the first layer's hide behind backward.
Duration hidden_iteration(const Profile& profile, const AllReduceCost& cost);
// Eq. 13, case 3: from the message of layer `bottleneck` on the channel never rests. The printed
// sum of backward times has its indices off; it runs over the layers down to the bottleneck. WFBP
// takes the largest of these times.
Duration exposed_iteration(const Profile& profile, const AllReduceCost& cost,
                           std::size_t bottleneck);
// Eq. 4 and 5: against one worker, if so much of the communication is not hidden.
double speedup(std::size_t workers, Duration compute, Duration exposed);

// ---- Pipe-SGD. T iterations take T times as long. -----------------------------------------------

struct Stages {
  Duration update{0};
  Duration compute{0};  // forward and backward
  Duration communicate{0};
};

// Eq. 2: D-Sync, one stage after the other.
Duration synchronous_iteration(const Stages& stages);
// Eq. 3: K iterations at a time, with computers and links without limit.
Duration ideal_pipelined_iteration(const Stages& stages, std::int64_t depth);
// Eq. 4: one computer and one link a worker; the same for any K >= 2.
Duration pipelined_iteration(const Stages& stages);
// The communication in Eq. 5 (one segment: sequential) and Eq. 6 (pipelined with backward): every
// segment of the gradients pays the start-up and the synchronisation S. The compute stage of Eq. 6
// has backward up to the first segment only.
Duration segmented_all_reduce(const AllReduceCost& cost, Bytes bytes, std::int64_t segments,
                              Duration sync);
// Eq. 7: throughput of a worker against that of one that trains alone.
double scaling_efficiency(const Stages& stages);

// ---- Analysis, Table I --------------------------------------------------------------------------

// How often the model's bytes cross the network in an iteration, for each worker: the table's
// entries over M * N.
constexpr double bsp_traffic(double aggregated_workers) { return 2 / aggregated_workers; }  // l
inline constexpr double kAspTraffic = 2;
constexpr double ssp_traffic(double staleness) { return 1 + 1 / (staleness + 1); }  // s
constexpr double easgd_traffic(double period) { return 2 / period; }                // tau
inline constexpr double kAllReduceTraffic = 2;  // of which a ring saves 2 / N
constexpr double gossip_traffic(double probability) { return probability; }  // p
inline constexpr double kPairwiseTraffic = 1;

}  // namespace sluice
