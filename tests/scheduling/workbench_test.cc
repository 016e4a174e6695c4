#include "scheduling/workbench.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/recorded_effects.h"

namespace sluice {
namespace {

using News = std::vector<std::string>;

Work fragment(std::size_t chunk, Iteration iteration, std::uint32_t priority) {
  Work work;
  work.chunk = ChunkId(chunk);
  work.iteration = iteration;
  work.priority = priority;
  return work;
}

TEST(Workbench, DoesTheMostUrgentFirst) {
  testing::RecordedEffects driver;
  Workbench bench(Order::kPriority, 1);
  bench.start(fragment(0, 1, 9), driver);
  bench.start(fragment(1, 2, 0), driver);
  bench.start(fragment(2, 1, 5), driver);
  bench.start(fragment(3, 1, 5), driver);
  EXPECT_EQ(driver.news(), News{"start 0"}) << "one at a time, without preemption";
  for (const char* next : {"start 2", "start 3", "start 1"}) {
    bench.on_finished(driver);
    EXPECT_EQ(driver.news(), News{next});
  }
  bench.on_finished(driver);
  EXPECT_EQ(driver.news(), News{});
  EXPECT_EQ(bench.overtakings(), 2);
}

TEST(Workbench, WithoutPriorityWhoComesFirstIsFirst) {
  testing::RecordedEffects driver;
  Workbench bench(Order::kFifo, 1);
  bench.start(fragment(0, 3, 9), driver);
  bench.start(fragment(1, 2, 5), driver);
  bench.start(fragment(2, 1, 0), driver);
  bench.on_finished(driver);
  bench.on_finished(driver);
  EXPECT_EQ(driver.news(), (News{"start 0", "start 1", "start 2"}));
  EXPECT_EQ(bench.overtakings(), 0);
}

TEST(Workbench, DoesAsManyAtATimeAsThereAreThreads) {
  testing::RecordedEffects driver;
  Workbench bench(Order::kFifo, 2);
  for (std::size_t c = 0; c < 4; ++c) {
    bench.start(fragment(c, 1, 0), driver);
  }
  EXPECT_EQ(driver.news(), (News{"start 0", "start 1"}));
  bench.on_finished(driver);
  EXPECT_EQ(driver.news(), News{"start 2"});
}

}  // namespace
}  // namespace sluice
