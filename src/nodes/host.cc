#include "nodes/host.h"

#include <algorithm>

#include "base/check.h"
#include "model/aggregation_groups.h"
#include "nodes/algorithms.h"
#include "nodes/follower.h"
#include "nodes/local_aggregation.h"
#include "nodes/worker.h"
#include "wire/lost_peer.h"

namespace sluice {
namespace {

std::unique_ptr<Protocol> make_worker(const Job& job, std::shared_ptr<const ChunkMap> chunks,
                                      NodeId self) {
  const AggregationGroups groups(job);
  MakeAlgorithm* const make = nodes_of(job.strategy.algorithm).worker;
  if (groups.leader_of(self) != self) {
    return std::make_unique<Worker>(job, std::move(chunks), self, make_algorithm<Follower>);
  }
  if (groups.group() == 1) {
    return std::make_unique<Worker>(job, std::move(chunks), self, make);
  }
  return std::make_unique<Worker>(
      job, std::move(chunks), self,
      [make](const Job& of, std::shared_ptr<const ChunkMap> map, NodeId leader, Completion& done) {
        return std::make_unique<LocalAggregation>(of, std::move(map), leader, done, make);
      });
}

std::unique_ptr<Protocol> make_server_node(const Job& job, std::shared_ptr<const ChunkMap> chunks,
                                           NodeId self) {
  MakeServer* const make = nodes_of(job.strategy.algorithm).server;
  check(make != nullptr, "an algorithm with servers has a row that makes them");
  return make(job, std::move(chunks), self);
}

NodeId node_of(const Event& event) {
  struct Visitor {
    NodeId operator()(const Started& e) const { return e.node; }
    NodeId operator()(const GradientReady& e) const { return e.worker; }
    NodeId operator()(const BackwardDone& e) const { return e.worker; }
    NodeId operator()(const Ended& e) const { return e.worker; }
    NodeId operator()(const Received& e) const { return e.message.to; }
    NodeId operator()(const Sent& e) const { return e.message.from; }
    NodeId operator()(const Returned& e) const { return e.message.from; }
    NodeId operator()(const Finished& e) const { return e.work.node; }
    NodeId operator()(const PeerLost&) const { fail_check("a lost peer concerns all nodes"); }
    NodeId operator()(const PeerJoined&) const { fail_check("so does one that is back"); }
  };
  return std::visit(Visitor{}, event);
}

}  // namespace

std::string_view why_it_ends(const Strategy& strategy, const Topology& topology, Iteration first,
                             HostId lost) {
  const bool has_workers = lost.index() < topology.worker_hosts();
  if (strategy.uses_servers() && !(has_workers && topology.servers_apart())) {
    return "because a server was on it";
  }
  if (!nodes_of(strategy.algorithm).outlives_workers(strategy)) {
    return "because its algorithm needs all workers";
  }
  if (first < strategy.cadence.synchronous) {
    return "because its first iterations are synchronous, which needs all workers";
  }
  return {};
}

// The world as the nodes see it: messages go through the egress queue, arithmetic through the
// workbench. What stays on the host, and what the driver reduces as a whole, does not queue.
class Host::Scheduled final : public Effects {
 public:
  Scheduled(Host& host, Effects& driver) : host_(host), driver_(driver) {}

  void send(const Message& message, Payload payload) override {
    if (!host_.living_.has(message.to)) {
      return;
    }
    const bool summed = message.kind == MessageKind::kAllReduce;
    if (host_.bypasses_egress(message) && !summed) {
      ++host_.counters_of(message.iteration).local_messages;
      return driver_.send(message, std::move(payload));
    }
    Counters& counters = host_.counters_of(message.iteration);
    ++counters.messages;
    counters.payload_bytes += message.payload_bytes;
    counters.chunks += message.payload_bytes > 0 ? 1 : 0;
    if (summed) {
      return driver_.send(message, std::move(payload));
    }
    host_.egress_.send(message, std::move(payload), driver_);
  }
  void start(Work work) override {
    Counters& counters = host_.counters_of(work.iteration);
    counters.updates += work.kind == WorkKind::kUpdate ? 1 : 0;
    counters.outer_steps += work.kind == WorkKind::kOuterStep && !work.fresh ? 1 : 0;
    const bool lent = work.kind == WorkKind::kReduce && work.origin != work.node;
    counters.local_sums += lent ? 1 : 0;
    if (waits_for_device(host_.strategy_, work)) {
      return driver_.start(std::move(work));
    }
    host_.workbench_.start(std::move(work), driver_);
  }
  void release(NodeId worker, LayerId layer, Iteration iteration) override {
    ++host_.counters_of(iteration).releases;
    driver_.release(worker, layer, iteration);
  }
  Payload borrow(NodeId node, const BufferRange& what) override {
    return driver_.borrow(node, what);
  }
  Payload copy(NodeId node, const BufferRange& what) override { return driver_.copy(node, what); }

 private:
  Host& host_;
  Effects& driver_;
};

Host::Host(const Job& job, std::shared_ptr<const ChunkMap> chunks, HostId self)
    : first_worker_(self.index() * job.topology.workers_per_host()),
      workers_(self.index() < job.topology.worker_hosts() ? job.topology.workers_per_host() : 0),
      living_(job),
      egress_(job.strategy, job.topology),
      workbench_(job.strategy.order, job.server_threads),
      strategy_(job.strategy),
      first_(job.first) {
  for (const NodeId id : job.topology.nodes_on(self)) {
    if (job.topology.is_worker(id)) {
      nodes_.push_back(make_worker(job, chunks, id));
      continue;
    }
    first_server_ = servers_ == 0 ? id.index() : first_server_;
    ++servers_;
    if (job.strategy.uses_servers()) {
      nodes_.push_back(make_server_node(job, chunks, id));
    }
  }
}

void Host::handle(const Event& event, Effects& effects) {
  if (const auto* sent = std::get_if<Sent>(&event)) {
    if (!bypasses_egress(sent->message)) {
      egress_.on_sent(sent->message, effects);
    }
    return;
  }
  if (const auto* finished = std::get_if<Finished>(&event)) {
    const Work& work = finished->work;
    if (work.kind == WorkKind::kEncode || (work.kind == WorkKind::kSum && work.coded)) {
      Counters& counters = counters_of(work.iteration);
      counters.before_packing += work.range.size() * kFloatBytes;
      counters.after_packing += finished->output.size();
    }
    if (work.kind == WorkKind::kLeftFactor) {
      Counters& counters = counters_of(work.iteration);
      counters.before_packing += work.range.size() * kFloatBytes;
      counters.after_packing += work.output_bytes;
    }
    // The next work may begin before the node hears of this one: it is not about what the node
    // will read then (see Effects::start).
    if (!waits_for_device(strategy_, work)) {
      workbench_.on_finished(effects);
    }
  }
  if (const auto* ended = std::get_if<Ended>(&event)) {
    ended_[ended->worker] = ended->iteration;
  }
  if (const auto* lost = std::get_if<PeerLost>(&event)) {
    return on_peer_lost(lost->host, effects);
  }
  if (const auto* joined = std::get_if<PeerJoined>(&event)) {
    return on_peer_joined(*joined, effects);
  }
  Scheduled scheduled(*this, effects);
  node(node_of(event)).handle(event, scheduled);
}

void Host::on_peer_lost(HostId lost, Effects& effects) {
  if (const auto why = why_it_ends(strategy_, living_.topology(), first_, lost); !why.empty()) {
    throw LostPeer(lost.index(), reached_, why);
  }
  if (!living_.has(lost)) {  // a driver tells it again in every phase
    return;
  }
  living_.lose(lost);
  egress_.drop(lost, effects);
  Scheduled scheduled(*this, effects);
  for (const auto& node : nodes_) {
    node->handle(PeerLost{lost}, scheduled);
  }
}

void Host::on_peer_joined(const PeerJoined& joined, Effects& effects) {
  on_peer_lost(joined.host, effects);  // if that has not come yet
  living_.regain(joined.host);
  Scheduled scheduled(*this, effects);
  for (const auto& node : nodes_) {
    node->handle(joined, scheduled);
  }
}

BufferRange Host::landing(const Message& message) const {
  return node(message.to).landing(message);
}

bool Host::bypasses_egress(const Message& message) const { return is_here(message.to); }

void Host::count_from(Iteration iteration) {
  counted_from_ = iteration;
  egress_.count_from(iteration);
  workbench_.count_from(iteration);
}

Counters Host::counters() const {
  Counters counters = counters_;
  counters.egress_overtakings = egress_.overtakings();
  counters.inbox_overtakings = workbench_.overtakings();
  return counters;
}

Protocol& Host::node(NodeId id) const {
  check(is_here(id), "an event goes to the host of its node");
  const std::size_t place =
      is_worker_here(id) ? id.index() - first_worker_ : workers_ + (id.index() - first_server_);
  check(place < nodes_.size(), "an event goes to a node that this job has");
  return *nodes_[place];
}

}  // namespace sluice
