// The cost of the hooks, the gate and the copies between host and device: steps of a learner
// without synchronisation, against a plain LibTorch loop over the same model and samples. Start
// several processes that share a GPU with the same BEGIN, so that each of the two is measured while
// the others do the same.
//
//   sluice_gpu_steps MODEL BATCH BEGIN SECONDS
//
// From BEGIN on (seconds since 1970), measures first the loop and then the steps, for SECONDS each.
// Prints the median time of an iteration of the two, in milliseconds.

#include <c10/core/StreamGuard.h>
#include <fmt/format.h>
#include <torch/optim/sgd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/median.h"
#include "data/synthetic.h"
#include "drivers/realtime/steady_sleeper.h"
#include "process.h"
#include "torch/device.h"
#include "torch/network_setup.h"
#include "torch/task_network.h"

namespace sluice {
namespace {

TorchTask make_task(const std::string& model, std::int64_t batch) {
  const SampleForm form = *model_form(model, 0);
  TorchTask task;
  if (form.words > 0) {
    const auto split = make_synthetic_text({.longest = form.shape.back(),
                                            .source_words = form.words,
                                            .target_words = form.classes,
                                            .train_samples = 4 * batch,
                                            .test_samples = 1,
                                            .seed = 1});
    task.train = std::make_shared<const decltype(split.train)>(split.train);
    task.test = std::make_shared<const decltype(split.test)>(split.test);
  } else {
    const auto split = make_synthetic({.sample_shape = form.shape,
                                       .classes = form.classes,
                                       .train_samples = 4 * batch,
                                       .test_samples = 1});
    task.train = std::make_shared<const DataSet>(split.train);
    task.test = std::make_shared<const DataSet>(split.test);
  }
  task.model = model;
  task.batch = batch;
  task.device = *torch_device("cuda");
  task.sleeper = std::make_shared<SteadySleeper>();
  return task;
}

class PlainLoop {
 public:
  explicit PlainLoop(const TorchTask& task)
      : network_((*network_of_task(task))()),
        placement_{device_of(task.device, 0), false},
        batches_(task.loader->open(batches_of(task.train, task.sharding(), 0))) {
    move_to(*network_, placement_.device);
    std::vector<at::Tensor> parameters;
    for (const NamedTensor& parameter : network_->parameters()) {
      parameters.push_back(parameter.tensor);
    }
    optimiser_.emplace(parameters, torch::optim::SGDOptions(0.01).momentum(0.9));
  }

  void step(Iteration iteration) {
    Batch& batch = batches_->get(iteration);
    optimiser_->zero_grad();
    const at::Tensor loss =
        network_->loss(samples_of(batch, placement_), labels_of(batch, placement_));
    loss.backward();
    optimiser_->step();
    loss.item();
  }

 private:
  std::unique_ptr<Network> network_;
  Placement placement_;
  std::unique_ptr<BatchStream> batches_;
  std::optional<torch::optim::SGD> optimiser_;
};

// Repeats `step` until `end`; returns the median time in seconds of the steps that began at `begin`
// or later.
template <class Step>
double measure(const Step& step, double begin, double end) {
  std::vector<double> times;
  double now = seconds();
  for (Iteration i = 0; now < end; ++i) {
    step(i);
    const double after = seconds();
    if (now >= begin) {
      times.push_back(after - now);
    }
    now = after;
  }
  check(!times.empty(), "BEGIN leaves time for the setup");
  return median_of(times);
}

void run(const std::string& model, std::int64_t batch, double begin, double length) {
  constexpr double kPause = 1;  // until all have started the second measurement
  const TorchTask task = make_task(model, batch);
  check(static_cast<bool>(configure_engine(task, seconds)), "the engine can be configured");
  const std::unique_ptr<Learner> learner = (*make_torch_learners(task))(0);
  NoHooks hooks;
  learner->step(0, hooks);
  PlainLoop loop(task);
  const double plain = measure([&](Iteration i) { loop.step(i); }, begin, begin + length);
  const double steps = measure([&](Iteration i) { learner->step(i, hooks); },
                               begin + length + kPause, begin + kPause + 2 * length);
  fmt::print("{:.3f} {:.3f}\n", plain * 1e3, steps * 1e3);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: sluice_gpu_steps MODEL BATCH BEGIN SECONDS\n");
    return 2;
  }
  sluice::run(argv[1], std::strtoll(argv[2], nullptr, 10), std::strtod(argv[3], nullptr),
              std::strtod(argv[4], nullptr));
}
