#include "lab/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace sluice::lab {
namespace {

using testing::ElementsAre;

constexpr const char* kDevices =
    "Inter-|   Receive                            |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
    "    lo:    7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0\n"
    "switch:    9 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
    " port1: 5000000000 2 3 4 5 6 7 8 11 9 0 0 0 0 0 0\n"
    "port11: 1 2 3 4 5 6 7 8 9 9 0 0 0 0 0 0\n"
    " port0:12 2 3 4 5 6 7 8 13 9 0 0 0 0 0 0\n";

TEST(LabTrafficTest, AHostReceivesWhatItsPortSends) {
  EXPECT_THAT(parse_traffic(kDevices, 3),
              ElementsAre(Traffic{13, 12}, Traffic{11, 5'000'000'000}, Traffic{0, 0}));
}

TEST(LabTrafficTest, OddTextIsNoTraffic) {
  EXPECT_THAT(parse_traffic("", 1), ElementsAre(Traffic{}));
  EXPECT_THAT(parse_traffic("port0: 1 2 3\nport0\n:::\n", 1), ElementsAre(Traffic{}));
}

TEST(LabTrafficTest, ARowAHost) {
  std::ostringstream out;
  out << kTrafficHeader;
  write_traffic(out, from_us(1'234'567), {{1, 2}, {3, 4}});
  EXPECT_EQ(out.str(), "time_s,host,rx_bytes,tx_bytes\n1.234567,0,1,2\n1.234567,1,3,4\n");
}

}  // namespace
}  // namespace sluice::lab
