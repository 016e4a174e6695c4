#pragma once

#include "nodes/basic_worker.h"

namespace sluice {

// A worker for whom another one on its machine speaks: it lends that one its gradients and gets the
// parameters from it, whatever the algorithm; where learners update, the sum of the gradients.
class Follower final : public BasicWorker {
 public:
  using BasicWorker::BasicWorker;

  BufferRange landing(const Message& message) const override;

 private:
  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
};

}  // namespace sluice
