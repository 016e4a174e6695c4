// An image classifier with its own model, data, optimizer and training loop. Four lines of it call
// Sluice.
//
//   own_loop               this process alone
//   mpirun -np 4 own_loop  one worker per process
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <sluice/loop.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <cstdio>
#include <exception>
#include <utility>

namespace {

constexpr std::int64_t kSide = 12;
constexpr std::int64_t kClasses = 4;
constexpr std::int64_t kBatch = 32;
constexpr std::int64_t kSteps = 120;

struct NetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& images) {
    const at::Tensor features = at::max_pool2d(conv(images).relu(), 2);
    return exit(features.flatten(1));
  }

  torch::nn::Conv2d conv{register_module("conv", torch::nn::Conv2d(1, 8, 3))};
  torch::nn::Linear exit{register_module("exit", torch::nn::Linear(8 * 5 * 5, kClasses))};
};
TORCH_MODULE(Net);

// Noise with a bright patch; the class of an image is the corner that it is in.
std::pair<at::Tensor, at::Tensor> draw_batch(const at::Generator& chance) {
  constexpr std::int64_t kHalf = kSide / 2;
  at::Tensor images = at::randn({kBatch, 1, kSide, kSide}, chance);
  at::Tensor labels = at::randint(kClasses, {kBatch}, chance, at::kLong);
  for (std::int64_t i = 0; i < kBatch; ++i) {
    const auto corner = labels[i].item().toLong();
    images[i][0]
        .narrow(0, (corner / 2) * kHalf, kHalf)
        .narrow(1, (corner % 2) * kHalf, kHalf)
        .add_(0.7);
  }
  return {std::move(images), std::move(labels)};
}

double share_right(Net& net, const at::Tensor& images, const at::Tensor& labels) {
  return net->forward(images).argmax(1).eq(labels).sum().item().toDouble() / kBatch;
}

void train(sluice::LoopWorker& worker) {
  // Every worker draws its own images.
  const auto chance = at::make_generator<at::CPUGeneratorImpl>(worker.rank());
  Net net;
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(0.01));
  sluice::LoopModel& model = worker.attach(*net, adam, [&] {
    net->forward(at::zeros({1, 1, kSide, kSide}));
  });
  for (std::int64_t step = 0; step < kSteps; ++step) {
    if (step == kSteps / 2) {
      for (auto& group : adam.param_groups()) {
        group.options().set_lr(0.002);
      }
    }
    const auto [images, labels] = draw_batch(chance);
    const double loss =
        model.step([&] { return at::cross_entropy_loss(net->forward(images), labels); });
    if (worker.rank() == 0 && step % 40 == 0) {
      std::printf("step %3ld   loss %.3f\n", static_cast<long>(step), loss);
    }
  }
  model.wait();
  const auto [images, labels] = draw_batch(chance);
  const double right = worker.mean(share_right(net, images, labels));
  if (worker.rank() == 0) {
    std::printf("%zu workers: %.0f %% right, %.1f ms of waiting per step\n", worker.workers(),
                100 * right, 1e3 * model.metrics().waited_seconds / kSteps);
  }
}

}  // namespace

int main() {
  at::set_num_threads(1);  // one worker per core
  try {
    sluice::run_loop(train);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "own_loop: %s\n", error.what());
    return 1;
  }
}
