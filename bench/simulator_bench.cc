// The simulator's speed: events per second, and the large case of 64 hosts.
#include <benchmark/benchmark.h>

#include "nodes/presets.h"
#include "support/simulated.h"

namespace sluice {
namespace {

// The layer sizes of VGG-19 (143,667,240 parameters); times of a P4000-class GPU, rounded.
Profile vgg19() {
  Profile profile;
  profile.name = "vgg19";
  profile.batch = 32;
  const std::vector<std::int64_t> params{
      1792,    36928,   73856,   147584,  295168,  590080,  590080,    590080,   1180160, 2359808,
      2359808, 2359808, 2359808, 2359808, 2359808, 2359808, 102764544, 16781312, 4097000};
  for (std::size_t l = 0; l < params.size(); ++l) {
    profile.layers.push_back(
        {"L" + std::to_string(l), params[l], from_us(25'000), from_us(50'000)});
  }
  return profile;
}

void simulate_vgg19(benchmark::State& state, std::string_view preset) {
  const Profile profile = vgg19();
  Cluster cluster;
  cluster.topology = Topology(static_cast<std::size_t>(state.range(0)), 1, 0);
  cluster.bandwidth_gbps = 10;
  double events = 0;
  Duration iteration{0};
  for (auto _ : state) {
    const auto run = testing::run_simulated(profile, cluster, find_preset(preset)->strategy, 10);
    events += static_cast<double>(run.result.events);
    iteration = run.result.iteration_time();
  }
  state.counters["events"] = benchmark::Counter(events, benchmark::Counter::kAvgIterations);
  state.counters["events/s"] = benchmark::Counter(events, benchmark::Counter::kIsRate);
  state.counters["iteration_ms"] = to_us(iteration) / 1000;
}

BENCHMARK_CAPTURE(simulate_vgg19, p3, "p3")
    ->Arg(4)
    ->Arg(16)
    ->Arg(64)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_vgg19, slicing, "slicing")->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_vgg19, wfbp, "wfbp")->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice
