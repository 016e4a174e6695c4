#include "nodes/host.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "nodes/assembly.h"
#include "nodes/presets.h"
#include "nodes/shuffled_runs.h"
#include "support/forwarding_effects.h"
#include "support/recorded_effects.h"
#include "support/shuffled.h"
#include "support/talkative.h"
#include "wire/lost_peer.h"

namespace sluice {
namespace {

using testing::any_seed;
using News = std::vector<std::string>;

// Worker 0 and server 2 on host 0, worker 1 and server 3 on host 1; a chunk at each server.
Assembly two_hosts(const std::string& preset) {
  Job job;
  job.layers = lay_out({"first", "second"}, {4, 6});
  job.topology = Topology(2, 1, 0);
  job.strategy = find_preset(preset)->strategy;
  return assemble(job);
}

Received push_to_server(const Assembly& assembly, std::size_t from, std::size_t chunk) {
  Message push;
  push.from = NodeId(from);
  push.to = NodeId(2 + (*assembly.chunks)[ChunkId(chunk)].server);
  push.chunk = ChunkId(chunk);
  push.iteration = 1;
  push.payload_bytes = (*assembly.chunks)[ChunkId(chunk)].range.size() * kFloatBytes;
  return {push, Payload(push.payload_bytes)};
}

TEST(Host, PassesAnEventToItsNode) {
  const Assembly assembly = two_hosts("bsp");
  testing::RecordedEffects driver;
  Protocol& host = *assembly.protocols[0];
  host.handle(Started{NodeId(0)}, driver);
  EXPECT_EQ(driver.news(), (News{"release 0/0", "release 0/1"}));
  EXPECT_THROW(host.handle(Started{NodeId(1)}, driver), InvariantError);
  EXPECT_THROW(host.handle(Started{NodeId(9)}, driver), InvariantError);
}

TEST(Host, WhatStaysAtHomePassesNoQueueAndIsCountedApart) {
  const Assembly assembly = two_hosts("bsp");
  testing::RecordedEffects driver;
  Protocol& host = *assembly.protocols[0];
  host.handle(GradientReady{NodeId(0), LayerId(1), 0}, driver);
  host.handle(GradientReady{NodeId(0), LayerId(0), 0}, driver);
  ASSERT_EQ(driver.sent.size(), 2U);
  Bytes abroad = 0;
  for (const Message& message : driver.sent) {
    const bool leaves = assembly.job.topology.host_of(message.to) != HostId(0);
    abroad += leaves ? message.payload_bytes : 0;
  }
  const Counters counters = assembly.counters();
  EXPECT_EQ(counters.local_messages, 1);
  EXPECT_EQ(counters.messages, 1);
  EXPECT_EQ(counters.payload_bytes, abroad);
}

TEST(Host, ArithmeticOfAllItsNodesGoesOverOneWorkbench) {
  const Assembly assembly = two_hosts("asp");
  const std::size_t here = (*assembly.chunks)[ChunkId(0)].server == 0 ? 0 : 1;
  testing::RecordedEffects driver;
  Protocol& host = *assembly.protocols[0];
  host.handle(push_to_server(assembly, 0, here), driver);
  host.handle(push_to_server(assembly, 1, here), driver);
  ASSERT_EQ(driver.started.size(), 1U);
  host.handle(Finished{driver.started[0], {}}, driver);
  EXPECT_EQ(driver.started.size(), 2U);
  EXPECT_EQ(assembly.counters().updates, 2);
}

// ---- when another host is lost ----

// What the error says if host 0 of a job loses another one in its second iteration; nothing if it
// goes on.
std::string ends_with(std::string_view preset, const Topology& topology, std::size_t lost,
                      Iteration first = 0) {
  Job job;
  job.first = first;
  job.layers = lay_out({"only"}, {4});
  job.topology = topology;
  job.strategy = testing::talkative(find_preset(preset)->strategy);
  const Assembly assembly = assemble(job);
  testing::RecordedEffects driver;
  assembly.protocols[0]->handle(Started{NodeId(0), 2}, driver);
  try {
    assembly.protocols[0]->handle(PeerLost{HostId(lost)}, driver);
  } catch (const LostPeer& e) {
    EXPECT_EQ(e.rank, lost);
    EXPECT_EQ(e.iteration, 2);
    return e.what();
  }
  return "";
}

TEST(Host, EndsWithAnErrorThatNamesALostRankOfALockStep) {
  for (const Preset& preset : presets()) {
    if (traits_of(preset.strategy.algorithm).replicas_agree()) {
      EXPECT_EQ(ends_with(preset.name, Topology(3, 1, 1), 1),
                "rank 1 was lost in iteration 2; training ends because its algorithm needs all "
                "workers");
    }
  }
}

TEST(Host, NeedsAllWorkersUntilTheSynchronousIterationsAreOver) {
  EXPECT_EQ(ends_with("post-local-sgd", Topology(3, 1, 0), 2),
            "rank 2 was lost in iteration 2; training ends because its first iterations are "
            "synchronous, which needs all workers");
  EXPECT_EQ(ends_with("post-local-sgd", Topology(3, 1, 0), 2, 2), "");
}

TEST(Host, GoesOnWithoutAWorkerButNotWithoutAServer) {
  for (const auto* const preset : {"asp", "ssp", "easgd", "asp+dgc", "ssp+dgc"}) {
    EXPECT_EQ(ends_with(preset, Topology(3, 1, 1), 1), "");
    const std::string why = "training ends because a server was on it";
    EXPECT_EQ(ends_with(preset, Topology(3, 1, 1), 3), "rank 3 was lost in iteration 2; " + why);
    EXPECT_EQ(ends_with(preset, Topology(3, 1, 0), 1), "rank 1 was lost in iteration 2; " + why);
  }
  for (const auto* const preset :
       {"gosgd", "ad-psgd", "noloco", "local-sgd", "diloco", "streaming-diloco", "sparseloco"}) {
    EXPECT_EQ(ends_with(preset, Topology(3, 1, 0), 1), "");
  }
}

// Of `asp`, apart from its three workers, with credit for one message to each.
class AspServerHost : public ::testing::Test {
 protected:
  AspServerHost() {
    Job job;
    job.layers = lay_out({"only"}, {4});
    job.topology = Topology(3, 1, 1);
    job.strategy = find_preset("asp")->strategy;
    job.strategy.peer_credit = 16;
    assembly_ = assemble(job);
  }

