#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "model/aggregation_groups.h"
#include "partition/chunk_map.h"
#include "protocol/protocol.h"

namespace sluice {

// A server's part of the parameters, for BSP, SSP and ASP: they differ in how far a worker may get
// ahead of the slowest. With no staleness allowed, a chunk waits for the gradients of all workers
// and is updated once with their sum in rank order; otherwise each gradient is taken as it comes,
// as one of the workers' share of the mean.
//
// The result goes to all at once (broadcast), to whoever asks after a notice (notify, pull), to
// whoever asked and is within the bound by then (late pull, SSP), or to whose gradient it was
// (ASP).
//
// A chunk is either worked on or read: updates and pulls that come while work on it is in progress
// wait for its end.
class Shard final : public Protocol {
 public:
  Shard(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self);

  void handle(const Event& event, Effects& effects) override;
  BufferRange landing(const Message& message) const override;

 private:
  struct Slot {
    std::vector<Iteration> clocks;   // updates made with the gradients of each leader
    std::vector<Payload> gradients;  // by rank, waiting for those of the others
    std::size_t arrived = 0;
    std::deque<Work> updates;    // whose gradients are in
    std::vector<Message> pulls;  // not answered yet
    std::size_t working = 0;     // work in progress: one update, or answers
    Payload patch;               // what the last update changed, if it was sparse
  };

  void on_push(const Received& event);
  void check_turn(const Message& push, const Slot& waiting) const;
  void on_updated(const Finished& event, Effects& effects);
  Work update_with(const Message& push, std::vector<Payload> gradients) const;
  void start(Work work, Effects& effects);
  // Begins what waits for the end of the work on this chunk.
  void go_on(ChunkId chunk, Effects& effects);
  void answer_pulls(ChunkId chunk, Effects& effects);
  bool may_have(const Message& pull) const;
  void tell_all(MessageKind kind, ChunkId chunk, Iteration iteration, Effects& effects);
  // Sends a worker the parameters of a chunk, or what has changed of them if that is sparse.
  void answer(ChunkId chunk, NodeId worker, Iteration iteration, Effects& effects);
  void tell(MessageKind kind, ChunkId chunk, NodeId worker, Iteration iteration, Payload payload,
            Effects& effects) const;
  Work work_on(ChunkId chunk, WorkKind kind, NodeId origin, Iteration iteration) const;
  Slot& slot(ChunkId chunk);
  Iteration slowest(ChunkId chunk) const;

  Strategy strategy_;
  Iteration staleness_;
  Topology topology_;
  AggregationGroups groups_;
  std::shared_ptr<const ChunkMap> chunks_;
  NodeId self_;
  std::vector<Slot> slots_;  // by chunk; those of other servers stay empty
};

}  // namespace sluice
