#pragma once

#include <memory>

#include "algorithms/ledger.h"
#include "model/job.h"
#include "partition/chunk_map.h"
#include "protocol/protocol.h"

namespace sluice {

// What the workers of all synchronous algorithms share: a chunk is exchanged as soon as the
// gradients of all its layers are final, and a layer is released as soon as all its chunks are in.
class Worker : public Protocol {
 public:
  Worker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self);

  void handle(const Event& event, Effects& effects) final;

 protected:
  // The gradient of the chunk is final: exchange it for the parameters of this iteration.
  virtual void exchange(ChunkId chunk, Iteration iteration, Effects& effects) = 0;
  // Any event but those of the training loop.
  virtual void on_network(const Event& event, Effects& effects) = 0;

  // The chunk's parameters for this iteration are in.
  void complete(ChunkId chunk, Iteration iteration, Effects& effects);
  // A message about a chunk, with the fields filled in that depend on nothing else.
  Message about(ChunkId chunk, MessageKind kind, NodeId to, Iteration iteration) const;

  const ChunkMap& chunks() const { return *chunks_; }
  const Topology& topology() const { return topology_; }
  NodeId self() const { return self_; }

 private:
  void on_gradient(const GradientReady& event, Effects& effects);

  // Where in a layer this worker begins. If all began with the same chunk, all would flood the
  // same server first.
  std::size_t first_chunk_;
  Topology topology_;
  std::shared_ptr<const ChunkMap> chunks_;
  NodeId self_;
  Countdown gradients_missing_;  // by chunk
  Countdown chunks_missing_;     // by layer
};

}  // namespace sluice
