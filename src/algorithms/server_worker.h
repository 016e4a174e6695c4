#pragma once

#include "algorithms/worker.h"

namespace sluice {

// Synchronous training over parameter servers: push the gradient, get the parameters back, either
// unasked (broadcast) or by a pull after the server's notice.
class ServerWorker final : public Worker {
 public:
  ServerWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self);

  BufferRange landing(const Message& message) const override;

 private:
  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void on_notice(const Message& notice, Effects& effects);
  NodeId server_of(ChunkId chunk) const { return topology().server(chunks()[chunk].server); }

  Countdown notices_missing_;  // by layer
};

}  // namespace sluice
