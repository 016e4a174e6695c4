#include "report/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "nodes/presets.h"
#include "report/tee.h"
#include "support/simulated.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using nlohmann::json;

TraceWriter make_trace(const Topology& topology) {
  return TraceWriter(topology, {"conv1", "fc \"2\"\n"},
                     [](ChunkId chunk) { return "conv1/" + std::to_string(chunk.index()); });
}

json events_of(const TraceWriter& trace) {
  std::ostringstream out;
  trace.write(out);
  return json::parse(out.str()).at("traceEvents");
}

// "host 0 / egress" for every lane, by its number.
std::map<int, std::string> lanes_of(const json& events) {
  std::map<int, std::string> hosts;
  std::map<int, std::string> lanes;
  for (const json& e : events) {
    if (e.at("name") == "process_name") {
      hosts[e.at("pid")] = e.at("args").at("name");
    } else if (e.at("name") == "thread_name") {
      lanes[e.at("tid")] = hosts.at(e.at("pid")) + " / " + std::string(e.at("args").at("name"));
    }
  }
  return lanes;
}

// "lane: name" of every span.
std::multiset<std::string> spans_of(const json& events) {
  const auto lanes = lanes_of(events);
  std::multiset<std::string> spans;
  for (const json& e : events) {
    if (e.at("ph") == "X") {
      spans.insert(lanes.at(e.at("tid")) + ": " + std::string(e.at("name")));
    }
  }
  return spans;
}

Message push(std::size_t from, std::size_t to, std::size_t chunk) {
  Message m;
  m.from = NodeId(from);
  m.to = NodeId(to);
  m.chunk = ChunkId(chunk);
  m.iteration = 3;
  m.priority = 9;
  m.payload_bytes = 40;
  return m;
}

TEST(TraceTest, HasALaneForEveryPartOfEveryHost) {
  std::vector<std::string> names;
  for (const auto& [tid, name] : lanes_of(events_of(make_trace(Topology(1, 2, 1))))) {
    names.push_back(name);
  }
  EXPECT_THAT(names,
              ::testing::ElementsAre("host 0 / worker 0 compute", "host 0 / worker 1 compute",
                                     "host 0 / egress", "host 0 / ingress", "host 0 / server",
                                     "host 1 / egress", "host 1 / ingress", "host 1 / server"));
}

TEST(TraceTest, KeepsWhatLiesInItsWindow) {
  const TraceWindow window{.first = 1, .last = 3, .hosts = 1};
  TraceWriter trace(
      Topology(2, 1, 0), {"conv1"}, [](ChunkId) { return "chunk"; }, window);
  for (Iteration i = 0; i < 4; ++i) {
    trace.computed(NodeId(0), LayerId(0), i, Pass::kForward, Time(i), Time(i + 1));
    trace.computed(NodeId(1), LayerId(0), i, Pass::kForward, Time(i), Time(i + 1));
  }
  trace.sent(push(0, 3, 5), Time(0), Time(1));  // of iteration 3
  EXPECT_THAT(spans_of(events_of(trace)),
              ::testing::ElementsAre("host 0 / worker 0 compute: forward conv1",
                                     "host 0 / worker 0 compute: forward conv1"));
}

// Between the first and the last iteration of worker 0: from 1 to 3 ms.
TEST(TraceTest, ShowsItsInnerIterationsAsATimeLine) {
  using std::chrono::milliseconds;
  TraceWriter trace = make_trace(Topology(2, 1, 0));
  for (Iteration i = 0; i < 4; ++i) {
    trace.computed(NodeId(0), LayerId(0), i, Pass::kForward, milliseconds(i), milliseconds(i + 1));
  }
  trace.waited(NodeId(1), LayerId(0), 1, Time(0), milliseconds(2));
  trace.sent(push(0, 3, 5), milliseconds(4), milliseconds(5));
  const TimeLine line = trace.time_line();
  EXPECT_EQ(line.length, 2);
  ASSERT_EQ(line.lanes.size(), 2U);
  EXPECT_EQ(line.lanes[0].name, "host 0, worker 0: compute");
  ASSERT_EQ(line.lanes[0].spans.size(), 2U);
  EXPECT_EQ(line.lanes[0].spans[1].begin, 1);
  EXPECT_EQ(line.lanes[0].spans[1].name, "forward conv1");
  EXPECT_EQ(line.kinds[line.lanes[1].spans[0].kind], "waiting");
  EXPECT_EQ(line.lanes[1].spans[0].begin, 0);
  EXPECT_EQ(line.lanes[1].spans[0].end, 1);
}

TEST(TraceTest, PutsEverySpanOnItsLane) {
  TraceWriter trace = make_trace(Topology(2, 1, 0));
  trace.computed(NodeId(0), LayerId(0), 0, Pass::kForward, Time(0), Time(1));
  trace.computed(NodeId(1), LayerId(1), 0, Pass::kBackward, Time(0), Time(1));
  trace.waited(NodeId(0), LayerId(0), 0, Time(1), Time(2));
  trace.sent(push(0, 3, 5), Time(0), Time(1));
  trace.received(push(0, 3, 5), Time(1), Time(2));
  Work update;
  update.node = NodeId(3);
  update.chunk = ChunkId(5);
  trace.worked(update, Time(2), Time(3));
  EXPECT_THAT(
      spans_of(events_of(trace)),
      ::testing::UnorderedElementsAre(
          "host 0 / worker 0 compute: forward conv1", "host 0 / worker 0 compute: wait for conv1",
          "host 1 / worker 1 compute: backward fc \"2\"\n", "host 0 / egress: push conv1/5",
          "host 1 / ingress: push conv1/5", "host 1 / server: update conv1/5"));
}

TEST(TraceTest, CopiesHaveALaneOfTheirOwn) {
  TraceWriter trace = make_trace(Topology(1, 1, 0));
  trace.copied(NodeId(0), LayerId(0), 0, Passage::kToDevice, Time(0), Time(1));
  trace.copied(NodeId(0), LayerId(0), 0, Passage::kFromDevice, Time(2), Time(3));
  EXPECT_EQ(spans_of(events_of(trace)),
            (std::multiset<std::string>{"host 0 / worker 0 copies: parameters of conv1",
                                        "host 0 / worker 0 copies: gradient of conv1"}));
}

TEST(TraceTest, TellsTimeInMicroseconds) {
  TraceWriter trace = make_trace(Topology(2, 1, 0));
  trace.sent(push(0, 3, 5), Time(1'500'001), from_us(4));
  std::ostringstream out;
  trace.write(out);
  EXPECT_THAT(out.str(), ::testing::HasSubstr(R"("ts":1.5000000000,"dur":2.5000000000,)"));
  for (const json& e : events_of(trace)) {
    if (e.at("ph") == "X") {
      EXPECT_EQ(e.at("ts"), 1.5);  // a multiple of 1/1024 us
      EXPECT_EQ(e.at("dur"), 2.5);
      EXPECT_EQ(e.at("args"),
                json::parse(R"({"iteration":3,"bytes":40,"priority":9,"to":"server 1"})"));
    }
  }
}

// How often a reader that adds doubles finds that a span begins within another of its lane and ends
// after it.
int wrong_nestings(const json& events) {
  struct Slice {
    double begin;
    double end;
  };
  std::map<int, std::vector<Slice>> lanes;
  for (const json& e : events) {
    if (e.at("ph") == "X") {
      const double begin = e.at("ts");
      lanes[e.at("tid")].push_back({begin, begin + e.at("dur").get<double>()});
    }
  }
  int wrong = 0;
  for (auto& [tid, slices] : lanes) {
    std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::vector<double> open;  // ends of the spans that the next one may lie in
    for (const Slice& slice : slices) {
      while (!open.empty() && open.back() <= slice.begin) {
        open.pop_back();
      }
      wrong += !open.empty() && slice.end > open.back() ? 1 : 0;
      open.push_back(slice.end);
    }
  }
  return wrong;
}

TEST(TraceTest, AReaderOfDoublesFindsNoWrongNesting) {
  Cluster cluster;
  cluster.topology = Topology(4, 1, 0);
  cluster.bandwidth_gbps = 3;
  cluster.latency = from_us(7.3);
  const Profile profile = testing::profile_of({333'333, 70'001, 1'234'567}, 911.7, 1801.3);
  TraceWriter trace(cluster.topology, {"a", "b", "c"},
                    [](ChunkId chunk) { return std::to_string(chunk.index()); });
  testing::run_simulated(profile, cluster, find_preset("p3")->strategy, 12, &trace);
  const json events = events_of(trace);
  EXPECT_GT(events.size(), 2000U);
  EXPECT_EQ(wrong_nestings(events), 0);
}

