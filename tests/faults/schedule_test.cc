#include "faults/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "nodes/presets.h"

namespace sluice {
namespace {

using faults::draw;
using faults::Fault;
using faults::Outcome;
using faults::Schedule;

constexpr std::uint64_t kSchedules = 1000;  // sluice_faults looks at more

TEST(FaultSchedules, KeepEveryPromise) {
  std::size_t ended = 0;
  std::size_t came_back = 0;
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    const Schedule schedule = draw(seed);
    SCOPED_TRACE(faults::describe(schedule));
    Outcome outcome = Outcome::kWentOn;
    ASSERT_NO_THROW(outcome = faults::run(schedule)) << "seed " << seed;
    ended += outcome == Outcome::kEnded ? 1 : 0;
    came_back += outcome == Outcome::kCameBack ? 1 : 0;
  }
  EXPECT_GT(ended, kSchedules / 4);
  EXPECT_LT(ended, kSchedules * 3 / 4);
  EXPECT_GT(came_back, kSchedules / 20);
}

TEST(FaultSchedules, HaveAllPresetsAndFaults) {
  std::set<std::pair<std::string, Fault>> met;
  for (std::uint64_t seed = 0; seed < 4 * kSchedules; ++seed) {
    const Schedule schedule = draw(seed);
    met.emplace(schedule.preset, schedule.fault);
    EXPECT_GE(schedule.job.topology.workers(), 3U);
    EXPECT_EQ(faults::describe(schedule), faults::describe(draw(seed)));
  }
  EXPECT_EQ(met.size(), faults::kFaults * presets().size());
}

}  // namespace
}  // namespace sluice
