// What becomes of runs that go on without the killed, phase by phase.
#include "session/faulty_phases.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nodes/presets.h"
#include "support/nets.h"
#include "support/simulated.h"
#include "support/talkative.h"

namespace sluice {
namespace {

using testing::anywhere;
using testing::job_for;
using testing::profile_of;

constexpr Iteration kIterations = 30;
const std::vector<std::string> kWithSums{"local-sgd", "diloco", "streaming-diloco", "sparseloco",
                                         "post-local-sgd"};

struct Phases {
  Profile profile = profile_of({1000, 50'000, 3000}, 100, 200);
  Cluster cluster;

  explicit Phases(std::size_t hosts = 4) {
    cluster.topology = Topology(hosts, 1, 0);
    cluster.bandwidth_gbps = 1;
  }
  FaultyTime with(const std::string& preset, const Faults& faults) const {
    const Strategy strategy = testing::talkative(find_preset(preset)->strategy);
    return simulate_in_phases({.job = job_for(profile, cluster, strategy),
                               .profile = profile,
                               .cluster = cluster,
                               .iterations = kIterations},
                              faults);
  }
  Duration calm(const std::string& preset) const { return with(preset, {}).end; }
};

Fault kill(std::size_t host, Time at) { return {.host = HostId(host), .at = at}; }

Faults faults_of(std::vector<Fault> all) {
  std::ranges::stable_sort(all, {}, &Fault::at);
  return {.all = std::move(all), .detection = from_us(2000), .regrouping = from_us(500)};
}

TEST(FaultyPhases, WithoutFaultsAreOnePhase) {
  const Phases phases;
  for (const std::string& preset : kWithSums) {
    if (preset == "post-local-sgd") {  // it begins anew after its synchronous part
      continue;
    }
    const Strategy strategy = testing::talkative(find_preset(preset)->strategy);
    const auto whole =
        testing::run_simulated(phases.profile, phases.cluster, strategy, kIterations);
    EXPECT_EQ(phases.calm(preset), whole.result.starts.back()) << preset;
    EXPECT_EQ(phases.with(preset, {}).iterations_lost, 0);
  }
}

// The others end their phase where the furthest is, agree, and go on with sums of three.
TEST(FaultyPhases, ALossCostsItsDetectionAndTheNewSums) {
  const Phases phases;
  for (const std::string& preset : kWithSums) {
    const Duration calm = phases.calm(preset);
    const Faults faults = faults_of({kill(2, calm / 2)});
    const auto [end, lost] = phases.with(preset, faults);
    EXPECT_GT(lost, kIterations / 2 - 3) << preset;
    EXPECT_LT(lost, kIterations / 2 + 3) << preset;
    EXPECT_GT(end, calm * 9 / 10) << preset << ": three send less than four, but compute as much";
    EXPECT_LT(end, calm + faults.detection + faults.regrouping + calm / 10) << preset;
  }
}

TEST(FaultyPhases, RankZeroGoesOnAlone) {
  const Phases phases(3);
  for (const std::string& preset : kWithSums) {
    const Duration calm = phases.calm(preset);
    const auto [end, lost] =
        phases.with(preset, faults_of({kill(1, calm / 2), kill(2, calm / 2 + from_us(100))}));
    EXPECT_GT(end, calm / 2) << preset;
    EXPECT_GT(lost, kIterations - 4) << preset;
    EXPECT_LT(lost, kIterations + 6) << preset;
  }
}

TEST(FaultyPhases, AKillOfAllLeavesNobody) {
  const Phases phases(2);
  const auto [end, lost] = phases.with("diloco", faults_of({kill(0, Time{0}), kill(1, Time{0})}));
  EXPECT_EQ(end, Duration{0});
  EXPECT_EQ(lost, 2 * kIterations);
}

TEST(FaultyPhases, KillsAfterTheEndCostNothing) {
  const Phases phases(2);
  const Duration calm = phases.calm("diloco");
  const auto [end, lost] = phases.with("diloco", faults_of({kill(0, 2 * calm), kill(1, 2 * calm)}));
  EXPECT_EQ(end, calm);
  EXPECT_EQ(lost, 0);
}

TEST(FaultyPhases, WhatIsSlowStaysSoInTheNextPhase) {
  const Phases phases;
  const Duration calm = phases.calm("diloco");
  const Fault slow{.kind = Fault::Kind::kSlowHost,
                   .host = HostId(1),
                   .at = calm / 4,
                   .length = 100 * calm,
                   .factor = 8};
  const Fault brief{.kind = Fault::Kind::kSlowHost,
                    .host = HostId(1),
                    .at = calm / 4,
                    .length = calm / 100,
                    .factor = 8};
  const Duration always = phases.with("diloco", faults_of({slow, kill(2, calm / 2)})).end;
  const Duration once = phases.with("diloco", faults_of({brief, kill(2, calm / 2)})).end;
  EXPECT_GT(always, 2 * calm);
  EXPECT_LT(once, calm * 3 / 2);
}

RC_GTEST_PROP(FaultyPhases, SurvivorsReachTheEndInTime, ()) {
  const auto hosts = static_cast<std::size_t>(*anywhere(2, 5));
  const Phases phases(hosts);
  const std::string preset = *rc::gen::elementOf(kWithSums);
  const Duration calm = phases.calm(preset);
  std::vector<Fault> kills;
  for (std::size_t h = 1; h < hosts; ++h) {
    if (*rc::gen::arbitrary<bool>()) {
      kills.push_back(kill(h, calm * *anywhere(0, 120) / 100));
    }
  }
  const Faults faults = faults_of(kills);
  const auto [end, lost] = phases.with(preset, faults);
  const auto many = static_cast<std::int64_t>(kills.size());
  RC_ASSERT(end >= kIterations * from_us(900));
  RC_ASSERT(end <= calm + many * (faults.detection + faults.regrouping + calm / 5));
  RC_ASSERT(lost <= many * kIterations);
}

}  // namespace
}  // namespace sluice
