#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/realtime/clock.h"
#include "formats/cluster.h"
#include "learners/learner.h"
#include "session/process_group.h"
#include "session/specs.h"

namespace sluice {

// "equal", "auto", or numbers such as "2,2,1". With a cluster, "auto" is by the speeds of its
// hosts.
Result<BatchShares> parse_shares(const std::string& text, const Cluster* cluster);

// Whether these workers can share their batches so; the error says why not.
Result<void> check_shares(const BatchShares& shares, const Strategy& strategy, std::size_t workers);

// In proportion to the speeds of the workers' hosts.
std::vector<double> shares_by_speed(const Cluster& cluster);
// By worker: the factor on its compute times, which is its share by the mean share. Empty without
// shares.
std::vector<double> compute_factors(const std::vector<double>& shares);

// In proportion to the speeds of the workers, all of which take some steps at the same time, with
// learners of their own. Collective; the same result in every process.
std::vector<double> measured_shares(ProcessGroup& group, const Topology& topology,
                                    const LearnerFactory& factory);

// "25.0, 50.0, 25.0 %".
std::string text_of_shares(const std::vector<double>& shares);

}  // namespace sluice
