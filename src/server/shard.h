#pragma once

#include <memory>
#include <vector>

#include "model/job.h"
#include "partition/chunk_map.h"
#include "protocol/protocol.h"

namespace sluice {

// A server's part of the parameters. For every chunk it keeps, it waits for the gradients of all
// workers, updates once with their sum in rank order, and hands the result out: to all at once
// (broadcast), or after telling them (notify) to whoever asks (pull).
class Shard final : public Protocol {
 public:
  Shard(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self);

  void handle(const Event& event, Effects& effects) override;
  BufferRange landing(const Message& message) const override;

 private:
  struct Slot {
    Iteration version = 0;           // updates applied so far
    std::size_t arrived = 0;         // gradients for the next update
    std::vector<Payload> gradients;  // by rank
  };

  void on_push(const Received& event, Effects& effects);
  void on_updated(ChunkId chunk, Effects& effects);
  void tell_all(MessageKind kind, ChunkId chunk, Effects& effects);
  void tell(MessageKind kind, ChunkId chunk, NodeId worker, Effects& effects);

  Exchange exchange_;
  Topology topology_;
  std::shared_ptr<const ChunkMap> chunks_;
  NodeId self_;
  std::vector<Slot> slots_;  // by chunk; those of other servers stay empty
};

}  // namespace sluice
