#pragma once

#include <memory>
#include <vector>

#include "nodes/host.h"

namespace sluice {

// A job made ready for a driver: its chunks and the protocol of each of its hosts.
struct Assembly {
  Job job;
  std::shared_ptr<const ChunkMap> chunks;
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<Protocol*> protocols;  // the same hosts, as drivers see them

  Counters counters() const;  // of all hosts
};

// Hops and credits that are at their defaults, which suit a network, become longer if all hosts are
// processes of one machine.
Assembly assemble(Job job);

}  // namespace sluice
