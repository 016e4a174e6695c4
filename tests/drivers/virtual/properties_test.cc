// What must hold for every net, cluster and point of the space.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <tuple>

#include "drivers/virtual/bound.h"
#include "nodes/validate.h"
#include "support/forwarding_effects.h"
#include "support/generators.h"
#include "support/simulated.h"

namespace sluice {
namespace {

using testing::any_strategy;
using testing::any_world;
using testing::run_simulated;
using testing::World;

constexpr Iteration kFewIterations = 4;

// Counts the work and the messages of a run by their subject.
class Census final : public Observer {
 public:
  void computed(NodeId, LayerId, Iteration, Pass, Time begin, Time end) override {
    RC_ASSERT(begin <= end);
    ++computed_;
  }
  void waited(NodeId, LayerId, Iteration, Time begin, Time end) override { RC_ASSERT(begin < end); }
  void sent(const Message& message, Time, Time) override { ++flights_[key(message)].first; }
  void received(const Message& message, Time, Time) override { ++flights_[key(message)].second; }
  void worked(const Work& work, Time, Time) override {
    const Subject subject{work.node.index(), work.chunk.index(), work.iteration};
    if (work.kind == WorkKind::kReduce) {
      std::size_t& summed = summed_[subject];
      summed = work.sources.size() + (work.fresh ? 0 : summed);
    }
    if (work.kind == WorkKind::kUpdate) {
      updated_[subject] += work.range.size();
      const std::size_t all = work.sources.size() + (work.begun ? summed_.at(subject) : 0);
      RC_ASSERT(work.contributors % all == 0U);
    }
  }

  using Flight =
      std::tuple<int, std::size_t, std::size_t, std::size_t, Iteration, int, std::uint32_t>;
  static Flight key(const Message& m) {
    return {static_cast<int>(m.kind),
            m.from.index(),
            m.to.index(),
            m.chunk.index(),
            m.iteration,
            m.round,
            m.segment};
  }

  std::map<Flight, std::pair<int, int>> flights_;
  using Subject = std::tuple<std::size_t, std::size_t, Iteration>;
  std::map<Subject, std::int64_t> updated_;  // parameters
  std::map<Subject, std::size_t> summed_;    // gradients, before the update
  std::int64_t computed_ = 0;
};

RC_GTEST_PROP(SimulationProperties, NothingIsLostOrAppliedTwice, ()) {
  const World world = any_world();
  const Strategy strategy = any_strategy();
  Census census;
  const auto run = run_simulated(world.profile, world.cluster, strategy, kFewIterations, &census);
  for (const auto& [flight, counts] : census.flights_) {
    RC_ASSERT(counts == std::make_pair(1, 1));
  }
  const std::size_t keepers = strategy.uses_servers() ? 1 : world.cluster.topology.workers();
  RC_ASSERT(census.updated_.size() ==
            run.assembly.chunks->size() * keepers * static_cast<std::size_t>(kFewIterations));
  for (const auto& [subject, params] : census.updated_) {
    RC_ASSERT(params == (*run.assembly.chunks)[ChunkId(std::get<1>(subject))].range.size());
  }
  for (const auto& host : run.assembly.hosts) {
    RC_ASSERT(host->egress().in_flight() == 0);
    RC_ASSERT(host->egress().waiting() == 0U);
  }
}

// The virtual worker asserts that no layer is released twice, out of order, or used in the wrong
// iteration; here the releases are counted.
RC_GTEST_PROP(SimulationProperties, EveryLayerIsReleasedOnceAnIteration, ()) {
  const World world = any_world();
  Census census;
  const auto run =
      run_simulated(world.profile, world.cluster, any_strategy(), kFewIterations, &census);
  const auto workers = static_cast<std::int64_t>(world.cluster.topology.workers());
  const auto layers = static_cast<std::int64_t>(world.profile.layers.size());
  RC_ASSERT(run.assembly.counters().releases == workers * layers * (kFewIterations + 1));
  RC_ASSERT(census.computed_ == workers * layers * kFewIterations * 2);
}

// At a given iteration more may be done of what the later ones need than at another: only the whole
// run has to take its time. Times are rounded to picoseconds for each message.
void run_and_compare_with_bound(const World& world, const Strategy& strategy,
                                Iteration iterations) {
  const auto run = run_simulated(world.profile, world.cluster, strategy, iterations);
  const Duration bound = lower_bound(world.profile, world.cluster, strategy, *run.assembly.chunks);
  RC_ASSERT(run.result.end + from_ns(iterations) >= iterations * bound);
}

RC_GTEST_PROP(SimulationProperties, NoScheduleBeatsTheBound, ()) {
  const World world = any_world();
  Strategy strategy = any_strategy();
  strategy.local_aggregation = *rc::gen::arbitrary<bool>();
  run_and_compare_with_bound(world, strategy, 12);
}

RC_GTEST_PROP(SimulationProperties, NoScheduleOfLocalStepsBeatsTheBound, ()) {
  const World world = any_world();
  Strategy strategy = any_strategy();
  strategy.algorithm = Algorithm::kLocal;
  strategy.exchange = *rc::gen::element(Exchange::kAllReduce, Exchange::kGossip);
  if (strategy.exchange == Exchange::kAllReduce && *rc::gen::arbitrary<bool>()) {
    strategy.codec = Codec::kTopK;
    strategy.error_feedback = true;
    strategy.collective.reset();
    strategy.top_k = {.block = *rc::gen::element<std::int64_t>(50, 4096), .kept = 7};
  }
  strategy.cadence.every = *rc::gen::inRange<Iteration>(1, 7);
  strategy.cadence.fragments = *rc::gen::inRange<std::int64_t>(1, strategy.cadence.every + 1);
  strategy.cadence.delay = *rc::gen::inRange<Iteration>(0, strategy.cadence.every);
  RC_PRE(static_cast<bool>(validate(strategy)));
  run_and_compare_with_bound(world, strategy, 6 * strategy.cadence.every);
}

RC_GTEST_PROP(SimulationProperties, NoScheduleBeatsTheBoundOfTheChannel, ()) {
  World world = any_world();
  world.cluster.allreduce = AllReduceCost{from_us(static_cast<double>(*testing::between(0, 30))),
                                          *rc::gen::element(0.0, 1.0, 10.0)};
  Strategy strategy = any_strategy();
  strategy.exchange = Exchange::kAllReduce;
  run_and_compare_with_bound(world, strategy, 12);
}

RC_GTEST_PROP(SimulationProperties, AlikeInputGivesAlikeOutput, ()) {
  const World world = any_world();
  const Strategy strategy = any_strategy();
  const auto a = run_simulated(world.profile, world.cluster, strategy, kFewIterations).result;
  const auto b = run_simulated(world.profile, world.cluster, strategy, kFewIterations).result;
  RC_ASSERT(a.starts == b.starts);
  RC_ASSERT(a.events == b.events);
  RC_ASSERT(a.bytes == b.bytes);
}

// A slice is never interrupted, so another schedule may make an urgent one wait for a slice that it
// did not meet before: once on the way to the server and once on the way back.
RC_GTEST_PROP(SimulationProperties, MoreBandwidthNeverCostsMoreThanTheTripOfASlice, ()) {
  World world = any_world();
  world.cluster.fragment_bytes = 0;
  world.cluster.ingress_gbps = 0;
  world.cluster.cores = world.cluster.compute_cores = 0;
  world.cluster.sending = world.cluster.receiving = {};
  Strategy strategy = testing::point(Exchange::kBroadcast, Partition::kSlice, Order::kPriority);
  strategy.slice_params = *testing::between(50, 500);
  strategy.credit = 1;
  const auto slow = run_simulated(world.profile, world.cluster, strategy, 12);
  const Duration trip =
      2 *
      (world.cluster.wire_time(strategy.slice_params * kFloatBytes + world.cluster.header_bytes) +
       world.cluster.latency);
  world.cluster.bandwidth_gbps *= *rc::gen::element(1.1, 1.5, 2.0, 10.0);
  const auto fast = run_simulated(world.profile, world.cluster, strategy, 12);
  RC_ASSERT(fast.result.iteration_time() <= slow.result.iteration_time() + trip);
}

// Observes what a host hands to its driver.
class CreditWatch final : public Protocol {
 public:
  CreditWatch(Protocol& inner, const Topology& topology, HostId self, const Strategy& strategy)
      : inner_(inner),
        topology_(topology),
        self_(self),
        strategy_(strategy),
        to_peers_(topology.hosts()) {}

  void handle(const Event& event, Effects& effects) override {
    if (const auto* sent = std::get_if<Sent>(&event)) {
      count(sent->message, -1);
    }
    Watch watch(*this, effects);
    inner_.handle(event, watch);
  }
  BufferRange landing(const Message& message) const override { return inner_.landing(message); }

 private:
  class Watch final : public testing::ForwardingEffects {
   public:
    Watch(CreditWatch& owner, Effects& driver) : ForwardingEffects(driver), owner_(owner) {}
    void send(const Message& message, Payload payload) override {
      if (owner_.topology_.host_of(message.to) != owner_.self_) {
        owner_.count(message, 1);
        RC_ASSERT(owner_.to_peers_[owner_.peer_of(message)].within(owner_.strategy_.peer_credit));
        RC_ASSERT(owner_.strategy_.order == Order::kFifo ||
                  owner_.to_all_.within(owner_.strategy_.credit));
      }
      ForwardingEffects::send(message, std::move(payload));
    }

   private:
    CreditWatch& owner_;
  };

  struct InFlight {
    bool within(Bytes credit) const { return bytes <= credit || messages == 1; }
    Bytes bytes = 0;
    int messages = 0;  // with a payload
  };

  std::size_t peer_of(const Message& message) const {
    return topology_.host_of(message.to).index();
  }
  void count(const Message& message, int sign) {
    for (InFlight* in_flight : {&to_all_, &to_peers_[peer_of(message)]}) {
      in_flight->bytes += sign * message.payload_bytes;
      in_flight->messages += message.payload_bytes > 0 ? sign : 0;
    }
  }

  Protocol& inner_;
  Topology topology_;
  HostId self_;
  Strategy strategy_;
  InFlight to_all_;
  std::vector<InFlight> to_peers_;
};

RC_GTEST_PROP(SimulationProperties, BytesInFlightStayWithinTheCredit, ()) {
  const World world = any_world();
  const Strategy strategy = any_strategy();
  const Assembly assembly = assemble(testing::job_for(world.profile, world.cluster, strategy));
  std::vector<std::unique_ptr<CreditWatch>> watches;
  std::vector<Protocol*> protocols;
  for (std::size_t h = 0; h < assembly.hosts.size(); ++h) {
    watches.push_back(std::make_unique<CreditWatch>(*assembly.hosts[h], world.cluster.topology,
                                                    HostId(h), strategy));
    protocols.push_back(watches.back().get());
  }
  simulate({.profile = world.profile,
            .cluster = world.cluster,
            .hosts = protocols,
            .iterations = kFewIterations});
}

}  // namespace
}  // namespace sluice
