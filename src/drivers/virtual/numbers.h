#pragma once

#include <optional>

#include "drivers/virtual/simulator.h"
#include "model/topology.h"
#include "state/training_state.h"

namespace sluice {

// The numbers of a simulated run, if it has any: without learners every call only counts bytes.
class Numbers {
 public:
  Numbers(const VirtualNumbers* numbers, const Topology& topology);
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  // Only of a run with numbers.
  TrainingState& state() const { return *state_; }

  // A copy, if there are numbers.
  static Payload snapshot(const Payload& payload);

  Payload view(NodeId node, const BufferRange& what);
  void land(NodeId node, const BufferRange& where, const Payload& payload);
  // Without numbers, the length of the output comes from the work or its range.
  Payload execute(const Work& work);
  // Sums the chunk over all workers, in rank order, and gives each of them the sum.
  void all_reduce(const Message& request);

 private:
  const VirtualNumbers* numbers_;
  std::optional<TrainingState> own_;  // unless the numbers come with a state
  TrainingState* state_ = nullptr;    // null without numbers
};

}  // namespace sluice
