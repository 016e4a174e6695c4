#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "torch/models/families.h"
#include "torch/module_network.h"

namespace sluice {
namespace {

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 5).padding(2));
}

// The AlexNet-like net of Liao et al., "Learning Deep Parsimonious Representations" (NIPS 2016),
// with the widths of their published configuration. There is nothing between its two fully
// connected layers.
class Cifar100Cnn final : public torch::nn::Module {
 public:
  explicit Cifar100Cnn(std::int64_t classes)
      : conv1_(register_module("conv1", convolution(3, 32))),
        conv2_(register_module("conv2", convolution(32, 32))),
        conv3_(register_module("conv3", convolution(32, 64))),
        fc1_(register_module("fc1", torch::nn::Linear(64 * 4 * 4, 64))),
        fc2_(register_module("fc2", torch::nn::Linear(64, classes))) {}

  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = at::max_pool2d(conv1_(images).relu_(), 3, 2, 0, 1, true);
    x = at::avg_pool2d(conv2_(x).relu_(), 3, 2, 0, true);
    x = at::avg_pool2d(conv3_(x).relu_(), 3, 2, 0, true);
    return fc2_(fc1_(x.flatten(1)));
  }

  // The loss is convex in the parameters that remain to be trained.
  void freeze_all_but_the_last() {
    for (const auto& part : children()) {
      for (at::Tensor& parameter : part->parameters()) {
        parameter.set_requires_grad(part == fc2_.ptr());
      }
    }
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Conv2d conv3_;
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
};

}  // namespace

std::unique_ptr<Network> make_cifar100_cnn(const SampleForm& form) {
  return network_of(std::make_shared<Cifar100Cnn>(form.classes));
}

std::unique_ptr<Network> make_cifar100_convex(const SampleForm& form) {
  auto module = std::make_shared<Cifar100Cnn>(form.classes);
  module->freeze_all_but_the_last();
  return network_of(std::move(module));
}

}  // namespace sluice
