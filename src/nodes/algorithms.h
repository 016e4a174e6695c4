#pragma once

#include <memory>

#include "base/enum_set.h"
#include "model/algorithm.h"
#include "model/job.h"
#include "nodes/worker_algorithm.h"
#include "partition/chunk_map.h"
#include "protocol/protocol.h"
#include "wire/message.h"

namespace sluice {

using MakeServer = std::unique_ptr<Protocol>(const Job& job, std::shared_ptr<const ChunkMap> chunks,
                                             NodeId self);

// The nodes that run an algorithm; model/algorithm.h has what else is to be known about it.
struct AlgorithmNodes {
  Algorithm value;
  MakeAlgorithm* worker;
  MakeServer* server;             // null: none of its exchanges has servers
  EnumSet<MessageKind> messages;  // that its nodes send, in one exchange or another
  // Whether the others go on when a worker is lost; by default the phase ends.
  bool (*outlives_workers)(const Strategy&) = [](const Strategy&) { return false; };
};

const AlgorithmNodes& nodes_of(Algorithm algorithm);

}  // namespace sluice
