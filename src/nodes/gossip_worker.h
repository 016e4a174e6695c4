#pragma once

#include <vector>

#include "nodes/basic_worker.h"

namespace sluice {

// GoSGD, without servers: each worker takes its own steps, and between two iterations, when nobody
// computes with a chunk's parameters, mixes in what peers have sent meanwhile. With some
// probability it then gives half of its weight and a copy of its parameters to a random peer, which
// takes the weighted mean. The weights of all workers and messages always sum to 1, with what a
// lost worker had and what was on its way to it. Nobody ever waits for a peer, so nothing can lock
// up.
//
//   local step -> mix in what has come -> send to a peer, or not -> next iteration
//
// After its last step a worker mixes in what still comes as soon as it is there.
class GoSgdWorker final : public BasicWorker {
 public:
  GoSgdWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
              Completion& done);

  // With what has been received and not mixed in yet.
  double weight(ChunkId chunk) const;
  std::span<double> weights() override { return weights_; }

 private:
  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void on_ended(Iteration iteration, Effects& effects) override;
  void on_finished(ChunkId chunk, Iteration iteration, Effects& effects);
  // The first of those that wait; false if none does.
  bool mix_in_next(ChunkId chunk, Iteration iteration, Effects& effects);
  void mix_in(const Received& received, Iteration iteration, Effects& effects);
  void send_share(ChunkId chunk, Iteration iteration, Effects& effects);

  std::vector<std::vector<Received>> inbox_;  // by chunk, in the order of arrival
  std::vector<double> weights_;               // by chunk
  std::vector<bool> mixing_;                  // by chunk, after the end
};

}  // namespace sluice
