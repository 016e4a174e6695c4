#include "drivers/realtime/processor.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice
