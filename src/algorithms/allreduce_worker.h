#pragma once

#include <optional>

#include "algorithms/worker.h"
#include "collectives/runner.h"

namespace sluice {

// Synchronous training without servers: the workers sum each chunk among themselves, and every one
// applies the same update to its own replica.
class AllReduceWorker final : public Worker {
 public:
  AllReduceWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self);

  BufferRange landing(const Message& message) const override;

 private:
  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void update(ChunkId chunk, Iteration iteration, Effects& effects);

  bool native_;
  CollectiveRunner runner_;
};

}  // namespace sluice
