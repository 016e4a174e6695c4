#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"
#include "model/cadence.h"
#include "partition/chunk_map.h"

namespace sluice {

// When a learner that takes local steps by itself and its host need each other's parameters.
class LayerTurns {
 public:
  LayerTurns(const Cadence& cadence, const ChunkMap& chunks);

  // An exchange of the layer, or of a part of it, begins or ends with the parameters of this
  // iteration: the host needs those after the local step.
  bool meets_at(LayerId layer, Iteration iteration) const;
  // It ends: the host's parameters of this iteration are the ones that count.
  bool ends_at(LayerId layer, Iteration iteration) const;

 private:
  Cadence cadence_;
  std::vector<std::vector<std::int64_t>> fragments_;  // by layer
};

}  // namespace sluice
