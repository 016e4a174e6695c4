#pragma once

#include <memory>
#include <vector>

#include "model/aggregation_groups.h"
#include "partition/chunk_map.h"
#include "protocol/effects.h"
#include "protocol/event.h"

namespace sluice {

// Local aggregation: the worker that speaks for its machine adds the gradients of the others there
// to its own, in rank order. The others lend theirs: before they compute again they need new
// parameters, and these need the sum.
//
// Each call tells whether the chunk's sum is complete now.
class LocalSum {
 public:
  LocalSum(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self);

  // The worker's own gradient, which goes into this iteration, is final.
  bool on_own(ChunkId chunk, Iteration iteration, Effects& effects);
  bool on_lent(const Received& gradient, Effects& effects);
  bool on_added(const Finished& event, Effects& effects);

 private:
  struct Sum {
    bool own = false;
    bool adding = false;
    std::size_t added = 0;
    std::vector<Payload> lent;  // by the lender's place on the machine
  };

  Sum& sum_of(ChunkId chunk, Iteration iteration);
  bool go_on(ChunkId chunk, Iteration iteration, Effects& effects);

  std::size_t others_;
  Strategy strategy_;
  NodeId self_;
  std::shared_ptr<const ChunkMap> chunks_;
  std::vector<Sum> sums_;  // by chunk and slot
};

}  // namespace sluice
