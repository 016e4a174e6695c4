#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "model/job.h"
#include "nodes/ledger.h"
#include "nodes/local_sum.h"
#include "optimizers/update_rule.h"
#include "partition/chunk_map.h"
#include "protocol/protocol.h"

namespace sluice {

// What the workers of all algorithms share: a chunk is exchanged as soon as the gradients of all
// its layers are final (or when all of backward is done, if the strategy says so), and a layer is
// released as soon as all its chunks are complete. From a chunk's last gradient until it is
// complete, nobody computes with its parameters: that is when they may change.
class Worker : public Protocol {
 public:
  Worker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self);

  void handle(const Event& event, Effects& effects) final;
  BufferRange landing(const Message& message) const override;

 protected:
  // The gradient of the chunk is final: get the parameters for this iteration.
  virtual void exchange(ChunkId chunk, Iteration iteration, Effects& effects) = 0;
  // Any event but those of the training loop.
  virtual void on_network(const Event& event, Effects& effects) = 0;
  // The worker is about to begin this iteration.
  virtual void on_next_iteration(Iteration iteration, Effects& effects);

  // The chunk's parameters for this iteration are in, here and for those the worker speaks for.
  void complete(ChunkId chunk, Iteration iteration, Effects& effects);
  // Applies the gradient that goes into this iteration to the worker's own replica, as this share
  // of a batch; Finished follows.
  void update(ChunkId chunk, Iteration iteration, const BatchShare& share, Effects& effects) const;
  // The same with a gradient as the codec writes it.
  void update_coded(ChunkId chunk, Iteration iteration, const BatchShare& share, Payload gradient,
                    Effects& effects) const;
  // Has the gradient packed that goes into this iteration; Finished brings it.
  void pack(ChunkId chunk, Iteration iteration, Effects& effects) const;
  // Applies what a server says has changed; Finished follows.
  void patch(const Received& changes, Effects& effects) const;
  // Work of this worker on a chunk, with the fields filled in that depend on nothing else.
  Work work_on(ChunkId chunk, WorkKind kind, Iteration iteration) const;
  // A message about a chunk, likewise.
  Message about(ChunkId chunk, MessageKind kind, NodeId to, Iteration iteration) const;
  void send(Message message, Payload payload, Effects& effects) const;

  BufferRange parameters_of(ChunkId chunk) const;
  // The gradient that goes into the parameters of this iteration.
  BufferRange gradient_of(ChunkId chunk, Iteration iteration) const;

  const ChunkMap& chunks() const { return *chunks_; }
  const Strategy& strategy() const { return strategy_; }
  const Topology& topology() const { return topology_; }
  const AggregationGroups& groups() const { return groups_; }
  NodeId self() const { return self_; }
  NodeId server_of(ChunkId chunk) const { return topology_.server(chunks()[chunk].server); }

 private:
  void on_gradient(const GradientReady& event, Effects& effects);
  void on_chunk(ChunkId chunk, Iteration iteration, Effects& effects);
  // The gradient of the chunk is final, with those of the workers it speaks for.
  void on_local_sum(ChunkId chunk, Iteration iteration, Effects& effects);
  bool sum_locally(const Event& event, Effects& effects);
  void apply(ChunkId chunk, Iteration iteration, const BatchShare& share, Payload gradient,
             bool coded, Effects& effects) const;
  void pass_on(ChunkId chunk, Iteration iteration, Effects& effects);
  void on_backward_done(const BackwardDone& event, Effects& effects);

  Strategy strategy_;
  Iteration first_;
  // Where in a layer this worker begins. If all began with the same chunk, all would flood the
  // same server first.
  std::size_t first_chunk_;
  Topology topology_;
  AggregationGroups groups_;
  std::shared_ptr<const ChunkMap> chunks_;
  NodeId self_;
  bool is_leader_;  // for itself and maybe others
  LocalSum local_;
  Countdown gradients_missing_;     // by chunk
  Countdown sums_missing_;          // by layer: chunks that wait for one another's local sums
  Countdown chunks_missing_;        // by layer
  std::vector<ChunkId> held_back_;  // ready, but to be exchanged after backward
};

}  // namespace sluice
