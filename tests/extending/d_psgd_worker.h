#pragma once

#include <cstddef>
#include <vector>

#include "nodes/basic_worker.h"

namespace sluice {

// D-PSGD (Lian et al., 2017) on a ring: every worker takes a step with its own gradient, sends the
// result to its neighbours, and goes on with the mean of its own and theirs. It waits for nobody
// else.
//
//   local step -> send to both neighbours -> wait for theirs of this iteration -> mean -> go on
class DPsgdWorker final : public BasicWorker {
 public:
  DPsgdWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
              Completion& done);

 private:
  struct State {
    Iteration next = 0;     // the iteration that waits for this chunk; 0 if none does
    std::size_t mixed = 0;  // neighbours whose parameters are in
    bool mixing = false;
    std::vector<Received> inbox;  // one neighbour may be an iteration ahead of the other
  };

  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void send_to_neighbours(ChunkId chunk, Iteration iteration, Effects& effects) const;
  void go_on_if_ready(ChunkId chunk, Effects& effects);
  void mix_in_next(ChunkId chunk, Effects& effects);

  std::vector<NodeId> neighbours_;  // in the order in which they are mixed in
  std::vector<State> states_;       // by chunk
};

}  // namespace sluice
