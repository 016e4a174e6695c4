#include "torch/device_clock.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(DeviceClockTest, OnTheHostItIsTheHostsTime) {
  double now = 100;
  const auto clock = make_device_clock(c10::kCPU, [&] { return now; });
  clock->mark();
  now += 0.5;
  clock->mark();
  now += 2;
  clock->mark();
  EXPECT_EQ(clock->collect(), (std::vector<double>{0, 0.5, 2.5}));
  clock->mark();
  EXPECT_EQ(clock->collect(), std::vector<double>{0});
}

}  // namespace
}  // namespace sluice
