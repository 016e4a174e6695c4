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

// Runs the plan of a collective in place in the gradients of one worker, for any number of chunks
// at a time, and for as many iterations of a chunk as there are gradient slots. A step begins when
// the previous one has been received completely; messages that arrive earlier are kept. What a step
// adds is added in the order of ranks, as far as it has arrived, whatever the order of arrival.
//
// A long chunk is summed in segments, each with its own plan, so that the arithmetic on one hides
// behind the transfer of another. With a dense codec a rank packs what it sends and unpacks what it
// receives into its sum. Where all ranks must agree on the values, the packing rank replaces its
// own by what the others will unpack. With a sparse codec the sum travels whole, as a sparse
// vector. With a gathered one the codes of all ranks travel, and at the end each rank unpacks them
// into its sum.
class CollectiveRunner {
 public:
  // A segment whose sum is done.
  struct Done {
    ChunkId chunk;
    std::uint32_t segment = 0;
    Iteration iteration = 0;
    Payload sum;  // if sparse; otherwise the sum is in place
  };

  // `collectives` has one entry per chunk, the same on all ranks.
  CollectiveRunner(const Strategy& strategy, std::vector<Collective> collectives, NodeId self,
                   const AggregationGroups& groups, std::shared_ptr<const ChunkMap> chunks);

  // Sums the gradients for this iteration. Returns the segments that are done at once.
  std::vector<Done> begin(ChunkId chunk, Iteration iteration, Effects& effects);
  // Returns the segment that this event completed, if any: its sum is in place and no peer reads
  // it.
  std::optional<Done> handle(const Event& event, Effects& effects);
  BufferRange landing(const Message& message) const;
  std::size_t segments_of(ChunkId chunk) const;
  Range range_of(ChunkId chunk, std::size_t segment) const;

 private:
  enum class State : std::uint8_t { kIdle, kEntering, kPacking, kReceiving };

  struct Arrival {
    std::size_t round;
    Iteration iteration;
    Payload payload;
  };
  // A message of the current step.
  struct Awaited {
    std::size_t peer;
    std::size_t round;
    bool here = false;
    Payload payload = {};
  };

  struct Run {
    ChunkId chunk;
    std::uint32_t segment = 0;
    Iteration iteration = 0;
    Plan plan;              // the same in all iterations; empty before the first
    std::size_t round = 0;  // the first of the current step
    State state = State::kIdle;
    std::vector<Awaited> awaited;      // in this step, in the order of ranks
    std::vector<std::size_t> arrived;  // of these, those that a copying step has not used yet
    std::size_t taken = 0;             // of these, in use or used
    std::size_t working = 0;           // works in flight
    std::size_t lent = 0;              // messages that peers may still be reading
    // What was last packed, or received packed, and its range. With a sparse codec, the sum so far;
    // with a gathered one, the codes.
    Payload packed;
    Range packed_range;
    std::vector<Arrival> early;  // for later steps or iterations
  };

  Plan plan_of(ChunkId chunk, std::size_t segment) const;
  std::size_t index_of(ChunkId chunk, Iteration iteration, std::size_t segment) const;
  Run& run_of(ChunkId chunk, Iteration iteration, std::size_t segment) {
    return runs_[index_of(chunk, iteration, segment)];
  }

  // Continues the run until it has to wait. Returns the segment when it is complete and nothing of
  // it is lent any more.
  std::optional<Done> advance(Run& run, Effects& effects);
  bool advance_step(Run& run, Effects& effects);
  static void on_received(const Received& event, Run& run);
  static bool accept(Run& run, Arrival& arrival);
  void on_finished(const Finished& event, Run& run, Effects& effects);
  void enter(Run& run, Effects& effects);
  static void expect(Run& run);
  void send_or_pack(Run& run, std::size_t round, Effects& effects);
  void add(Run& run, Effects& effects);
  void merge(Run& run, Effects& effects);
  void copy(Run& run, Effects& effects);
  void send(Run& run, std::size_t round, Payload payload, bool lent, Effects& effects) const;
  Work work_on(const Run& run, std::size_t round, WorkKind kind, const Range& range) const;
  void pack(Run& run, std::size_t round, const Range& range, Effects& effects) const;
  void unpack(Run& run, Effects& effects) const;

  Strategy strategy_;
  std::vector<Collective> collectives_;  // by chunk
  NodeId self_;
  AggregationGroups groups_;
  std::shared_ptr<const ChunkMap> chunks_;
  std::vector<std::size_t> first_run_;  // by chunk
  std::vector<Run> runs_;               // by chunk, slot and segment
};

}  // namespace sluice
