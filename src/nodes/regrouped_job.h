#pragma once

#include <span>
#include <vector>

#include "model/job.h"
#include "protocol/event.h"

// The next job of a run that goes on with other workers.
namespace sluice {

// The job without these hosts, from this iteration on: its nodes are new, and know which sums
// nobody has.
Job job_without(std::vector<HostId> absent, std::vector<GivenUpSum> given_up, Job job,
                Iteration first);

// The job with these hosts as well, from this iteration on: its nodes are new, and know them.
Job job_with(std::span<const PeerJoined> joined, Job job, Iteration first);

}  // namespace sluice
