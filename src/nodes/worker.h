#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nodes/chunk_order.h"
#include "nodes/ledger.h"
#include "nodes/worker_algorithm.h"
#include "protocol/protocol.h"

namespace sluice {

// The part of a worker that is the same for all algorithms: a chunk is exchanged as soon as the
// gradients of all its layers are final (or when all of backward is done, if the strategy says so),
// and a layer is released as soon as all its chunks are complete.
class Worker final : public Protocol, private Completion {
 public:
  Worker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
         const std::function<MakeAlgorithm>& make);
  // The algorithm knows where it is.
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void handle(const Event& event, Effects& effects) override;
  BufferRange landing(const Message& message) const override;
  std::span<double> weights() override { return algorithm_->weights(); }
  std::span<Payload> kept() override { return algorithm_->kept(); }
  std::span<const Iteration> last_sums() const override { return algorithm_->last_sums(); }
  std::span<const Iteration> sums_given_up() const override { return algorithm_->sums_given_up(); }

 private:
  void on_gradient(const GradientReady& event, Effects& effects);
  void on_backward_done(const BackwardDone& event, Effects& effects);
  void on_complete(ChunkId chunk, Iteration iteration, Effects& effects) override;

  bool after_backward_;
  ChunkOrder order_;
  std::shared_ptr<const ChunkMap> chunks_;
  NodeId self_;
  Countdown gradients_missing_;     // by chunk
  Countdown chunks_missing_;        // by layer
  std::vector<ChunkId> held_back_;  // ready, but to be exchanged after backward
  std::unique_ptr<WorkerAlgorithm> algorithm_;
};

}  // namespace sluice
