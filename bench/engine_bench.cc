// The engine on threads against the memory traffic that no engine can avoid.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <thread>

#include "learners/idle_learner.h"
#include "nodes/presets.h"
#include "optimizers/optimizer_state.h"
#include "support/threaded.h"

namespace sluice {
namespace {

constexpr std::int64_t kParams = 25'000'000;
constexpr std::size_t kWorkers = 4;
constexpr std::size_t kLayers = 50;
constexpr Iteration kIterations = 5;

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The memory that one synchronisation must read and write, on as many threads as there are hosts:
// every server sums the gradients of its share into its parameters, and every worker copies the
// result.
double bare_traffic(std::vector<std::unique_ptr<Learner>>& learners) {
  std::vector<float> master(kParams);
  std::vector<float> velocity(kParams);
  std::array<const float*, kWorkers> gradients{};
  for (std::size_t w = 0; w < kWorkers; ++w) {
    gradients[w] = learners[w]->gradients().data();
  }
  const auto share = static_cast<std::size_t>(kParams) / kWorkers;
  return seconds_of([&] {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kWorkers; ++t) {
      threads.emplace_back([&, t] {
        const auto [a, b, c, d] = gradients;
        float* w = master.data();
        float* v = velocity.data();
        for (std::size_t i = t * share; i < (t + 1) * share; ++i) {
          v[i] = 0.9F * v[i] + (a[i] + b[i] + c[i] + d[i]) * 0.25F;
          w[i] -= 0.05F * v[i];
        }
      });
    }
    threads.clear();
    for (std::size_t t = 0; t < kWorkers; ++t) {
      threads.emplace_back(
          [&, t] { std::copy(master.begin(), master.end(), learners[t]->parameters().begin()); });
    }
  });
}

void synchronise(benchmark::State& state, std::string_view preset) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < kWorkers; ++w) {
    learners.push_back(std::make_unique<IdleLearner>(
        lay_out(std::vector<std::string>(kLayers, "layer"),
                std::vector<std::int64_t>(kLayers, kParams / kLayers))));
  }
  const Strategy strategy = find_preset(preset)->strategy;
  double bare = 0;
  double engine = 0;
  for (auto _ : state) {
    bare += bare_traffic(learners);
    // The first iterations pay for the first touch of the servers' memory.
    const auto run = [&](Iteration n) {
      return seconds_of([&] {
        testing::run_threaded(learners, Topology(kWorkers, 1, 0), strategy, UpdateRule{}, n);
      });
    };
    const double warm_up = run(1);
    engine += (run(1 + kIterations) - warm_up) / static_cast<double>(kIterations);
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["engine_ms"] = engine / runs * 1e3;
  state.counters["bare_ms"] = bare / runs * 1e3;
  state.counters["ratio"] = engine / bare;
}

BENCHMARK_CAPTURE(synchronise, p3, "p3")->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(synchronise, wfbp, "wfbp")->Iterations(3)->Unit(benchmark::kMillisecond);

// One update of all parameters from the gradients of four workers, all the same, on one thread. The
// bytes are those that it cannot avoid: gradients, parameters and state, each read or written once.
void update(benchmark::State& state, Optimizer optimizer) {
  UpdateRule rule;
  rule.optimizer = optimizer;
  std::vector<float> parameters(kParams, 0.5F);
  const std::vector<float> gradient(kParams, 1e-3F);
  const std::vector<std::span<const float>> sources(kWorkers, gradient);
  const OptimizerState buffers(rule, parameters.size());
  Iteration iteration = 0;
  for (auto _ : state) {
    rule.apply(parameters, buffers.part({0, kParams}), sources, BatchShare::all(kWorkers),
               ++iteration);
    benchmark::DoNotOptimize(parameters.data());
  }
  const auto moved = static_cast<std::int64_t>(3 + 2 * rule.state().size());
  state.SetBytesProcessed(state.iterations() * kParams * moved * 4);
}
BENCHMARK_CAPTURE(update, sgd, Optimizer::kSgd)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(update, adam, Optimizer::kAdam)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(update, adamw, Optimizer::kAdamW)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(update, lamb, Optimizer::kLamb)->Unit(benchmark::kMillisecond);

// Sleeps in its forward pass, so that all communication threads idle.
class SleepingLearner final : public Learner {
 public:
  SleepingLearner() : parameters_(8, 0.0F), gradients_(8, 0.0F), layers_(lay_out({"L"}, {8})) {}
  const std::vector<Layer>& layers() const override { return layers_; }
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradients() override { return gradients_; }
  void gradients_into(std::span<float>) override {}
  std::optional<double> step(Iteration, StepHooks& hooks) override {
    hooks.before_layer(LayerId(0));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    hooks.forward_done();
    hooks.gradient_ready(LayerId(0));
    return 0;
  }
  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<Layer> layers_;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void idle(benchmark::State& state) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < kWorkers; ++w) {
    learners.push_back(std::make_unique<SleepingLearner>());
  }
  double cpu = 0;
  double wall = 0;
  for (auto _ : state) {
    const double before = cpu_seconds();
    wall += seconds_of([&] {
      testing::run_threaded(learners, Topology(kWorkers, 1, 0), find_preset("p3")->strategy,
                            UpdateRule{}, 4);
    });
    cpu += cpu_seconds() - before;
  }
  state.counters["share_of_a_core"] = cpu / wall;
}
BENCHMARK(idle)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice
