// What a message costs, step by step. A byte takes a microsecond on the wire.
#include "drivers/virtual/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::ElementsAre;

class TrafficTest : public ::testing::Test {
 protected:
  TrafficTest() {
    cluster_.topology = Topology(2, 1, 0);
    cluster_.bandwidth_gbps = 0.008;
    cluster_.latency = Duration{0};
    cluster_.header_bytes = 0;
  }

  // When messages of 10 bytes, sent at once from host 0 to host 1 and back, are with their
  // receiver.
  std::vector<double> arrivals_us(int messages, int back = 0) const {
    DueQueue due;
    Cores cores(cluster_.cores, 2, due);
    Traffic traffic(cluster_, 0, due, cores);
    for (int m = 0; m < messages + back; ++m) {
      Message message;
      message.from = NodeId(m < messages ? 0 : 1);
      message.to = NodeId(m < messages ? 1 : 0);
      message.payload_bytes = 10;
      traffic.send(message, Payload(10), Time{0});
    }
    std::vector<double> arrivals;
    while (!due.empty()) {
      const Time now = due.next_time();
      Due next = due.pop();
      if (next.kind == Due::Kind::kCoresFree) {
        while (const auto over = cores.take_finished(HostId(next.index), now)) {
          note(traffic.on_thread_free(over->index, now), now, arrivals);
        }
      } else if (next.kind == Due::Kind::kThreadFree) {
        note(traffic.on_thread_free(next.index, now), now, arrivals);
      } else if (next.kind == Due::Kind::kArrived) {
        note(traffic.on_arrived(next.index, now), now, arrivals);
      } else {
        traffic.on_egress_free(HostId(next.index));
        traffic.pump_egress(HostId(next.index), now);
      }
    }
    return arrivals;
  }

  static void note(const Traffic::Transit* transit, Time now, std::vector<double>& arrivals) {
    if (transit != nullptr) {
      arrivals.push_back(to_us(now));
    }
  }

  Cluster cluster_;
};

TEST_F(TrafficTest, WithoutChargesOnlyTheWireCounts) {
  EXPECT_THAT(arrivals_us(2), ElementsAre(10, 20));
}

// The thread is done with the first after 2 us, with the second after 4; the wire is the slowest.
TEST_F(TrafficTest, AMessageCostsBothEnds) {
  cluster_.sending.startup = from_us(2);
  cluster_.receiving.startup = from_us(3);
  EXPECT_THAT(arrivals_us(2), ElementsAre(2 + 10 + 3, 2 + 10 + 10 + 3));
}

// Now the receiving thread is the slowest: 20 us for each.
TEST_F(TrafficTest, AByteCostsBothEnds) {
  cluster_.sending.ns_per_byte = 500;
  cluster_.receiving.ns_per_byte = 2000;
  EXPECT_THAT(arrivals_us(2), ElementsAre(5 + 10 + 20, 5 + 10 + 20 + 20));
}

TEST_F(TrafficTest, HalfACoreTakesTwiceAsLong) {
  cluster_.cores = 0.5;
  cluster_.sending.startup = from_us(2);
  EXPECT_THAT(arrivals_us(1), ElementsAre(4 + 10));
}

// Host 1 sends three messages, 20 us each, while one comes.
TEST_F(TrafficTest, ASecondThreadReceivesWhileTheFirstSends) {
  cluster_.sending.ns_per_byte = 2000;
  cluster_.receiving.startup = from_us(3);
  EXPECT_THAT(arrivals_us(1, 3), ElementsAre(33, 53, 60 + 3, 73));
  cluster_.message_threads = 2;
  EXPECT_THAT(arrivals_us(1, 3), ElementsAre(20 + 10 + 3, 33, 53, 73));
}

// An announcement and a request are messages too; the bytes are charged once at each end.
TEST_F(TrafficTest, ARendezvousCostsThreeMessages) {
  cluster_.fragment_bytes = 5;
  cluster_.sending.startup = from_us(2);
  cluster_.receiving = {from_us(3), 1000};
  EXPECT_THAT(arrivals_us(1), ElementsAre(2 + 3 + 3 + 10 + 3 + 10));
}

TEST_F(TrafficTest, AHostMayReceiveMoreSlowlyThanItSends) {
  cluster_.ingress_gbps = 0.004;
  EXPECT_THAT(arrivals_us(2), ElementsAre(20, 40));
  cluster_.ingress_gbps = 0.016;
  EXPECT_THAT(arrivals_us(2), ElementsAre(10, 20));
}

}  // namespace
}  // namespace sluice
