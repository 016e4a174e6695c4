// The simulator's speed: what an event costs on 4 to 4,096 hosts, and how much memory the run
// takes.
#include <benchmark/benchmark.h>

#include <fstream>
#include <string>
#include <utility>

#include "nodes/presets.h"
#include "process.h"
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

// Linux forgets the peak on request.
void forget_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

// Blocks of three convolutions, each with its batch normalisation, as in ResNet-50: 107 layers with
// 25,557,032 parameters; times of a P4000-class GPU, rounded.
Profile resnet50() {
  Profile profile;
  profile.name = "resnet50";
  profile.batch = 32;
  const auto add = [&](std::int64_t params) {
    const std::string name = "L" + std::to_string(profile.layers.size());
    profile.layers.push_back({name, params, from_us(1'000), from_us(2'000)});
  };
  const auto add_convolution = [&](std::int64_t in, std::int64_t out, std::int64_t area) {
    add(in * out * area);
    add(2 * out);
  };
  add_convolution(3, 64, 49);
  std::int64_t in = 64;
  for (const auto& [width, blocks] : {std::pair{64, 3}, {128, 4}, {256, 6}, {512, 3}}) {
    for (int block = 0; block < blocks; ++block) {
      add_convolution(in, width, 1);
      add_convolution(width, width, 9);
      add_convolution(width, 4 * width, 1);
      if (block == 0) {
        add_convolution(in, 4 * width, 1);
      }
      in = 4 * width;
    }
  }
  add(in * 1000 + 1000);
  return profile;
}

// Hosts and iterations are the arguments.
void simulate_hosts(benchmark::State& state, const Profile& profile, std::string_view preset) {
  Cluster cluster;
  cluster.topology = Topology(static_cast<std::size_t>(state.range(0)), 1, 0);
  cluster.bandwidth_gbps = 1;
  double events = 0;
  Duration iteration{0};
  forget_peak_memory();
  for (auto _ : state) {
    const auto run =
        testing::run_simulated(profile, cluster, find_preset(preset)->strategy, state.range(1));
    events += static_cast<double>(run.result.events);
    iteration = run.result.iteration_time();
  }
  using benchmark::Counter;
  state.counters["events"] = Counter(events, Counter::kAvgIterations);
  state.counters["events/s"] = Counter(events, Counter::kIsRate);
  state.counters["s/event"] = Counter(events, Counter::kIsRate | Counter::kInvert);
  state.counters["peak_MB"] = peak_memory_mb();
  state.counters["iteration_ms"] = to_us(iteration) / 1000;
}

void simulate_vgg19(benchmark::State& state, std::string_view preset) {
  simulate_hosts(state, vgg19(), preset);
}

void simulate_resnet50(benchmark::State& state, std::string_view preset) {
  simulate_hosts(state, resnet50(), preset);
}

// As `sluice simulate` runs them: four iterations to warm up, then those that are counted.
BENCHMARK_CAPTURE(simulate_vgg19, p3, "p3")
    ->ArgNames({"hosts", "iterations"})
    ->Args({4, 14})
    ->Args({16, 14})
    ->Args({64, 14})
    ->Args({256, 6})
    ->Args({1024, 5})
    ->Unit(benchmark::kMillisecond);
// A server for each layer.
BENCHMARK_CAPTURE(simulate_resnet50, bsp, "bsp")
    ->ArgNames({"hosts", "iterations"})
    ->Args({256, 5})
    ->Args({1024, 5})
    ->Args({4096, 5})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_vgg19, slicing, "slicing")
    ->Args({64, 10})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_vgg19, wfbp, "wfbp")->Args({64, 10})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice
