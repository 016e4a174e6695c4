#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/id.h"
#include "model/cadence.h"
#include "model/job.h"

namespace sluice {

// A worker without the last sum of a chunk takes from another one what that sum has made.
struct CatchUp {
  NodeId worker;
  NodeId from;
  ChunkId chunk;
  Iteration sum = 0;  // the last one of that worker

  bool operator==(const CatchUp&) const = default;
};

struct CatchUps {
  std::vector<CatchUp> all;
  std::vector<GivenUpSum> given_up;  // that would be due later
};

// Who takes from whom after a phase in which a worker was lost, so that all who are left have the
// same sums again; given what Protocol::last_sums() says of each of them, the fragment of each
// chunk, and the iteration that they begin with next.
CatchUps find_catch_ups(const std::map<NodeId, std::vector<Iteration>>& last_sums,
                        std::span<const std::int64_t> fragments, const Cadence& cadence,
                        Iteration next);

}  // namespace sluice
