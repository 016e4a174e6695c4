#pragma once

#include <string>
#include <vector>

#include "model/timing.h"
#include "planner/network_fit.h"

namespace sluice {

// A machine as it was before the processes of a job began to measure.
struct MachineLoad {
  std::string host;
  double load = 0;  // processes that ran or wanted to, over the last minute
  std::size_t cores = 1;
  std::size_t processes = 1;  // of the job
};

// How long the sums of a collective took, and what was fitted to them.
struct MeasuredSums {
  std::string collective;
  std::vector<Timing> points;   // by rising size
  double ns_per_byte = 0;       // of the line, whatever the wire allows
  double wire_ns_per_byte = 0;  // no sum can take less on the measured links; 0: not known
};

// Why measurements may be off, a sentence each with what to do; none if nothing speaks against
// them. Times are doubted where the middle half of the repetitions lie far apart.
std::vector<std::string> doubts_of(const std::vector<MachineLoad>& machines);
std::vector<std::string> doubts_of(const NetworkFit& network);
std::vector<std::string> doubts_of(const MeasuredSums& sums);

}  // namespace sluice
