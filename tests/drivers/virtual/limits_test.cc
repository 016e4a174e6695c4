#include "drivers/virtual/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodes/presets.h"
#include "support/simulated.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using testing::point;
using testing::profile_of;
using testing::run_simulated;

Cluster cluster_of(double gbps) {
  Cluster cluster;
  cluster.topology = Topology(4, 1, 0);
  cluster.bandwidth_gbps = gbps;
  return cluster;
}

TEST(LimitsTest, TinyBandwidthsAreRefused) {
  const Profile profile = profile_of({1'000'000}, 10, 10);
  EXPECT_TRUE(check_times(profile, cluster_of(1e-3)));
  const auto refused = check_times(profile, cluster_of(1e-9));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("4 workers exchange 1e+06 parameters"));
  Cluster summing = cluster_of(0);
  summing.allreduce = AllReduceCost{from_us(1), 1e9};
  EXPECT_FALSE(check_times(profile, summing));
}

// Each iteration fits; all of them together do not.
TEST(LimitsTest, ASimulationDoesNotRunIntoOverflow) {
  const Profile profile = profile_of({10}, 40'000e6, 40'000e6);
  const Strategy strategy = point(Exchange::kBroadcast, Partition::kLayer, Order::kFifo);
  EXPECT_NO_THROW(run_simulated(profile, cluster_of(10), strategy, 5));
  try {
    run_simulated(profile, cluster_of(10), strategy, 200);
    FAIL() << "200 iterations of 22 hours are more than can be counted";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("days of virtual time"));
  }
}

}  // namespace
}  // namespace sluice
