#include "planner/measurement_doubts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(MeasurementDoubts, ABusyMachineIsNamed) {
  EXPECT_THAT(doubts_of({MachineLoad{"idle", 0.2, 2, 2}, MachineLoad{"large", 3, 8, 2}}),
              IsEmpty());
  EXPECT_THAT(doubts_of({MachineLoad{"a", 0, 4, 1}, MachineLoad{"b", 1.5, 2, 1}}),
              ElementsAre(HasSubstr("b: the load was 1.5 on 2 cores before 1 process began")));
  EXPECT_THAT(doubts_of({MachineLoad{"c", 0, 2, 4}}),
              ElementsAre(HasSubstr("c: 4 processes shared 2 cores")));
}

NetworkFit network_of(const std::vector<double>& rates, double range) {
  NetworkFit fit;
  fit.gbps = 1;
  for (const double rate : rates) {
    fit.links.push_back({.gbps = rate, .relative_range = range});
  }
  return fit;
}

TEST(MeasurementDoubts, ScatteredLinksAreDoubted) {
  EXPECT_THAT(doubts_of(network_of({1, 0.98, 1.01, 1}, 0.05)), IsEmpty());
  EXPECT_THAT(doubts_of(network_of({1, 0.7, 1.05, 0.72}, 0.05)),
              ElementsAre(HasSubstr("interquartile range of the links is 28 % of the median")));
  EXPECT_THAT(doubts_of(network_of({1, 1}, 0.4)),
              ElementsAre(HasSubstr("repetitions of the same message differ by 40 %")));
  EXPECT_THAT(doubts_of(NetworkFit{}), IsEmpty());
}

TEST(MeasurementDoubts, ScatteredSumsAreDoubtedAndThoseFasterThanTheWire) {
  const auto sums = [](Duration range, double ns_per_byte) {
    return MeasuredSums{
        .collective = "ring",
        .points = {{.bytes = 4, .median = Duration(10), .interquartile_range = Duration(10)},
                   {.bytes = 8, .median = Duration(100), .interquartile_range = range}},
        .ns_per_byte = ns_per_byte,
        .wire_ns_per_byte = 12};
  };
  EXPECT_THAT(doubts_of(sums(Duration(10), 11.5)), IsEmpty());
  EXPECT_THAT(doubts_of(sums(Duration(30), 13)),
              ElementsAre(HasSubstr("all-reduce ring: the interquartile range of the longest sum "
                                    "is 30 % of the median")));
  EXPECT_THAT(doubts_of(sums(Duration(10), 9)),
              ElementsAre(HasSubstr("all-reduce ring: took 9 ns per byte, but at the measured "
                                    "bandwidth none can take less than 12")));
}

}  // namespace
}  // namespace sluice
