// A single worker, with nobody to synchronise with, against a plain loop over the same model and
// the same samples with LibTorch's default settings.
//
//   sluice_cpu [SECONDS]
//
// Each of the two trains for SECONDS per model, 8 by default. The loop goes first, since the worker
// changes the settings of the whole process; so every model has a process of its own.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/median.h"
#include "cpu/task.h"
#include "data/sharding.h"
#include "nodes/presets.h"
#include "process.h"
#include "support/threaded.h"
#include "torch/network_setup.h"
#include "torch/task_network.h"

namespace sluice {
namespace {

constexpr float kRate = 0.01F;
constexpr float kMomentum = 0.9F;

// Median time of an iteration.
double plain_loop(const TorchTask& task, double enough) {
  const auto network = (*network_of_task(task))();
  std::vector<at::Tensor> parameters;
  for (const NamedTensor& parameter : network->parameters()) {
    parameters.push_back(parameter.tensor);
  }
  torch::optim::SGD optimiser(parameters, torch::optim::SGDOptions(kRate).momentum(kMomentum));
  const Sharding sharding{task.seed, task.train->size(), task.batch, task.workers};
  Batch batch;
  std::vector<double> times;
  const double begin = seconds();
  for (double now = begin; now - begin < enough || times.size() < 3;) {
    task.train->load(sharding.batch_of(0, static_cast<Iteration>(times.size())), task.seed, batch);
    optimiser.zero_grad();
    network->loss(samples_of(batch, {}), labels_of(batch, {})).backward();
    optimiser.step();
    const double after = seconds();
    times.push_back(after - now);
    now = after;
  }
  return median_of(times);
}

class StartTimes final : public Observer {
 public:
  void computed(NodeId /*worker*/, LayerId layer, Iteration /*iteration*/, Pass pass, Time begin,
                Time /*end*/) override {
    if (layer.index() == 0 && pass == Pass::kForward) {
      starts.push_back(begin);
    }
  }
  void waited(NodeId, LayerId, Iteration, Time, Time) override {}
  void sent(const Message&, Time, Time) override {}
  void received(const Message&, Time, Time) override {}
  void worked(const Work&, Time, Time) override {}

  std::vector<Time> starts;  // of forward passes
};

// The same for a worker that pushes to the server beside it and waits for its parameters, as usual.
double worker_alone(const TorchTask& task, double guess, double enough) {
  std::vector<std::unique_ptr<Learner>> learners;
  learners.push_back((*make_torch_learners(task))(0));
  const UpdateRule rule{.rate = {.base = kRate}, .momentum = kMomentum, .weight_decay = 0};
  StartTimes observer;
  testing::run_threaded(learners, Topology(1, 1, 0), find_preset("p3")->strategy, rule,
                        static_cast<Iteration>(enough / guess) + 3, &observer);
  std::vector<double> times;
  for (std::size_t i = 1; i < observer.starts.size(); ++i) {
    times.push_back(to_seconds(observer.starts[i] - observer.starts[i - 1]));
  }
  return median_of(times);
}

void compare(const std::string& model, std::int64_t side, double enough) {
  const TorchTask task = make_task(model, side, 640);
  const double plain = plain_loop(task, enough);
  const auto choice = configure_engine(task, seconds);
  check(static_cast<bool>(choice), "the engine can be configured");
  const double alone =
      worker_alone(with_kernels(task, choice->kernels), choice->trials.front().seconds, enough);
  const auto batch = static_cast<double>(task.batch);
  fmt::print("| {}, {} | {:.1f} | {:.1f} | {} | {:.2f} |\n", model,
             fmt::join(task.train->form().shape, "x"), batch / plain, batch / alone,
             name_of(kKernelsNames, choice->kernels), plain / alone);
  std::fflush(stdout);
}

int run(double enough) {
  fmt::print("| images/s, batch 32 | plain loop | worker alone | its kernels | worker / loop |\n");
  fmt::print("|---|--:|--:|---|--:|\n");
  std::fflush(stdout);
  const std::vector<std::pair<std::string, std::int64_t>> models{{"lenet", 0}, {"resnet18", 32}};
  for (const auto& [model, side] : models) {
    const pid_t child = fork();
    if (child == 0) {
      compare(model, side, enough);
      std::_Exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  return sluice::run(argc > 1 ? std::strtod(argv[1], nullptr) : 8);
}
