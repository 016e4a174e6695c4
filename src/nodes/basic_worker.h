#pragma once

#include <memory>
#include <optional>

#include "nodes/living.h"
#include "nodes/worker_algorithm.h"
#include "optimizers/update_rule.h"

namespace sluice {

// What algorithms are made of: messages about chunks, and work on them.
class BasicWorker : public WorkerAlgorithm {
 public:
  BasicWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
              Completion& done);

  // Parameters go where they belong, all else into memory of its own.
  BufferRange landing(const Message& message) const override;
  void on_next_iteration(Iteration iteration, Effects& effects) override;
  void on_started(Iteration iteration, Effects& effects) override;
  void on_ended(Iteration iteration, Effects& effects) override;
  void on_peer_lost(HostId host, Effects& effects) override;
  void on_peer_joined(HostId host) override { living_.regain(host); }

 protected:
  void complete(ChunkId chunk, Iteration iteration, Effects& effects) {
    done_.on_complete(chunk, iteration, effects);
  }
  // Applies the gradient that goes into this iteration to the worker's own replica, as this share
  // of a batch; Finished follows.
  void update(ChunkId chunk, Iteration iteration, const BatchShare& share, Effects& effects) const;
  // The same for a part of the chunk, which counts as this segment.
  void update_segment(ChunkId chunk, std::uint32_t segment, const Range& range, Iteration iteration,
                      const BatchShare& share, Effects& effects) const;
  // The same with a gradient as the codec writes it.
  void update_coded(ChunkId chunk, Iteration iteration, const BatchShare& share, Payload gradient,
                    Effects& effects) const;
  // Finds the norm of all sums that go into this iteration, each of the gradients of so many
  // workers, which its updates need; Finished follows.
  void find_norm(Iteration iteration, std::size_t workers, Effects& effects) const;
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
  const Topology& topology() const { return living_.topology(); }
  const Living& living() const { return living_; }
  NodeId self() const { return self_; }
  // Whether the worker has ended, before which iteration; none while it computes.
  std::optional<Iteration> ended() const { return ended_; }
  NodeId server_of(ChunkId chunk) const { return topology().server(chunks()[chunk].server); }

 private:
  static void apply(Work work, const BatchShare& share, Payload gradient, Effects& effects);

  Strategy strategy_;
  Living living_;
  std::shared_ptr<const ChunkMap> chunks_;
  NodeId self_;
  Completion& done_;
  std::optional<Iteration> ended_;
};

}  // namespace sluice
