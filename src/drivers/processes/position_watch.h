#pragma once

#include <optional>

#include "drivers/processes/heartbeat.h"
#include "drivers/realtime/clock.h"
#include "drivers/realtime/gate.h"
#include "drivers/realtime/peer_transport.h"
#include "model/topology.h"
#include "partition/chunk_map.h"

namespace sluice {

// What a process tells of itself in its heartbeats.
class PositionWatch {
 public:
  struct World {
    const PeerTransport& transport;
    const Topology& topology;
    const Gates& gates;  // of this process's workers
    const ChunkMap& chunks;
    const Clock& clock;
  };

  explicit PositionWatch(const World& world) : world_(world) {}

  // Looks where the workers are. Call it at every beat.
  Heartbeat heartbeat();
  // Of the worker that is furthest behind; none: there are no workers.
  std::optional<Gate::Position> furthest_behind() const;

 private:
  std::optional<InFlight> oldest(bool outgoing) const;

  World world_;
  std::optional<Gate::Position> position_;
  Time since_{0};
};

}  // namespace sluice
