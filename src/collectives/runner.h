#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/plan.h"
#include "model/aggregation_groups.h"
#include "partition/chunk_map.h"
#include "protocol/effects.h"
#include "protocol/event.h"

namespace sluice {

// Runs the plan of a collective for any number of chunks at a time, and for as many iterations of a
// chunk as there are gradient slots, in place in the gradients of one worker. A round is entered
// when the one before it has been received in full; what peers send ahead of that is kept.
//
// A long chunk is summed in segments, each with a plan of its own, so that the arithmetic on one
// hides behind the transfer of another. With a dense codec every hop is coded: what a rank sends it
// packs, what it receives it unpacks into its sum. What all ranks must agree on, the packing rank
// takes over as the code says it. With a sparse codec the sum travels whole, as a sparse vector.
class CollectiveRunner {
 public:
  struct Done {
    ChunkId chunk;
    Iteration iteration = 0;
    Payload sum;  // if it is sparse; else it is in place
  };

  // `collectives` has one for each chunk, the same on all of the party.
  CollectiveRunner(const Strategy& strategy, std::vector<Collective> collectives, NodeId self,
                   const AggregationGroups& groups, std::shared_ptr<const ChunkMap> chunks);

  // Sums the gradients that go into this iteration. Tells if that is done at once.
  std::optional<Done> begin(ChunkId chunk, Iteration iteration, Effects& effects);
  // Tells which chunk, if any, this event completed: its sum is there and no peer reads it.
  std::optional<Done> handle(const Event& event, Effects& effects);
  BufferRange landing(const Message& message) const;

 private:
  // What a run does in its round.
  enum class Step : std::uint8_t { kIdle, kEntering, kPacking, kReceiving, kTaking };

  struct Arrival {
    std::size_t round;
    Iteration iteration;
    Payload payload;
  };

  struct Run {
    ChunkId chunk;
    std::uint32_t segment = 0;
    Iteration iteration = 0;
    Plan plan;
    std::size_t round = 0;
    Step step = Step::kIdle;
    std::size_t lent = 0;  // messages that peers may still be reading
    // What was last packed or received packed, and the range it stands for. Of a sparse codec it is
    // the sum so far.
    Payload packed;
    Range packed_range;
    std::vector<Arrival> arrivals;  // not used yet
  };

  std::size_t segments_of(ChunkId chunk) const;
  Range range_of(ChunkId chunk, std::size_t segment) const;
  Run& run_of(ChunkId chunk, Iteration iteration, std::size_t segment);

  // Goes on with the run until it has to wait. Tells when the last segment of a chunk is through
  // and nothing of it is lent any more.
  std::optional<Done> advance(Run& run, Effects& effects);
  bool advance_round(Run& run, Effects& effects);
  void on_finished(const Finished& event, Run& run, Effects& effects);
  void enter(Run& run, Effects& effects);
  void take(Run& run, Payload arrived, Effects& effects);
  void send(Run& run, Payload payload, bool lent, Effects& effects) const;
  Work work_on(const Run& run, WorkKind kind, const Range& range) const;
  void pack(Run& run, const Range& range, Effects& effects) const;

  Strategy strategy_;
  std::vector<Collective> collectives_;  // by chunk
  NodeId self_;
  AggregationGroups groups_;
  std::shared_ptr<const ChunkMap> chunks_;
  std::vector<std::size_t> first_run_;  // by chunk
  std::vector<Run> runs_;               // by chunk, slot and segment
  std::vector<std::size_t> open_;       // segments that are not done, by chunk and slot
};

}  // namespace sluice
