#pragma once

#include <memory>
#include <vector>

#include "formats/cluster.h"
#include "formats/profile.h"
#include "session/process_group.h"

namespace sluice {

// A simulated cluster that trains for real: gradients, updates and codecs are computed, and the
// clock is the simulator's. A profile says how long a worker of the cluster computes.
struct VirtualCluster {
  Profile profile;  // of the model that is trained
  Cluster cluster;
  std::size_t threads = 0;             // that compute the steps of the workers; 0: one per core
  std::vector<double> slowdowns = {};  // see Simulation
};

// This process, which simulates all hosts. Only for jobs for which simulated_job() has no error.
std::unique_ptr<ProcessGroup> make_virtual_group(VirtualCluster cluster);

}  // namespace sluice
