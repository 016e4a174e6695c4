#pragma once

#include <optional>
#include <span>
#include <vector>

#include "drivers/virtual/computing.h"
#include "drivers/virtual/numbers.h"
#include "drivers/virtual/simulator.h"
#include "drivers/virtual/virtual_worker.h"

namespace sluice {

// The training steps of virtual workers, if the run has numbers. A step begins when all parameters
// of its iteration are in, which is as early as it can, so that many are there to be computed at a
// time. It is due when the backward pass of the last layer ends. Nobody changes the parameters or
// reads the gradients in between, so it does not matter when it is computed.
class VirtualSteps {
 public:
  VirtualSteps(const VirtualNumbers* numbers, Numbers& values, std::span<VirtualWorker> workers);
  VirtualSteps(const VirtualSteps&) = delete;
  VirtualSteps& operator=(const VirtualSteps&) = delete;
  // Waits for steps that are still computed, if the run has failed.
  ~VirtualSteps();

  // The worker may have got all parameters of its iteration.
  void note(NodeId worker);
  // Begins the steps of the workers that have got all. Not while a host handles an event.
  void begin(Time now) {
    if (!noted_.empty()) {
      begin_noted(now);
    }
  }
  // Returns when the worker's gradients are there.
  void finish(NodeId worker);
  void report(NodeId worker, Iteration iteration, Time now) const;

  // The signal that ended the run early.
  std::optional<int> stopped() const { return stopped_; }

 private:
  // Of one worker.
  struct Step {
    Iteration noted = -1;
    bool begun = false;  // and not finished
    // Results, written by the thread that computes the step.
    std::optional<double> loss;
    std::vector<NonFinite> found;
  };

  void begin_noted(Time now);
  void compute(NodeId worker, Iteration iteration);
  void end_if_interrupted();

  const VirtualNumbers* numbers_;  // null: nothing is computed
  Numbers& values_;
  std::span<VirtualWorker> workers_;
  std::vector<Step> steps_;    // by worker
  std::vector<NodeId> noted_;  // whose steps have not begun
  std::optional<int> stopped_;
  ComputeAtOnce at_once_;
  Computing* computing_ = &at_once_;
};

}  // namespace sluice
