#pragma once

#include <span>
#include <vector>

#include "formats/cluster.h"
#include "formats/profile.h"
#include "protocol/protocol.h"

namespace sluice::testing {

// A job of which SimGrid simulates the network: its hosts are the same objects that simulate()
// runs. All links are alike; a message leaves when the one before it has left, as in Sluice.
struct SimGridJob {
  const Profile& profile;
  const Cluster& cluster;
  std::span<Protocol* const> hosts;
  Iteration iterations = 1;
};

// When the last worker began each iteration, in seconds; the last is the start of what would come
// next. A process has one engine of SimGrid, so each run has a process of its own.
std::vector<double> run_in_simgrid(const SimGridJob& job);

}  // namespace sluice::testing
