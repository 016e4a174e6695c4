#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/cost.h"
#include "partition/chunk_map.h"

namespace sluice {

// Which collective sums how many parameters: the one that the strategy names, or the cheapest on
// the job's links. Not for sums of the driver.
class CollectiveChoice {
 public:
  explicit CollectiveChoice(const Job& job);

  struct Choice {
    Collective collective;
    SumCost cost;
  };
  // For a sum in a stream of others. What counts is how long it keeps the links busy and, in so far
  // as it is the end of the stream, how long it takes alone. `tail` is the share of the latter.
  Choice choose(std::int64_t params, double tail) const;

 private:
  double among_others_us(const PlanLoad& load, const SumCost& cost) const;

  Strategy strategy_;
  Ranks ranks_;
  LinkCost link_;
  int threads_;  // for packing
  std::vector<std::pair<Collective, PlanLoad>> candidates_;
};

// How each chunk is summed. The chunks of the first layer are the last to begin, and the next
// iteration waits for them first.
std::vector<Collective> collectives_for(const Job& job, const ChunkMap& chunks);

}  // namespace sluice
