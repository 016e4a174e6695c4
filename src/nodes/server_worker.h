#pragma once

#include "nodes/basic_worker.h"
#include "nodes/ledger.h"

namespace sluice {

// A worker that computes only with what its servers send: push the gradient, get the parameters
// back, unasked (broadcast), by a pull after the server's notice, or by a pull when the next
// iteration begins. Where workers update, what comes back is the sum of the gradients, and it goes
// into the worker's own replica before the layer is used. Whether the server waits for the other
// workers is the server's affair: this is the worker of BSP and of ASP.
class ServerWorker final : public BasicWorker {
 public:
  ServerWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
               Completion& done);

 private:
  BufferRange landing(const Message& message) const override;
  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void on_next_iteration(Iteration iteration, Effects& effects) override;
  void push(ChunkId chunk, Iteration iteration, Payload gradient, Effects& effects) const;
  void on_received(const Received& event, Effects& effects);
  // Has a packed sum unpacked; Finished follows.
  void unpack(const Received& sum, Effects& effects) const;
  void on_sum(ChunkId chunk, Iteration iteration, Effects& effects);
  void update_with_sum(ChunkId chunk, Iteration iteration, Effects& effects) const;
  void on_notice(const Message& notice, Effects& effects);
  void pull(ChunkId chunk, Iteration iteration, Effects& effects) const;

  Countdown notices_missing_;  // by layer
  Countdown sums_missing_;     // of one model, where its updates need the norm of all
};

}  // namespace sluice