  // A gradient comes from this worker, and goes into the update.
  void push(std::size_t from, Iteration iteration) {
    Received event = push_to_server(assembly_, from, 0);
    event.message.to = NodeId(3);
    event.message.iteration = iteration;
    server().handle(event, driver_);
    server().handle(Finished{driver_.started.back(), {}}, driver_);
  }
  Host& server() { return *assembly_.hosts[3]; }

  Assembly assembly_;
  testing::RecordedEffects driver_;
};

TEST_F(AspServerHost, SendsNothingToALostHostAndHasItsCreditBack) {
  push(0, 1);
  push(0, 2);
  EXPECT_EQ(server().egress().in_flight(), 16);
  EXPECT_EQ(server().egress().waiting(), 1U);
  push(1, 1);
  server().handle(PeerLost{HostId(0)}, driver_);
  EXPECT_EQ(server().egress().in_flight(), 16) << "to worker 1";
  EXPECT_EQ(server().egress().waiting(), 0U);
  push(2, 1);
  ASSERT_EQ(driver_.sent.size(), 3U);
  EXPECT_EQ(driver_.sent[1].to, NodeId(1));
  EXPECT_EQ(driver_.sent[2].to, NodeId(2));
}

TEST_F(AspServerHost, SendsToAHostThatIsBackAndHasItsCreditAnew) {
  push(0, 1);
  server().handle(PeerLost{HostId(0)}, driver_);
  server().handle(PeerJoined{HostId(0), 5}, driver_);
  push(0, 6);
  ASSERT_EQ(driver_.sent.size(), 2U);
  EXPECT_EQ(driver_.sent[1].to, NodeId(0));
  EXPECT_EQ(driver_.sent[1].iteration, 6);
  EXPECT_EQ(server().egress().in_flight(), 16);
  // It was lost and is back before this host has heard of the loss.
  server().handle(PeerJoined{HostId(0), 7}, driver_);
  EXPECT_EQ(server().egress().in_flight(), 0);
}

// ---- who may read what is being worked on ----

bool meet(const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; }

Buffer written_by(const Work& work) {
  switch (work.kind) {
    case WorkKind::kUpdate:
    case WorkKind::kSum:
    case WorkKind::kBlend:
    case WorkKind::kElastic:
    case WorkKind::kSwapped:
    case WorkKind::kPatch:
    case WorkKind::kTakeOver:
      return Buffer::kParameters;
    case WorkKind::kReduce:
    case WorkKind::kDecode:
    case WorkKind::kOuterGradient:
    case WorkKind::kLeftFactor:
    case WorkKind::kRightFactor:
    case WorkKind::kFromFactors:
      return Buffer::kGradients;
    case WorkKind::kEncode:
      return work.exact ? Buffer::kGradients : Buffer::kNone;
    case WorkKind::kNorm:
    case WorkKind::kMerge:
    case WorkKind::kChanges:
    case WorkKind::kSwap:
    case WorkKind::kOuterStep:
      return Buffer::kNone;
  }
  return Buffer::kNone;
}

bool needs_parameters(const Work& work) {
  return written_by(work) == Buffer::kParameters || work.kind == WorkKind::kChanges ||
         work.kind == WorkKind::kOuterGradient || (work.kind == WorkKind::kOuterStep && work.fresh);
}

// A host whose driver holds it to the contract of Effects::start.
class Guarded final : public Protocol {
 public:
  explicit Guarded(Protocol& inner) : inner_(inner) {}

