#include "drivers/realtime/processor.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace sluice {
namespace {

TEST(ProcessorThreadsTest, BusyThreadsUseProcessorTime) {
  const Duration before = processor_time();
  const double cores = measured_cores(from_us(20'000));
  EXPECT_GT(processor_time(), before);
  EXPECT_GT(cores, 0);
  EXPECT_LE(cores, std::thread::hardware_concurrency() * 1.5);  // the clocks tick differently
}

TEST(ProcessorThreadsTest, ABoundThreadUsesNoOtherCore) {
  const std::size_t unbound = usable_cores();
  std::jthread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cores(), 1U);
    EXPECT_EQ(usable_cores(1), 1U);
  }).join();
  EXPECT_EQ(usable_cores(), unbound);
}

TEST(ProcessorThreadsTest, ProcessesShareTheCoresOfAMachine) {
  EXPECT_EQ(usable_cores(1), usable_cores());
  EXPECT_EQ(usable_cores(1000), 1U);
}

}  // namespace
}  // namespace sluice
