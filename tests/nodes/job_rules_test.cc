#include "nodes/job_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <limits>

#include "codecs/sparse.h"
#include "collectives/plan.h"
#include "collectives/segments.h"
#include "model/layer.h"
#include "nodes/assembly.h"
#include "nodes/presets.h"
#include "nodes/shuffled_runs.h"
#include "partition/about.h"
#include "support/forwarding_effects.h"
#include "support/shuffled.h"
#include "support/talkative.h"
#include "wire/bad_message.h"
#include "wire/repeats.h"

namespace sluice {
namespace {

using testing::any_seed;
using ::testing::HasSubstr;
using testing::kIterations;
using testing::kLayers;
using testing::ShuffledWorld;
using testing::toy_learners;

// Passes everything on, and keeps the messages that nodes send to each other.
class Overheard final : public Protocol {
 public:
  Overheard(Protocol& host, std::vector<Message>& said) : host_(host), said_(said) {}

  void handle(const Event& event, Effects& effects) override {
    Listener listener(said_, effects);
    host_.handle(event, listener);
  }
  BufferRange landing(const Message& message) const override { return host_.landing(message); }

 private:
  class Listener final : public testing::ForwardingEffects {
   public:
    Listener(std::vector<Message>& said, Effects& driver)
        : ForwardingEffects(driver), said_(said) {}
    void send(const Message& message, Payload payload) override {
      if (message.kind != MessageKind::kAllReduce) {
        said_.push_back(message);
      }
      ForwardingEffects::send(message, std::move(payload));
    }

   private:
    std::vector<Message>& said_;
  };

  Protocol& host_;
  std::vector<Message>& said_;
};

// A driver that does nothing of what it is asked for.
class Idle final : public Effects {
 public:
  void send(const Message& /*message*/, Payload /*payload*/) override {}
  void start(Work /*work*/) override {}
  void release(NodeId /*worker*/, LayerId /*layer*/, Iteration /*iteration*/) override {}
  Payload borrow(NodeId /*node*/, const BufferRange& what) override {
    return Payload(what.range.size() * kFloatBytes);
  }
  Payload copy(NodeId node, const BufferRange& what) override { return borrow(node, what); }
};

Job toy_job_of(std::string_view preset, std::size_t hosts) {
  Job job;
  job.layers = toy_learners(kLayers, 1).front()->layers();
  job.topology = Topology(hosts, 1, 0);
  job.strategy = testing::talkative(find_preset(preset)->strategy);
  job.strategy.slice_params = 16;
  job.strategy.segment_params = 9;
  return job;
}

// Any preset, where it may with local aggregation by two processes of a machine.
Job any_job() {
  const auto index = *rc::gen::inRange<std::size_t>(0, presets().size());
  Job job = toy_job_of(presets()[index].name, *rc::gen::inRange<std::size_t>(1, 8));
  job.strategy.local_aggregation = *rc::gen::arbitrary<bool>();
  if (job.strategy.local_aggregation && !job.strategy.driver_sums() && validate(job.strategy)) {
    job.topology = Topology(2 * job.topology.hosts(), 1, 0, 2);
  } else {
    job.strategy.local_aggregation = false;
  }
  return job;
}

std::vector<Message> messages_of(const Job& job) {
  const Assembly assembly = assemble(job);
  std::vector<Message> said;
  std::vector<std::unique_ptr<Overheard>> hosts;
  std::vector<Protocol*> protocols;
  for (Protocol* host : assembly.protocols) {
    hosts.push_back(std::make_unique<Overheard>(*host, said));
    protocols.push_back(hosts.back().get());
  }
  const auto learners = toy_learners(kLayers, job.topology.workers());
  const VirtualNumbers numbers{.learners = learners,
                               .chunks = assembly.chunks.get(),
                               .rule = {.rate = {.base = 0.05F}},
                               .strategy = job.strategy};
  ShuffledWorld world(job, protocols, numbers, kIterations, any_seed());
  RC_ASSERT(world.run());
  return said;
}

// Small numbers are often right, the others are at the edges of their types.
template <class T>
T any_number() {
  return *rc::gen::oneOf(rc::gen::inRange<T>(0, 8), rc::gen::inRange<T>(0, 200),
                         rc::gen::just(std::numeric_limits<T>::max()));
}

void alter(Message& message) {
  switch (*rc::gen::inRange(0, 10)) {
    case 0:
      message.kind = static_cast<MessageKind>(*rc::gen::inRange(0, kMessageKinds));
      return;
    case 1:
      message.round = any_number<std::uint16_t>();
      return;
    case 2:
      message.priority = any_number<std::uint32_t>();
      return;
    case 3:
      message.from = NodeId(any_number<std::uint32_t>());
      return;
    case 4:
      message.to = NodeId(any_number<std::uint32_t>());
      return;
    case 5:
      message.chunk = ChunkId(any_number<std::uint32_t>());
      return;
    case 6:
      message.segment = any_number<std::uint32_t>();
      return;
    case 7:
      message.iteration = any_number<Iteration>();
      return;
    case 8:
      message.payload_bytes = any_number<Bytes>();
      return;
    default:
      message.slowest = any_number<Iteration>();
      return;
  }
}

RC_GTEST_PROP(JobRulesProperty, WhatNodesSayIsLegal, ()) {
  const Job job = any_job();
  const Assembly assembly = assemble(job);
  for (const Message& message : messages_of(job)) {
    const auto legal = assembly.rules->check(message);
    RC_ASSERT((legal ? "" : legal.error().message()) == "");
  }
}

// In lock step, whoever repeats a message is found, and nobody else.
RC_GTEST_PROP(JobRulesProperty, WhatComesTwiceIsFound, ()) {
  const Job job = any_job();
  RC_PRE(assemble(job).rules->is_once_per_iteration());
  const std::vector<Message> said = messages_of(job);
  RC_PRE(!said.empty());
  Repeats repeats;
  for (const Message& message : said) {
    RC_ASSERT(!repeats.has(message));
  }
  RC_ASSERT(repeats.has(said[*rc::gen::inRange<std::size_t>(0, said.size())]));
}

// Nothing that passes the rules reaches beyond a node's buffers or breaks an invariant, whatever
// the state of the node: it may only find that the message is not due.
RC_GTEST_PROP(JobRulesProperty, WhatIsNotRefusedDoesNoHarm, ()) {
  const Job job = any_job();
  const std::vector<Message> said = messages_of(job);
  RC_PRE(!said.empty());
  const Assembly assembly = assemble(job);
  Idle idle;
  for (int i = 0; i < 50; ++i) {
    Message message = said[*rc::gen::inRange<std::size_t>(0, said.size())];
    for (int changes = *rc::gen::inRange(0, 4); changes > 0; --changes) {
      alter(message);
    }
    if (!assembly.rules->check(message)) {
      continue;
    }
    Protocol& host = *assembly.protocols.at(job.topology.host_of(message.to).index());
    const BufferRange where = host.landing(message);
    if (where.buffer != Buffer::kNone) {
      RC_ASSERT((Range{0, total_params(job.layers)}).contains(where.range));
      RC_ASSERT(where.range.size() * kFloatBytes == message.payload_bytes);
      RC_ASSERT(where.slot < job.strategy.gradient_slots() + (job.strategy.sums_aside() ? 1 : 0));
    }
    try {
      host.handle(Received{message, Payload(message.payload_bytes)}, idle);
    } catch (const BadMessage&) {  // it is not due
    }
  }
}

class JobRulesTest : public ::testing::Test {
 protected:
  // What is wrong with a legal message of this kind after the change; "" if nothing is.
  static std::string fault(std::string_view preset, MessageKind kind,
                           const std::function<void(Message&)>& change) {
    const Job job = toy_job_of(preset, 3);
    const Assembly assembly = assemble(job);
    Message message = first_of(job, assembly, kind);
    EXPECT_TRUE(assembly.rules->check(message));
    change(message);
    const auto legal = assembly.rules->check(message);
    return legal ? "" : legal.error().message();
  }

 private:
  // About chunk 1, which has 16 parameters and is server 1's, between that and worker 0.
  static Message first_of(const Job& job, const Assembly& assembly, MessageKind kind) {
    const ChunkId chunk(1);
    Message message;
    message.kind = kind;
    message.priority = (*assembly.chunks)[chunk].priority;
    message.chunk = chunk;
    message.iteration = 1;
    message.payload_bytes = (*assembly.chunks)[chunk].range.size() * kFloatBytes;
    const NodeId server = job.topology.server((*assembly.chunks)[chunk].server);
    const bool pushed = kind == MessageKind::kPush;
    message.from = pushed ? NodeId(0) : server;
    message.to = pushed ? server : NodeId(0);
    return message;
  }
};

TEST_F(JobRulesTest, NamesWhatIsWrong) {
  const auto push = [](const std::function<void(Message&)>& change) {
    return fault("p3", MessageKind::kPush, change);
  };
  EXPECT_THAT(push([](Message& m) { m.from = NodeId(6); }), HasSubstr("there are 6 nodes"));
  EXPECT_THAT(push([](Message& m) { m.chunk = ChunkId(9); }), HasSubstr("there are 6 chunks"));
  EXPECT_THAT(push([](Message& m) { m.chunk = ChunkId(2); }),
              HasSubstr("about chunk 2 does not go from node 0 to node 4"));
  EXPECT_THAT(push([](Message& m) { m.to = NodeId(1); }), HasSubstr("to node 1"));
  EXPECT_THAT(push([](Message& m) { m.priority = 3; }), HasSubstr("layer 3 waits"));
  EXPECT_THAT(push([](Message& m) { m.iteration = 0; }), HasSubstr("iteration 0"));
  EXPECT_THAT(push([](Message& m) { m.iteration = Iteration{1} << 40U; }), HasSubstr("expected"));
  EXPECT_THAT(push([](Message& m) { m.payload_bytes -= 4; }), HasSubstr("60 bytes, expected 64"));
  EXPECT_THAT(push([](Message& m) { m.round = 1; }), HasSubstr("no round 1"));
  EXPECT_THAT(push([](Message& m) { m.weight = 0.5; }), HasSubstr("no weight 0.5"));
  EXPECT_THAT(push([](Message& m) { m.kind = MessageKind::kPull; }), HasSubstr("kind 2"));
  EXPECT_THAT(push([](Message& m) { m.kind = MessageKind::kAllReduce; }), HasSubstr("kind 6"));
  EXPECT_THAT(fault("ssp", MessageKind::kParameters, [](Message& m) { m.slowest = 2; }),
              HasSubstr("all workers are at iteration 2"));
}

TEST_F(JobRulesTest, AHopIsWhatThePlanAwaits) {
  Job job = toy_job_of("p3-allreduce", 3);
  job.strategy.collective = Collective::kRing;
  job.strategy.segment_params = 2;
  const Assembly assembly = assemble(job);
  // Chunk 1 of 16 parameters falls into three segments, each of which goes round in three parts.
  Message hop;
  hop.kind = MessageKind::kReduce;
  hop.priority = 1;
  hop.from = NodeId(2);
  hop.to = NodeId(0);
  hop.chunk = ChunkId(1);
  hop.iteration = 1;
  hop.payload_bytes = 2 * kFloatBytes;
  const auto fault = [&](const std::function<void(Message&)>& change) {
    Message message = hop;
    change(message);
    const auto legal = assembly.rules->check(message);
    return legal ? std::string() : legal.error().message();
  };
  EXPECT_EQ(fault([](Message&) {}), "");
  EXPECT_THAT(fault([](Message& m) { m.segment = 3; }), HasSubstr("segment 3 of chunk 1"));
  EXPECT_THAT(fault([](Message& m) { m.round = 4; }), HasSubstr("round 4 of 4"));
  EXPECT_THAT(fault([](Message& m) { m.round = 2; }), HasSubstr("to be added"));
  EXPECT_THAT(fault([](Message& m) { m.kind = MessageKind::kGather; }), HasSubstr("to be copied"));
  EXPECT_THAT(fault([](Message& m) { m.from = NodeId(1); }), HasSubstr("nothing from node 1"));
  EXPECT_THAT(fault([](Message& m) { m.from = NodeId(4); }), HasSubstr("no hop from node 4"));
  EXPECT_THAT(fault([](Message& m) { m.payload_bytes = 12; }), HasSubstr("12 bytes"));
}

// Segments of 5, 5 and 6 parameters share two plans, which must not depend on where they begin.
TEST_F(JobRulesTest, AHopIsCheckedInEverySegment) {
  Job job = toy_job_of("p3-allreduce", 3);
  job.strategy.segment_params = 2;
  for (const Collective collective : {Collective::kRing, Collective::kRecursiveDoubling,
                                      Collective::kHalvingDoubling, Collective::kBinaryTree}) {
    job.strategy.collective = collective;
    const Assembly assembly = assemble(job);
    const Range chunk = (*assembly.chunks)[ChunkId(1)].range;
    const std::size_t segments = segments_of(job.strategy, collective, 3, chunk.size());
    std::size_t hops = 0;
    for (std::uint32_t segment = 0; segment < segments; ++segment) {
      const Plan plan = make_plan(collective, 0, 3, range_of_segment(chunk, segments, segment));
      for (std::uint16_t round = 0; round < plan.size(); ++round) {
        if (!plan[round].receive) {
          continue;
        }
        Message hop;
        hop.kind = plan[round].reduce ? MessageKind::kReduce : MessageKind::kGather;
        hop.priority = 1;
        hop.from = NodeId(plan[round].receive->peer);
        hop.to = NodeId(0);
        hop.chunk = ChunkId(1);
        hop.segment = segment;
        hop.round = round;
        hop.iteration = 1;
        hop.payload_bytes = plan[round].receive->range.size() * kFloatBytes;
        const auto legal = assembly.rules->check(hop);
        EXPECT_TRUE(legal) << legal.error().message();
        hop.payload_bytes += kFloatBytes;
        EXPECT_FALSE(assembly.rules->check(hop));
        ++hops;
      }
    }
    EXPECT_GT(hops, segments);
  }
}

TEST_F(JobRulesTest, SparsePayloadsPointIntoTheirChunk) {
  for (const auto& [preset, kind] : {std::pair{"bsp+dgc", MessageKind::kPush},
                                     {"bsp+dgc", MessageKind::kParameters},
                                     {"ar-sgd+dgc", MessageKind::kReduce},
                                     {"p3", MessageKind::kPush}}) {
    SCOPED_TRACE(preset);
    const Job job = toy_job_of(preset, 2);
    const Assembly assembly = assemble(job);
    Message message;
    message.kind = kind;
    message.chunk = ChunkId(0);
    message.from = kind == MessageKind::kParameters ? job.topology.server(0) : NodeId(1);
    const auto length = static_cast<std::size_t>((*assembly.chunks)[ChunkId(0)].range.size());
    const std::vector<float> values(length + 1, 1.0F);
    const auto last = static_cast<std::uint32_t>(length - 1);
    EXPECT_TRUE(assembly.rules->check_payload(message, encode_sparse(values, {{0, last}})));
    const auto beyond = assembly.rules->check_payload(message, encode_sparse(values, {{last + 1}}));
    EXPECT_EQ(static_cast<bool>(beyond), !job.strategy.sparse());
    if (!beyond) {
      EXPECT_THAT(beyond.error().message(), HasSubstr("sparse vector, entry 0: position "));
    }
  }
}

// In a synchronous job the state of a server tells which gradient is due.
TEST(ShardPeers, AGradientThatIsNotDueIsRefusedByRank) {
  const Job job = toy_job_of("p3", 3);
  const Assembly assembly = assemble(job);
  Idle idle;
  Message push;
  push.priority = 1;
  push.from = NodeId(2);
  push.to = job.topology.server((*assembly.chunks)[ChunkId(1)].server);
  push.chunk = ChunkId(1);
  push.iteration = 1;
  push.payload_bytes = 64;
  Protocol& host = *assembly.protocols[job.topology.host_of(push.to).index()];
  const auto refusal = [&] {
    try {
      host.handle(Received{push, Payload(64)}, idle);
      return std::string();
    } catch (const BadMessage& bad) {
      return std::string(bad.what());
    }
  };
  EXPECT_EQ(refusal(), "");
  EXPECT_THAT(refusal(), HasSubstr("a message of rank 2 is not right"));
  push.from = NodeId(1);
  push.iteration = 3;
  EXPECT_THAT(refusal(), HasSubstr("for iteration 3, expected that for 1"));
}

TEST(JobRulesOfFactors, NobodySendsWhatTravelsAsFactors) {
  const Assembly assembly = assemble(toy_job_of("powersgd", 2));
  for (std::size_t c = 0; c < assembly.chunks->size(); ++c) {
    const auto legal = assembly.rules->check(
        message_about(*assembly.chunks, ChunkId(c), MessageKind::kReduce, NodeId(0), NodeId(1), 1));
    const bool is_rest = (*assembly.chunks)[ChunkId(c)].factor == Factor::kRest;
    const std::string fault = legal ? "" : legal.error().message();
    EXPECT_EQ(fault.find("travels as the factors") != std::string::npos, is_rest) << fault;
  }
}

}  // namespace
}  // namespace sluice
