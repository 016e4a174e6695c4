#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "nodes/host.h"
#include "protocol/message_rules.h"

namespace sluice {

// A job made ready for a driver: its chunks and the protocol of each of its hosts.
struct Assembly {
  Job job;
  std::shared_ptr<const ChunkMap> chunks;
  std::shared_ptr<const MessageRules> rules;
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<Protocol*> protocols;  // by host, as drivers see them; null: not of this process

  const Host& host_of(NodeId worker) const;  // of a worker here

  Counters counters() const;  // of all that are here
  // The first iteration that each worker here did not begin in the last phase.
  std::map<NodeId, Iteration> ended() const;
  // See Protocol; of a worker here.
  std::span<double> weights(NodeId worker) const;
  std::span<Payload> kept(NodeId worker) const;
  std::span<const Iteration> last_sums(NodeId worker) const;
  std::span<const Iteration> sums_given_up(NodeId worker) const;
};

// All hosts, or only the one that the job says is here.
Assembly assemble(Job job);

}  // namespace sluice
