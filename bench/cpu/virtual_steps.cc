// Training in virtual time against as many plain steps of the same learners on the same cores.
//
//   sluice_virtual_steps [WORKERS [SECONDS [PRESET...]]]
//
// 24 workers by default; each figure takes about SECONDS, 6 by default.

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "cpu/task.h"
#include "nodes/presets.h"
#include "process.h"
#include "session/step_threads.h"
#include "support/simulated.h"

namespace sluice {
namespace {

using Learners = std::vector<std::unique_ptr<Learner>>;

// Steps per second with the learners in turn on all cores, without any synchronisation.
double plain_steps(const Learners& learners, double enough) {
  std::atomic<std::size_t> steps = 0;
  const double begin = seconds();
  {
    std::vector<std::jthread> threads;
    const std::size_t cores = std::thread::hardware_concurrency();
    for (std::size_t t = 0; t < cores; ++t) {
      threads.emplace_back([&, t] {
        NoHooks hooks;
        std::size_t worker = t;
        for (Iteration iteration = 0; seconds() - begin < enough; worker += cores) {
          if (worker >= learners.size()) {
            worker = t;
            ++iteration;
          }
          learners[worker]->step(iteration, hooks);
          ++steps;
        }
      });
    }
  }
  return static_cast<double>(steps) / (seconds() - begin);
}

double virtual_steps(const Learners& learners, const std::string& preset, Iteration iterations) {
  Profile profile;
  profile.name = "net";
  for (const Layer& layer : learners.front()->layers()) {
    profile.layers.push_back({layer.name, layer.range.size(), from_us(300), from_us(600)});
  }
  Cluster cluster;
  cluster.topology = Topology(learners.size(), 1, 0);
  cluster.bandwidth_gbps = 10;
  StepThreads threads(std::thread::hardware_concurrency(), learners.size());
  const VirtualNumbers numbers{.learners = learners,
                               .chunks = nullptr,
                               .rule = {.rate = {.base = 0.01F}, .momentum = 0.9F},
                               .strategy = {},
                               .computing = &threads};
  const double begin = seconds();
  testing::run_simulated(profile, cluster, find_preset(preset)->strategy, iterations, nullptr,
                         &numbers);
  return static_cast<double>(iterations) * static_cast<double>(learners.size()) /
         (seconds() - begin);
}

void compare(const std::string& model, std::int64_t side, std::size_t workers, double enough,
             const std::vector<std::string>& presets) {
  const TorchTask task = make_task(model, side, 64 * static_cast<std::int64_t>(workers), workers);
  check(static_cast<bool>(configure_engine(task, seconds, Kernels::kNative)),
        "the engine can be configured");
  const LearnerFactory make = *make_torch_learners(task);
  Learners learners;
  for (std::size_t w = 0; w < workers; ++w) {
    learners.push_back(make(w));
  }
  const double warm = plain_steps(learners, enough / 4);
  const auto iterations = static_cast<Iteration>(1 + warm * enough / static_cast<double>(workers));
  for (const std::string& preset : presets) {
    const double plain = plain_steps(learners, enough);
    const double virtually = virtual_steps(learners, preset, iterations);
    fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.2f} | {:.0f} |\n", model, preset, plain, virtually,
               virtually / plain, peak_memory_mb());
    std::fflush(stdout);
  }
}

int run(std::size_t workers, double enough, const std::vector<std::string>& presets) {
  fmt::print("| model, {} workers | preset | plain steps/s | virtual steps/s | ratio | peak MB |\n",
             workers);
  fmt::print("|---|---|--:|--:|--:|--:|\n");
  compare("lenet", 0, workers, enough, presets);
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  std::vector<std::string> presets{"p3", "p3-allreduce", "asp", "ssp", "easgd", "gosgd", "ad-psgd"};
  if (argc > 3) {
    presets.assign(argv + 3, argv + argc);
  }
  return sluice::run(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 24,
                     argc > 2 ? std::strtod(argv[2], nullptr) : 6, presets);
}
