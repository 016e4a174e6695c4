#pragma once

#include <memory>

#include "model/aggregation_groups.h"
#include "nodes/basic_worker.h"
#include "nodes/chunk_order.h"
#include "nodes/ledger.h"
#include "nodes/local_sum.h"

namespace sluice {

// Around the algorithm of a leader: a chunk is exchanged when the gradients of the leader's group
// are summed, and what comes of it is passed on to the followers: new parameters or, where learners
// update, the sum of all gradients. The algorithm sees one worker whose gradient is the sum.
class LocalAggregation final : public BasicWorker, private Completion {
 public:
  LocalAggregation(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
                   Completion& done, MakeAlgorithm* make);

  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void on_next_iteration(Iteration iteration, Effects& effects) override;
  void on_started(Iteration iteration, Effects& effects) override;
  void on_ended(Iteration iteration, Effects& effects) override;
  void on_peer_lost(HostId host, Effects& effects) override;
  void on_peer_joined(HostId host) override { algorithm_->on_peer_joined(host); }
  BufferRange landing(const Message& message) const override;
  std::span<Payload> kept() override { return algorithm_->kept(); }

 private:
  void on_complete(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_local_sum(ChunkId chunk, Iteration iteration, Effects& effects);
  void pass_on_parameters(ChunkId chunk, Iteration iteration, Effects& effects);
  void pass_on_sum(ChunkId chunk, Iteration iteration, Effects& effects);

  AggregationGroups groups_;
  ChunkOrder order_;
  LocalSum local_;
  Countdown sums_missing_;  // by layer: chunks that wait for one another's local sums
  Countdown lent_;          // by chunk: followers that have not taken its sum
  std::unique_ptr<WorkerAlgorithm> algorithm_;
};

}  // namespace sluice