TEST(TraceTest, LateInALongRunSpansStillFit) {
  TraceWriter trace = make_trace(Topology(2, 1, 0));
  const Time late = std::chrono::hours(24 * 90) + Time(333'333);
  for (int i = 0; i < 1000; ++i) {
    trace.sent(push(0, 3, 0), late + Time(i * 777'777), late + Time((i + 1) * 777'777));
  }
  EXPECT_EQ(lanes_of(events_of(trace)).size(), 8U);
  EXPECT_EQ(wrong_nestings(events_of(trace)), 0);
}

TEST(TraceTest, OverlappingSpansGoToFurtherLanes) {
  TraceWriter trace = make_trace(Topology(2, 1, 0));
  trace.sent(push(0, 3, 0), Time(0), Time(10));
  trace.sent(push(0, 3, 1), Time(5), Time(15));
  trace.sent(push(0, 3, 2), Time(10), Time(20));
  EXPECT_THAT(spans_of(events_of(trace)),
              ::testing::UnorderedElementsAre("host 0 / egress: push conv1/0",
                                              "host 0 / egress (2): push conv1/1",
                                              "host 0 / egress: push conv1/2"));
}

TEST(TraceTest, ChunksThatAreCutAnewGetTheirNewNames) {
  TraceWriter trace = make_trace(Topology(2, 1, 0));
  trace.rename_chunks(8, [](ChunkId) { return "merged"; });
  Message message = push(0, 3, 5);
  for (const Iteration iteration : {8, 9}) {
    message.iteration = iteration;
    trace.sent(message, from_us(static_cast<double>(iteration)),
               from_us(static_cast<double>(iteration + 1)));
  }
  const auto spans = spans_of(events_of(trace));
  EXPECT_EQ(spans.count("host 0 / egress: push conv1/5"), 1U);
  EXPECT_EQ(spans.count("host 0 / egress: push merged"), 1U);
}

TEST(TraceTest, TakesUpWhatAnotherProcessHasSeen) {
  const Topology topology(2, 1, 0);
  const auto show = [&](TraceWriter& trace, std::size_t host) {
    trace.computed(NodeId(host), LayerId(0), 3, Pass::kBackward, Time(1), Time(2));
    trace.copied(NodeId(host), LayerId(0), 3, Passage::kFromDevice, Time(2), Time(4));
    trace.sent(push(host, 3 - host, 1), Time(2), Time(9));
    trace.received(push(1 - host, 2 + host, 0), Time(4), Time(5));
  };
  TraceWriter one = make_trace(topology);
  show(one, 0);
  show(one, 1);
  TraceWriter there = make_trace(topology);
  show(there, 1);
  TraceWriter here = make_trace(topology);
  show(here, 0);
  here.adopt(HostId(1), there.report(HostId(1)));
  EXPECT_EQ(events_of(here), events_of(one));
}

TEST(TraceTest, IsWrittenToAFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(make_trace(Topology(2, 1, 0)).write(folder.path() / "trace.json"));
  EXPECT_TRUE(json::accept(folder.read("trace.json")));
  EXPECT_FALSE(make_trace(Topology(2, 1, 0)).write(folder.path() / "no" / "trace.json"));
}

TEST(TeeTest, ShowsEverythingToEveryone) {
  const Topology topology(2, 1, 0);
  TraceWriter first = make_trace(topology);
  TraceWriter second = make_trace(topology);
  Tee tee({&first, &second});
  tee.computed(NodeId(0), LayerId(0), 0, Pass::kForward, Time(0), Time(1));
  tee.waited(NodeId(0), LayerId(0), 0, Time(1), Time(2));
  tee.copied(NodeId(0), LayerId(0), 0, Passage::kToDevice, Time(1), Time(2));
  tee.sent(push(0, 3, 5), Time(0), Time(1));
  tee.received(push(0, 3, 5), Time(1), Time(2));
  tee.worked(Work{}, Time(2), Time(3));
  EXPECT_EQ(spans_of(events_of(first)).size(), 6U);
  EXPECT_EQ(events_of(first), events_of(second));
}

RC_GTEST_PROP(TraceProperty, NoLaneHasTwoSpansAtOnce, ()) {
  TraceWriter trace = make_trace(Topology(1, 1, 1));
  const auto count = *rc::gen::inRange(0, 40);
  for (int i = 0; i < count; ++i) {
    const int begin = *rc::gen::inRange(0, 50);
    trace.sent(push(0, 1, 0), from_us(begin), from_us(begin + *rc::gen::inRange(0, 20)));
  }
  std::map<int, std::vector<std::pair<double, double>>> lanes;
  int spans = 0;
  for (const json& e : events_of(trace)) {
    if (e.at("ph") == "X") {
      const double begin = e.at("ts");
      const double end = begin + e.at("dur").get<double>();
      for (const auto& [other_begin, other_end] : lanes[e.at("tid")]) {
        RC_ASSERT(end <= other_begin || other_end <= begin);
      }
      lanes[e.at("tid")].emplace_back(begin, end);
      ++spans;
    }
  }
  RC_ASSERT(spans == count);
}

}  // namespace
}  // namespace sluice
