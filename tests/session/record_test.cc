#include "session/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "nodes/presets.h"
#include "support/matrices.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Assembly assembly_of(const std::string& preset) {
  Job job;
  job.layers = lay_out({"a", "b"}, {300, 40});
  job.topology = Topology(2, 1, 0);
  job.strategy = find_preset(preset)->strategy;
  job.strategy.slice_params = 100;
  return assemble(job);
}

class RecordTest : public ::testing::Test {
 protected:
  RecordTest() {
    spec_.folder = folder_.path() / "run";
    spec_.config = "seed = 1\n";
    spec_.command_line = "sluice train";
  }

  Record open() const {
    auto opened = Record::open(spec_, "p3-net");
    EXPECT_TRUE(opened) << opened.error().message();
    return *std::move(opened);
  }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_.path() / name); }

  TemporaryFolder folder_;
  RecordSpec spec_;
};

TEST_F(RecordTest, TheFolderHasTheSettingsAndTheFilesThatTheyName) {
  spec_.kept = {{"profile.json", "{}"}};
  const Record record = open();
  EXPECT_TRUE(record.has_folder());
  EXPECT_EQ(folder_.read("run/config.toml"), "seed = 1\n");
  EXPECT_EQ(folder_.read("run/profile.json"), "{}");
}

TEST_F(RecordTest, AFolderThatIsInUseIsRefused) {
  open();
  const auto again = Record::open(spec_, "p3-net");
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message(), HasSubstr("is not empty"));
}

TEST_F(RecordTest, AFolderWithoutANameGetsANewOne) {
  spec_.folder = "";
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  const std::string first = open().folder().path();
  const std::string second = open().folder().path();
  std::filesystem::current_path(before);
  EXPECT_THAT(first, StartsWith("runs/p3-net-"));
  EXPECT_THAT(second, StartsWith("runs/p3-net-"));
  EXPECT_NE(first, second);
}

TEST_F(RecordTest, ClosingWritesTheSummaryAndTheTrace) {
  spec_.trace = "auto";
  Record record = open();
  record.watch(assembly_of("p3"));
  EXPECT_FALSE(has("run/summary.json"));
  ASSERT_TRUE(record.close({{"iterations", 6}}, {"h0", "h1"}));
  const json summary = json::parse(folder_.read("run/summary.json"));
  EXPECT_EQ(summary.at("iterations"), 6);
  EXPECT_EQ(summary.at("run").at("command_line"), "sluice train");
  EXPECT_EQ(summary.at("run").at("hosts"), (json{"h0", "h1"}));
  EXPECT_TRUE(has("run/trace.json"));
  EXPECT_TRUE(has("run/timeline.json"));
}

TEST_F(RecordTest, WithoutAFolderOnlyANamedTraceIsWritten) {
  spec_.trace = folder_.path() / "t.json";
  Record record = Record::without_folder(spec_);
  record.watch(assembly_of("p3"));
  ASSERT_TRUE(record.close({{"iterations", 6}}, {"h0"}));
  EXPECT_FALSE(has("run"));
  EXPECT_TRUE(has("t.json"));
}

// Worker 1 computes for 10, waits for 5 and sends a message of 400 bytes.
void add_iteration(Observer& observer) {
  observer.computed(NodeId(1), LayerId(0), 0, Pass::kForward, Time(0), Time(10));
  observer.waited(NodeId(1), LayerId(1), 0, Time(10), Time(15));
  Message message;
  message.kind = MessageKind::kPush;
  message.from = NodeId(1);
  message.to = NodeId(2);
  message.payload_bytes = 400;
  observer.sent(message, Time(8), Time(14));
}

TEST_F(RecordTest, WhatAnotherProcessSawIsAdopted) {
  const Assembly assembly = assembly_of("p3");
  const Topology& topology = assembly.job.topology;
  Record own = Record::without_folder({});
  Record other = Record::without_folder({});
  own.watch(assembly);
  other.watch(assembly);
  add_iteration(*other.observer());
  EXPECT_EQ(own.tally().worker(1).compute, Duration(0));
  own.adopt(HostId(1), other.report(HostId(1)));
  EXPECT_EQ(own.tally().worker(1).compute, Duration(10));
  EXPECT_EQ(own.tally().worker(1).waited, Duration(5));
  const RunTotals totals = own.totals(topology, {});
  const RunTotals of_other = other.totals(topology, {});
  EXPECT_EQ(totals.sent, of_other.sent);
  EXPECT_EQ(totals.communication, of_other.communication);
  EXPECT_EQ(totals.hidden, Duration(2));
  EXPECT_EQ(totals.steady_waits.communication, of_other.steady_waits.communication);
}

