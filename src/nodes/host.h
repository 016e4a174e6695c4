#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "nodes/living.h"
#include "partition/chunk_map.h"
#include "protocol/counters.h"
#include "protocol/protocol.h"
#include "scheduling/egress.h"
#include "scheduling/workbench.h"

namespace sluice {

// Why a job that has taken over at this iteration ends when it loses this host; empty if it goes
// on.
std::string_view why_it_ends(const Strategy& strategy, const Topology& topology, Iteration first,
                             HostId lost);

// The nodes of one machine behind its one egress queue and its one workbench. This is what a
// driver runs; it knows nothing of the algorithm inside.
class Host final : public Protocol {
 public:
  Host(const Job& job, std::shared_ptr<const ChunkMap> chunks, HostId self);

  void handle(const Event& event, Effects& effects) override;
  BufferRange landing(const Message& message) const override;

  // Leaves messages and work out of the counters that earlier iterations wait for.
  void count_from(Iteration iteration);
  Counters counters() const;
  const Egress& egress() const { return egress_; }
  // The first iteration that each worker here did not begin in the last phase.
  const std::map<NodeId, Iteration>& ended() const { return ended_; }
  // See Protocol; of a node here.
  std::span<double> weights(NodeId id) const { return node(id).weights(); }
  std::span<Payload> kept(NodeId id) const { return node(id).kept(); }
  std::span<const Iteration> last_sums(NodeId id) const { return node(id).last_sums(); }
  std::span<const Iteration> sums_given_up(NodeId id) const { return node(id).sums_given_up(); }

 private:
  class Scheduled;

  // Throws LostPeer if the job cannot go on without it.
  void on_peer_lost(HostId lost, Effects& effects);
  void on_peer_joined(const PeerJoined& joined, Effects& effects);
  Protocol& node(NodeId id) const;
  // Of what this iteration waits for.
  Counters& counters_of(Iteration iteration) {
    reached_ = std::max(reached_, iteration);
    return iteration >= counted_from_ ? counters_ : uncounted_;
  }
  bool bypasses_egress(const Message& message) const;

  // Below the first, the difference wraps round.
  bool is_worker_here(NodeId id) const { return id.index() - first_worker_ < workers_; }
  bool is_here(NodeId id) const {
    return is_worker_here(id) || id.index() - first_server_ < servers_;
  }

  // What every message needs comes first: a simulation has many hosts, and fetches them in time.
  std::size_t first_worker_;
  std::size_t workers_;
  std::size_t first_server_ = 0;
  std::size_t servers_ = 0;
  std::vector<std::unique_ptr<Protocol>>
      nodes_;  // workers by rank, then servers if the job has any
  Living living_;
  Egress egress_;
  Iteration reached_ = 0;  // the furthest that something here was for
  Iteration counted_from_ = 0;
  Counters counters_;
  Workbench workbench_;
  Counters uncounted_;
  Strategy strategy_;
  Iteration first_;  // of the job
  std::map<NodeId, Iteration> ended_;
};

}  // namespace sluice
