#pragma once

#include <vector>

#include "nodes/basic_worker.h"

namespace sluice {

// SSP: every gradient is pushed. While the worker knows that it is within the staleness bound of
// the slowest, it applies the gradient to its own copy and goes on; otherwise it asks for the
// global parameters, which come when it is inside the bound again. What it knows of the slowest is
// what the server last said, so it may ask too often but never runs too far.
class StaleWorker final : public BasicWorker {
 public:
  StaleWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
              Completion& done);

 private:
  struct State {
    Iteration slowest = 0;   // updates of the slowest worker, as far as known
    Iteration next = 0;      // the iteration that waits for this chunk
    std::vector<bool> lent;  // by slot: its gradient is pushed and not returned yet
    bool updated = false;    // the own copy is ready for `next`
  };

  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void push(ChunkId chunk, Iteration iteration, Payload gradient, Effects& effects);
  void go_on_if_ready(ChunkId chunk, Effects& effects);

  std::vector<State> states_;  // by chunk
};

}  // namespace sluice