TEST_F(RecordTest, TheMechanismTellsWhatWasSentAndHow) {
  RunTotals totals;
  totals.counters.messages = 3;
  totals.sent[static_cast<std::size_t>(MessageKind::kPush)] = {.messages = 3, .bytes = 1200};
  const Assembly pushes = assembly_of("p3");
  const auto by_servers = mechanism_of(pushes, totals);
  EXPECT_EQ(by_servers.at("messages"), 3);
  EXPECT_EQ(by_servers.at("chunks_per_model"), 4);
  EXPECT_EQ(by_servers.at("sent_by_kind").size(), 1U) << "only what was sent";
  EXPECT_EQ(by_servers.at("sent_by_kind").front().at("bytes"), 1200);
  EXPECT_TRUE(by_servers.at("chunks_by_collective").empty());
  const auto by_sums = mechanism_of(assembly_of("wfbp"), {}).at("chunks_by_collective");
  int chunks = 0;
  for (const auto& count : by_sums) {
    chunks += count.get<int>();
  }
  EXPECT_EQ(chunks, 2) << "one per layer";
}

TEST_F(RecordTest, TheMechanismTellsWhatTravelsAsFactors) {
  Job job;
  job.layers = testing::with_matrices(lay_out({"a", "b"}, {3000, 40}));
  job.topology = Topology(2, 1, 0);
  job.strategy = find_preset("powersgd")->strategy;
  const auto mechanism = mechanism_of(assemble(job), {});
  const std::int64_t factored = job.layers.front().matrix.range().size();
  EXPECT_EQ(mechanism.at("powersgd").at("rank"), 4);
  EXPECT_EQ(mechanism.at("powersgd").at("matrices"), 1);
  EXPECT_EQ(mechanism.at("powersgd").at("factored_parameters"), factored);
  EXPECT_EQ(mechanism.at("powersgd").at("dense_parameters"), 3040 - factored);
  int sums = 0;
  for (const auto& count : mechanism.at("chunks_by_collective")) {
    sums += count.get<int>();
  }
  EXPECT_EQ(sums, 5) << "two factors, what is before and behind their matrix, the small layer";
  EXPECT_FALSE(mechanism_of(assembly_of("wfbp"), {}).contains("powersgd"));
}

TEST_F(RecordTest, TheBreakdownIsTheMeanOverWorkersAndIterations) {
  RunTotals totals;
  totals.steady_compute = from_us(120);
  totals.steady_waits.communication = from_us(60);
  totals.steady_waits.others = from_us(30);
  totals.steady_hidden = from_us(24);
  const auto parts = breakdown_of(totals, Topology(2, 3, 0), 5);  // 6 workers on 2 hosts
  EXPECT_DOUBLE_EQ(parts.at("computation_us"), 4);
  EXPECT_DOUBLE_EQ(parts.at("communication_exposed_us"), 2);
  EXPECT_DOUBLE_EQ(parts.at("global_aggregation_wait_us"), 1);
  EXPECT_DOUBLE_EQ(parts.at("local_aggregation_us"), 0);
  EXPECT_DOUBLE_EQ(parts.at("communication_hidden_us"), 2.4);
}

TEST_F(RecordTest, CopiesToADeviceAreHiddenBehindCompute) {
  const Assembly assembly = assembly_of("p3");
  const Topology& topology = assembly.job.topology;
  Record record = Record::without_folder({});
  record.watch(assembly);
  EXPECT_EQ(device_copies_of(record, topology, 1).at("hidden_share"), 1) << "there are none";
  Observer& observer = *record.observer();
  observer.computed(NodeId(0), LayerId(0), 0, Pass::kForward, from_us(0), from_us(10));
  observer.copied(NodeId(0), LayerId(0), 0, Passage::kFromDevice, from_us(6), from_us(14));
  const auto copies = device_copies_of(record, topology, 2);
  EXPECT_DOUBLE_EQ(copies.at("busy_us"), 2) << "8 us on one of two hosts, in two iterations";
  EXPECT_DOUBLE_EQ(copies.at("hidden_share"), 0.5);
}

}  // namespace
}  // namespace sluice