  void handle(const Event& event, Effects& effects) override {
    if (const auto* finished = std::get_if<Finished>(&event)) {
      const auto done = std::ranges::find_if(in_progress_, [&](const Work& work) {
        const Work& other = finished->work;
        return work.node == other.node && work.range == other.range && work.kind == other.kind &&
               work.origin == other.origin && work.iteration == other.iteration;
      });
      in_progress_.erase(done);
    }
    Watch watch(in_progress_, effects);
    inner_.handle(event, watch);
  }
  BufferRange landing(const Message& message) const override { return inner_.landing(message); }

 private:
  class Watch final : public testing::ForwardingEffects {
   public:
    Watch(std::vector<Work>& in_progress, Effects& inner)
        : ForwardingEffects(inner), in_progress_(in_progress) {}

    void start(Work work) override {
      for (const Work& other : in_progress_) {
        const bool one_updates = work.kind == WorkKind::kUpdate || other.kind == WorkKind::kUpdate;
        RC_ASSERT(other.node != work.node || !one_updates || !needs_parameters(work) ||
                  !needs_parameters(other) || !meet(other.range, work.range));
      }
      in_progress_.push_back(work);
      ForwardingEffects::start(std::move(work));
    }
    Payload borrow(NodeId node, const BufferRange& what) override {
      expect_at_rest(node, what);
      return ForwardingEffects::borrow(node, what);
    }
    Payload copy(NodeId node, const BufferRange& what) override {
      expect_at_rest(node, what);
      return ForwardingEffects::copy(node, what);
    }

   private:
    void expect_at_rest(NodeId node, const BufferRange& what) const {
      for (const Work& work : in_progress_) {
        const bool same_slot = what.buffer == Buffer::kParameters || work.slot == what.slot;
        RC_ASSERT(work.node != node || written_by(work) != what.buffer || !same_slot ||
                  !meet(work.range, what.range));
      }
    }

    std::vector<Work>& in_progress_;
  };

  Protocol& inner_;
  std::vector<Work> in_progress_;
};

RC_GTEST_PROP(HostProperties, NobodyReadsWhatIsBeingWorkedOn, ()) {
  const auto& preset = *rc::gen::elementOf(presets());
  const auto workers = *rc::gen::inRange<std::size_t>(1, 5);
  auto learners = testing::toy_learners(testing::kLayers, workers);
  Job job;
  job.layers = learners.front()->layers();
  job.topology = Topology(workers, 1, 0);
  job.strategy = testing::talkative(preset.strategy);
  job.strategy.slice_params = 16;
  job.strategy.staleness = *rc::gen::inRange<Iteration>(0, 3);
  job.server_threads = *rc::gen::inRange(1, 4);
  RC_LOG() << preset.name << ", " << workers << " workers\n";
  const Assembly assembly = assemble(job);
  std::vector<Guarded> guarded;
  std::vector<Protocol*> hosts;
  for (Protocol* host : assembly.protocols) {
    guarded.emplace_back(*host);
  }
  for (Guarded& host : guarded) {
    hosts.push_back(&host);
  }
  const VirtualNumbers numbers{
      .learners = learners, .chunks = assembly.chunks.get(), .rule = {}, .strategy = job.strategy};
  testing::ShuffledWorld world(assembly.job, hosts, numbers, testing::kIterations, any_seed());
  RC_ASSERT(world.run());
}

}  // namespace
}  // namespace sluice
