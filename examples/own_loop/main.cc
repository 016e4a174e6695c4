// A program with its own model, data and training loop. Four lines of it call Sluice.
//
//   own_loop               two workers as threads of this process
//   mpirun -np 4 own_loop  one worker per process
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <sluice/loop.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <exception>
#include <utility>

namespace {

constexpr std::int64_t kFeatures = 20;
constexpr std::int64_t kClasses = 4;
constexpr std::int64_t kBatch = 32;

struct NetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& samples) { return exit(entry(samples).relu()); }

  torch::nn::Linear entry{register_module("entry", torch::nn::Linear(kFeatures, 64))};
  torch::nn::Linear exit{register_module("exit", torch::nn::Linear(64, kClasses))};
};
TORCH_MODULE(Net);

// The class of a sample is the index of the largest of its first features.
std::pair<at::Tensor, at::Tensor> draw_batch(const at::Generator& chance) {
  at::Tensor samples = at::randn({kBatch, kFeatures}, chance);
  at::Tensor labels = samples.narrow(1, 0, kClasses).argmax(1);
  return {std::move(samples), std::move(labels)};
}

void train(sluice::LoopWorker& worker, std::int64_t iterations) {
  // Every worker draws its own samples.
  const auto chance = at::make_generator<at::CPUGeneratorImpl>(worker.rank());
  Net net;
  worker.attach(*net, [&] { net->forward(at::zeros({1, kFeatures})); });
  for (std::int64_t i = 0; i < iterations; ++i) {
    const auto [samples, labels] = draw_batch(chance);
    const double loss =
        worker.step([&] { return at::cross_entropy_loss(net->forward(samples), labels); });
    if (worker.rank() == 0 && i % 100 == 0) {
      std::printf("iteration %3ld   loss %.3f\n", static_cast<long>(i), loss);
    }
  }
  worker.wait();
  if (worker.rank() == 0) {
    const auto [samples, labels] = draw_batch(chance);
    const double right = net->forward(samples).argmax(1).eq(labels).sum().item().toDouble();
    std::printf("%zu workers: %.0f of %ld right\n", worker.workers(), right,
                static_cast<long>(kBatch));
  }
}

}  // namespace

int main() {
  at::set_num_threads(1);  // one worker per core
  sluice::LoopOptions options;
  options.iterations = 400;
  try {
    const int signal = sluice::run_loops(
        options, [&](sluice::LoopWorker& worker) { train(worker, options.iterations); });
    return signal == 0 ? 0 : 128 + signal;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "own_loop: %s\n", error.what());
    return 1;
  }
}
