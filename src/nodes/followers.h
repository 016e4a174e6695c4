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
struct Follower {
  NodeId worker;
  NodeId leader;
  ChunkId chunk;
  Iteration sum = 0;  // the last one of the leader

  bool operator==(const Follower&) const = default;
};

struct Followers {
  std::vector<Follower> all;
  std::vector<GivenUpSum> given_up;  // that would be due later
};

// Who follows whom after a phase in which a worker was lost, so that all who are left have the same
// sums again; given what Protocol::last_sums() says of each of them, the fragment of each chunk,
// and the iteration that they begin with next.
Followers find_followers(const std::map<NodeId, std::vector<Iteration>>& last_sums,
                         std::span<const std::int64_t> fragments, const Cadence& cadence,
                         Iteration next);

}  // namespace sluice
