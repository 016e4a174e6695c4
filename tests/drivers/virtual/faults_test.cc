// What faults cost in virtual time.
#include <gtest/gtest.h>

#include <string_view>

#include "nodes/presets.h"
#include "support/simulated.h"
#include "support/talkative.h"
#include "wire/lost_peer.h"

namespace sluice {
namespace {

using testing::job_for;
using testing::profile_of;

constexpr Iteration kFaultyIterations = 12;

Cluster faulty_cluster(std::size_t servers_apart = 0) {
  Cluster cluster;
  cluster.topology = Topology(3, 1, servers_apart);
  cluster.bandwidth_gbps = 1;
  return cluster;
}

// When the last worker has its last parameters.
SimulationResult run_with(std::string_view preset, const Cluster& cluster, const Faults& faults) {
  const Profile profile = profile_of({1000, 50'000, 3000}, 100, 200);
  const Job job = job_for(profile, cluster, testing::talkative(find_preset(preset)->strategy));
  const Assembly assembly = assemble(job);
  return simulate({.profile = profile,
                   .cluster = cluster,
                   .hosts = assembly.protocols,
                   .iterations = kFaultyIterations,
                   .channel_order = job.strategy.order,
                   .faults = &faults});
}
double seconds_with(std::string_view preset, const Cluster& cluster, const Faults& faults) {
  return to_seconds(run_with(preset, cluster, faults).starts.back());
}

Fault fault(Fault::Kind kind, std::size_t host, double at_s, double for_s = 0, double factor = 1) {
  return {kind, HostId(host), from_us(at_s * 1e6), from_us(for_s * 1e6), factor};
}

TEST(FaultsInVirtualTime, NoFaultChangesNothing) {
  for (const Preset& preset : presets()) {
    const Cluster cluster = faulty_cluster(preset.strategy.uses_servers() ? 1 : 0);
    const Profile profile = profile_of({1000, 50'000, 3000}, 100, 200);
    const auto strategy = testing::talkative(preset.strategy);
    const auto calm = testing::run_simulated(profile, cluster, strategy, kFaultyIterations);
    EXPECT_EQ(run_with(preset.name, cluster, {}).starts, calm.result.starts) << preset.name;
  }
}

// All wait for a host that stands still, so its stop is a stop of all.
TEST(FaultsInVirtualTime, AStopDelaysALockStepByItsLength) {
  for (const double cores : {0.0, 4.0}) {
    Cluster cluster = faulty_cluster();
    cluster.cores = cores;
    const double calm = seconds_with("p3", cluster, {});
    for (const double at_s : {0.0005, 0.002, 0.0033}) {
      const Faults faults{.all = {fault(Fault::Kind::kStop, 1, at_s, 0.25)}};
      EXPECT_NEAR(seconds_with("p3", cluster, faults) - calm, 0.25, 0.005) << at_s;
    }
  }
}

TEST(FaultsInVirtualTime, ACutLinkDelaysALockStepByAboutItsLength) {
  const Cluster cluster = faulty_cluster();
  const double calm = seconds_with("ar-sgd", cluster, {});
  const Faults faults{.all = {fault(Fault::Kind::kCutLink, 2, 0.002, 0.25)}};
  EXPECT_NEAR(seconds_with("ar-sgd", cluster, faults) - calm, 0.25, 0.005);
}

TEST(FaultsInVirtualTime, ASlowHostAndASlowLinkCostWhileTheyLast) {
  const Cluster cluster = faulty_cluster();
  const double calm = seconds_with("wfbp", cluster, {});
  for (const Fault::Kind kind : {Fault::Kind::kSlowHost, Fault::Kind::kSlowLink}) {
    const double brief = seconds_with("wfbp", cluster, {.all = {fault(kind, 0, 0, 0.003, 4)}});
    const double always = seconds_with("wfbp", cluster, {.all = {fault(kind, 0, 0, 1000, 4)}});
    EXPECT_GT(brief, calm + 0.0005);
    EXPECT_GT(always, brief);
    EXPECT_LT(always, 4.01 * calm);
    EXPECT_DOUBLE_EQ(seconds_with("wfbp", cluster, {.all = {fault(kind, 0, 900, 1, 4)}}), calm);
  }
}

// kvstore pulls what has changed by messages without a payload, and slices of p3 are pushed: they
// have none.
TEST(FaultsInVirtualTime, DelayedControlMessagesCostThoseWhoSendThem) {
  const Cluster cluster = faulty_cluster();
  const auto seconds = [&](const char* preset, double length) {
    Fault delay = fault(Fault::Kind::kDelay, 1, 0, length);
    delay.by = from_us(2000);
    return seconds_with(preset, cluster, {.all = {delay}});
  };
  const double calm = seconds_with("kvstore", cluster, {});
  EXPECT_GT(seconds("kvstore", 1000), calm + 0.002 * kFaultyIterations);
  EXPECT_GT(seconds("kvstore", 0.004), calm);
  EXPECT_LT(seconds("kvstore", 0.004), seconds("kvstore", 1000));
  EXPECT_DOUBLE_EQ(seconds("p3", 1000), seconds_with("p3", cluster, {}));
}

TEST(FaultsInVirtualTime, SurvivorsReachTheEndWhereverAWorkerIsKilled) {
  for (const auto* const preset :
       {"asp", "ssp", "easgd", "gosgd", "ad-psgd", "noloco", "diloco", "ssp+dgc"}) {
    const Cluster cluster = faulty_cluster(find_preset(preset)->strategy.uses_servers() ? 1 : 0);
    const double calm = seconds_with(preset, cluster, {});
    for (const double part : {0.0, 0.3, 0.6, 0.9}) {
      Faults faults{.all = {fault(Fault::Kind::kKill, 1, part * calm)}};
      faults.detection = from_us(1000);
      const SimulationResult result = run_with(preset, cluster, faults);
      EXPECT_GT(result.starts.back(), Time{0});
      EXPECT_GE(result.iterations_lost, part == 0 ? kFaultyIterations : 0) << preset << " " << part;
      EXPECT_LE(result.iterations_lost, kFaultyIterations);
      EXPECT_LT(to_seconds(result.starts.back()), calm + 0.01) << preset << " " << part;
    }
  }
}

TEST(FaultsInVirtualTime, ALockStepEndsWithTheNameOfTheKilled) {
  for (const auto* const preset : {"p3", "ar-sgd", "pipe-sgd", "post-local-sgd"}) {
    const Faults faults{.all = {fault(Fault::Kind::kKill, 2, 0.001)}};
    try {
      run_with(preset, faulty_cluster(), faults);
      ADD_FAILURE() << preset << " goes on";
    } catch (const LostPeer& e) {
      EXPECT_EQ(e.rank, 2U);
    }
  }
}

}  // namespace
}  // namespace sluice
