#include "planner/tuning.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "model/message_size.h"
#include "nodes/presets.h"

namespace sluice {
namespace {

Strategy usual() { return find_preset("p3")->strategy; }

Strategy tuned(const Topology& topology, double gbps, const ChosenSizes& chosen = {}) {
  Job job;
  job.topology = topology;
  job.link.ns_per_byte = 8 / gbps;
  job.strategy = usual();
  tune_for_link(job, chosen);
  return job.strategy;
}

const Topology kApart(4, 1, 0);
const Topology kTogether(4, 1, 0, 4);

TEST(TuningTest, HopsAreLongerAmongProcessesOfOneMachine) {
  const Strategy strategy = tuned(kTogether, 80);
  EXPECT_EQ(strategy.segment_params * kFloatBytes, 1 << 20);
  EXPECT_GT(strategy.segment_params, usual().segment_params);
  EXPECT_EQ(strategy.peer_credit, 8'000'000) << "several hops are in flight at a time";
}

TEST(TuningTest, HopsStayShortBetweenMachines) {
  for (const Topology& topology : {kApart, Topology(4, 1, 0, 2)}) {
    const Strategy strategy = tuned(topology, 1);
    EXPECT_EQ(strategy.segment_params, usual().segment_params);
    EXPECT_LE(strategy.peer_credit, usual().peer_credit);
  }
}

TEST(TuningTest, OnSlowLinksLittleIsOnItsWayToAPeerIfSomethingCanBeUrgent) {
  const Strategy strategy = tuned(kApart, 1);
  EXPECT_LT(strategy.peer_credit, 2 * strategy.slice_params * kFloatBytes);
  EXPECT_GE(tuned(kApart, 2).peer_credit, 2 * strategy.slice_params * kFloatBytes);
  EXPECT_EQ(tuned(kApart, 4).peer_credit, usual().peer_credit);
  Job fifo{.layers = {}, .topology = kApart, .strategy = find_preset("slicing")->strategy};
  fifo.link.ns_per_byte = 8;
  tune_for_link(fifo, {});
  EXPECT_EQ(fifo.strategy.peer_credit, usual().peer_credit);
}

TEST(TuningTest, JoinsLayersWhoseMessagesCostMoreThanTheirBytes) {
  EXPECT_EQ(tuned(kApart, 1).join_params, 562) << "18 us of a link of 1 Gb/s";
  EXPECT_EQ(tuned(kApart, 10).join_params, 5625);
  EXPECT_EQ(tuned(kTogether, 10).join_params, 8192);
  EXPECT_EQ(tuned(kApart, 1, {.slice = true}).join_params, 0) << "the user has set the sizes";
}

TEST(TuningTest, JoinsNothingWhereAChunkIsMoreThanItsValues) {
  const auto joined = [](const auto& change) {
    Job job{.layers = {}, .topology = kTogether, .strategy = usual()};
    change(job.strategy);
    tune_for_link(job, {});
    return job.strategy.join_params;
  };
  EXPECT_GT(joined([](Strategy& s) { s.codec = Codec::kTruncate16; }), 0);
  EXPECT_EQ(joined([](Strategy& s) { s.codec = Codec::kQuantise8; }), 0) << "a scale per chunk";
  EXPECT_EQ(joined([](Strategy& s) { s.codec = Codec::kDgc; }), 0);
  EXPECT_EQ(joined([](Strategy& s) { s.sums_first = SumsFirst::kChunk; }), 0) << "LAMB";
  EXPECT_EQ(joined([](Strategy& s) { s.algorithm = Algorithm::kSsp; }), 0);
  EXPECT_EQ(joined([](Strategy& s) { s.partition = Partition::kLayer; }), 0);
}

Strategy tuned_for_machine(const Topology& topology, const std::string& preset) {
  Job job;
  job.topology = topology;
  job.strategy = find_preset(preset)->strategy;
  tune_sums_for_machine(job);
  return job.strategy;
}

TEST(TuningTest, ProcessesOfOneMachineSumInMemoryWhereNothingStandsAgainstIt) {
  EXPECT_EQ(tuned_for_machine(kTogether, "wfbp").collective, Collective::kSharedMemory);
  EXPECT_EQ(tuned_for_machine(kTogether, "single").collective, Collective::kSharedMemory);
  EXPECT_EQ(tuned_for_machine(kApart, "wfbp").collective, std::nullopt);
  EXPECT_EQ(tuned_for_machine(Topology(4, 1, 0, 2), "wfbp").collective, std::nullopt);
  EXPECT_EQ(tuned_for_machine(Topology(1, 1, 0), "wfbp").collective, std::nullopt);
  EXPECT_EQ(tuned_for_machine(Topology(2, 2, 0, 2), "wfbp").collective, std::nullopt);
  for (const std::string preset : {"p3", "p3-allreduce", "ar-sgd+dgc", "gosgd"}) {
    EXPECT_EQ(tuned_for_machine(kTogether, preset).collective, std::nullopt) << preset;
  }
}

TEST(TuningTest, WhatTheUserHasChosenSumsOnOneMachineToo) {
  Job job{.layers = {}, .topology = kTogether, .strategy = find_preset("wfbp")->strategy};
  job.strategy.collective = Collective::kRing;
  tune_sums_for_machine(job);
  EXPECT_EQ(job.strategy.collective, Collective::kRing);
}

TEST(TuningTest, MachinesShareNoMemory) {
  Strategy strategy = find_preset("wfbp")->strategy;
  strategy.collective = Collective::kSharedMemory;
  EXPECT_TRUE(check_driver_sums(strategy, kTogether));
  EXPECT_FALSE(check_driver_sums(strategy, kApart));
  strategy.collective = Collective::kNative;
  EXPECT_TRUE(check_driver_sums(strategy, kApart));
}

TEST(TuningTest, SlicesGrowWithTheRate) {
  EXPECT_LE(tuned(kApart, 1).slice_params * kFloatBytes, 64 << 10) << "less than Open MPI's limit";
  EXPECT_GT(tuned(kApart, 7).slice_params, usual().slice_params);
  for (double gbps = 0.1; gbps < 100; gbps *= 1.3) {
    EXPECT_LE(tuned(kApart, gbps).slice_params, tuned(kApart, 1.3 * gbps).slice_params) << gbps;
  }
}

// The start-up of a message is a small part of its time, except where messages are as short as MPI
// sends them eagerly.
RC_GTEST_PROP(TuningTest, AMessageIsLongForItsWire, ()) {
  const double ns_per_byte = 8 / (*rc::gen::inRange(1, 1000) / 10.0);
  const bool announced = *rc::gen::arbitrary<bool>();
  const MessageSize size = message_size(ns_per_byte, announced);
  RC_ASSERT(size.params >= kEagerParams);
  const double wire = static_cast<double>(size.bytes()) * ns_per_byte;
  if (!size.eager() && size.params < MessageSize::kMaxParams) {
    RC_ASSERT(MessageSize::kMessageNs <= 1.01 * MessageSize::kShareOfWire * wire);
    RC_ASSERT(MessageSize::kMessageNs >= 0.99 * MessageSize::kShareOfWire * wire);
  }
}

// Each rank of a sum sends and receives its share of a slice.
TEST(TuningTest, AMessageIsAsLongAfterPacking) {
  const auto slice_with = [](const std::string& preset, Codec codec, std::optional<Update> update) {
    Job job{.layers = {}, .topology = kApart, .strategy = find_preset(preset)->strategy};
    job.link.ns_per_byte = 0.8;
    job.strategy.codec = codec;
    job.strategy.update = update;
    tune_for_link(job, {});
    return job.strategy.slice_params;
  };
  for (const char* preset : {"p3", "p3-allreduce"}) {
    const std::int64_t plain = slice_with(preset, Codec::kNone, {});
    EXPECT_EQ(slice_with(preset, Codec::kBf16, {}), 2 * plain);
    EXPECT_EQ(slice_with(preset, Codec::kQuantise8, {}), 4 * plain);
  }
  EXPECT_EQ(slice_with("p3", Codec::kBf16, Update::kServer), slice_with("p3", Codec::kNone, {}))
      << "parameters come back as they are";
}

TEST(TuningTest, TheHopsOfASumAreAsLongAsASlice) {
  for (const double gbps : {1.0, 15.0}) {
    Job job{.layers = {}, .topology = kApart, .strategy = find_preset("p3-allreduce")->strategy};
    job.link.ns_per_byte = 8 / gbps;
    tune_for_link(job, {});
    EXPECT_EQ(job.strategy.slice_params, 4 * tuned(kApart, gbps).slice_params);
    EXPECT_EQ(job.strategy.segment_params, tuned(kApart, gbps).slice_params);
  }
}

TEST(TuningTest, CreditsHoldASliceForEachPeer) {
  for (const double gbps : {0.1, 1.0, 10.0, 25.0, 100.0}) {
    const Strategy strategy = tuned(kApart, gbps);
    const Bytes slice = strategy.slice_params * kFloatBytes;
    EXPECT_GE(strategy.peer_credit, slice) << gbps;
    EXPECT_LT(strategy.peer_credit, 2 * slice)
        << gbps << ": an urgent slice waits for at most one other";
    EXPECT_GE(strategy.credit, 3 * strategy.peer_credit) << gbps;
    EXPECT_LE(strategy.credit, 3 * std::max(slice, usual().peer_credit)) << gbps;
  }
}

// What is urgent waits for one message at most; else one is sent while another is confirmed.
RC_GTEST_PROP(TuningTest, APeersCreditHoldsOneUrgentMessageOrTwoOthers, ()) {
  Job job{.layers = {}, .topology = kApart, .strategy = usual()};
  job.link.ns_per_byte = 8 / (*rc::gen::inRange(1, 1000) / 10.0);
  job.strategy.order = *rc::gen::element(Order::kFifo, Order::kAfterBackward, Order::kPriority);
  job.strategy.exchange = *rc::gen::element(Exchange::kAllReduce, Exchange::kBroadcast,
                                            Exchange::kLatePull, Exchange::kGossip);
  job.strategy.segment_params = *rc::gen::element<std::int64_t>(0, kEagerParams);
  const bool announced = *rc::gen::arbitrary<bool>();
  tune_for_link(job, {}, announced);
  const Bytes held = (job.strategy.order == Order::kPriority ? 1 : 2) *
                     message_size(job.link.ns_per_byte, announced).bytes();
  RC_ASSERT(job.strategy.peer_credit >= held);
  RC_ASSERT(job.strategy.peer_credit <= std::max(held, usual().peer_credit));
}

TEST(TuningTest, AChosenCreditMayBeSmallerThanAnyUsualOne) {
  Job job{.layers = {}, .topology = kApart, .strategy = usual()};
  job.link.ns_per_byte = 8;
  job.strategy.peer_credit = 1;
  tune_for_link(job, {.peer_credit = true});
  EXPECT_EQ(job.strategy.peer_credit, 1);
}

TEST(TuningTest, WhatTheUserChoseStays) {
  for (const Topology& topology : {kApart, kTogether}) {
    for (const double gbps : {1.0, 25.0}) {
      const Strategy strategy = tuned(topology, gbps, {true, true, true, true});
      EXPECT_EQ(strategy.slice_params, usual().slice_params);
      EXPECT_EQ(strategy.credit, usual().credit);
      EXPECT_EQ(strategy.peer_credit, usual().peer_credit);
      EXPECT_EQ(strategy.segment_params, usual().segment_params);
    }
  }
}

TEST(TuningTest, WholeVectorsStayWhole) {
  for (const Topology& topology : {kApart, kTogether}) {
    Job job{.layers = {}, .topology = topology, .strategy = find_preset("d-sync")->strategy};
    tune_for_link(job, {});
    EXPECT_EQ(job.strategy.segment_params, 0);
  }
}

}  // namespace
}  // namespace sluice
