#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/cluster.h"
#include "model/timing.h"
#include "planner/network_fit.h"
#include "session/log.h"
#include "session/process_group.h"

namespace sluice {

// The times of all-reduces with one collective, and the line through them.
struct CollectiveFit {
  Collective collective;
  std::vector<Timing> points;
  AllReduceCost line = {};
  std::optional<AllReduceCost> theory = {};  // the closed form of alpha, beta and gamma
  std::vector<std::string> doubts = {};

  std::string name() const { return std::string(name_of(kCollectiveNames, collective)); }
  double mean_error() const;
  double worst_error() const;
};

// A cluster as the simulator sees it, and what it was derived from.
struct Measured {
  std::vector<std::string> hosts;
  NetworkFit network;
  std::vector<CollectiveFit> collectives;
  Cluster cluster;
  std::vector<std::string> doubts;  // why the measurements may be wrong
};

// Measures the cluster that the processes of a group run on. Collective; some results are known
// only to the leader, and the others do without. `survey` is the leader's.
Measured measure_cluster(ProcessGroup& group, const std::optional<Survey>& survey,
                         std::size_t per_machine, const Log& log);

}  // namespace sluice
