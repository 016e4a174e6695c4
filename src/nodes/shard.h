#pragma once

#include <list>
#include <memory>
#include <vector>

#include "model/aggregation_groups.h"
#include "nodes/living.h"
#include "partition/chunk_map.h"
#include "protocol/protocol.h"

namespace sluice {

// A server's part of the parameters, for BSP, SSP and ASP: they differ in how far a worker may get
// ahead of the slowest. With no staleness allowed, a chunk waits for the gradients of all workers
// and is updated once with their sum in rank order; otherwise each gradient is taken as it comes,
// as one of the workers' share of the mean.
//
// While gradients are missing, those of the first ranks are summed already, if that takes long
// enough to pay for a unit of work of its own. The sum has the same bits either way.
//
// The result goes to all at once (broadcast), to whoever asks after a notice (notify, pull), to
// whoever asked and is within the bound by then (late pull, SSP), or to whose gradient it was
// (ASP).
//
// Where the workers update, the chunk's parameters here are the sum itself, which a dense codec
// packs once for all; nothing else differs.
//
// Where workers do not wait for each other, one that is lost counts no longer: neither for the
// bound nor for the mean.
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
    Iteration slowest = 0;           // updates made with the gradients of every living leader
    std::vector<Iteration> clocks;   // by leader, where each has its own
    std::vector<Payload> gradients;  // by rank, waiting for those of the others
    std::size_t prefix = 0;          // ranks from the first on whose gradients have come
    std::size_t summed = 0;          // of these: in the sum, or being added to it
    bool summing = false;            // no update may begin
    std::list<Work> updates;         // whose gradients are in
    std::vector<Message> pulls;      // not answered yet
    std::size_t working = 0;         // work in progress: one update, or answers
    Payload result;                  // of the last update, if it is sent packed
  };

  void on_push(const Received& event, Slot& slot, Effects& effects);
  void check_turn(const Message& push, const Slot& slot) const;
  void on_peer_lost(HostId host, Effects& effects);
  void on_peer_joined(const PeerJoined& joined);
  void on_updated(const Finished& event, Slot& slot, Effects& effects);
  void advance(Slot& slot, const Work& update) const;
  Iteration slowest_of(const Slot& slot) const;
  Work update_with(const Message& push, std::vector<Payload> gradients) const;
  static std::vector<Payload> take_prefix(Slot& slot);
  // Sums what is here of the first ranks, if it pays.
  void sum_prefix(ChunkId chunk, Slot& slot, Effects& effects) const;
  // Begins what waits for the end of the work on this chunk.
  void go_on(ChunkId chunk, Slot& slot, Effects& effects);
  void answer_pulls(ChunkId chunk, Slot& slot, Effects& effects);
  bool may_have(const Message& pull, const Slot& slot) const;
  void tell_all(MessageKind kind, ChunkId chunk, Iteration iteration, Slot& slot, Effects& effects);
  // Sends a worker the parameters of a chunk, or what has changed of them if that is sparse.
  void answer(ChunkId chunk, NodeId worker, Iteration iteration, Slot& slot, Effects& effects);
  void tell(MessageKind kind, ChunkId chunk, NodeId worker, Iteration iteration, Payload payload,
            const Slot& slot, Effects& effects) const;
  Work work_on(ChunkId chunk, WorkKind kind, NodeId origin, Iteration iteration) const;
  Slot& slot_of(ChunkId chunk);
  bool is_here(ChunkId chunk) const;
  const Topology& topology() const { return living_.topology(); }

  Strategy strategy_;
  Iteration staleness_;
  double add_ns_per_byte_;
  Living living_;
  AggregationGroups groups_;
  std::shared_ptr<const ChunkMap> chunks_;
  NodeId self_;
  std::vector<Slot> slots_;  // by place at this server
};

}  // namespace sluice
