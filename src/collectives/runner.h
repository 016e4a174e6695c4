#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/plan.h"
#include "partition/chunk_map.h"
#include "protocol/effects.h"
#include "protocol/event.h"

namespace sluice {

// Runs the plan of a collective for any number of chunks at a time, and for as many iterations of a
// chunk as there are gradient slots, in place in the gradients of one worker. A round is entered
// when the one before it has been received in full; what peers send ahead of that is kept.
class CollectiveRunner {
 public:
  struct Done {
    ChunkId chunk;
    Iteration iteration;
  };

  // `collectives` has one for each chunk, the same on all workers.
  CollectiveRunner(std::vector<Collective> collectives, NodeId self, std::size_t workers,
                   std::size_t slots, std::shared_ptr<const ChunkMap> chunks);

  // Sums the gradients that go into this iteration. True if nothing has to be exchanged: the sum is
  // there already.
  bool begin(ChunkId chunk, Iteration iteration, Effects& effects);
  // Tells which chunk, if any, this event completed: its sum is in place and no peer reads it.
  std::optional<Done> handle(const Event& event, Effects& effects);
  BufferRange landing(const Message& message) const;

 private:
  struct Run {
    ChunkId chunk;
    Iteration iteration = 0;
    Plan plan;
    std::size_t round = 0;
    bool entered = false;   // this round's message has been sent
    bool reducing = false;  // this round's sum is being made
    std::size_t lent = 0;   // messages that peers may still be reading
    std::vector<std::pair<std::size_t, Payload>> arrivals;  // not used yet, by round
  };

  std::size_t slot_of(Iteration iteration) const;
  std::size_t index_of(ChunkId chunk, Iteration iteration) const;
  bool advance(Run& run, Effects& effects);
  void send(Run& run, Effects& effects) const;
  void reduce(const Run& run, Payload source, Effects& effects) const;
  static std::optional<Done> done_if(bool finished, Run& run);

  std::vector<Collective> collectives_;  // by chunk
  NodeId self_;
  std::size_t workers_;
  std::size_t slots_;
  std::shared_ptr<const ChunkMap> chunks_;
  std::vector<Run> runs_;  // by chunk and slot
};

}  // namespace sluice
