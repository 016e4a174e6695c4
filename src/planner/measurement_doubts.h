#pragma once

#include <string>
#include <vector>

#include "model/timing.h"
#include "planner/network_fit.h"

namespace sluice {

// The state of a machine before the processes of a job began to measure.
struct MachineLoad {
  std::string host;
  double load = 0;  // running and runnable processes, over the last minute
  std::size_t cores = 1;
  std::size_t processes = 1;  // of the job
};

// The measured times of a collective and the fit to them.
struct MeasuredSums {
  std::string collective;
  std::vector<Timing> points;   // in ascending order of size
  double ns_per_byte = 0;       // of the line, without regard to the wire
  double wire_ns_per_byte = 0;  // the minimum on the measured links; 0: unknown
};

// Why measurements may be off, one sentence each with what to do; empty if nothing is suspicious.
// Times are doubted if their interquartile range is large.
std::vector<std::string> doubts_of(const std::vector<MachineLoad>& machines);
std::vector<std::string> doubts_of(const NetworkFit& network);
std::vector<std::string> doubts_of(const MeasuredSums& sums);

}  // namespace sluice
