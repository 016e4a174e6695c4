#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "torch/models/families.h"
#include "torch/module_network.h"

namespace sluice {
namespace {

// LeNet-5 with the widths of Caffe.
class LeNet final : public torch::nn::Module {
 public:
  explicit LeNet(std::int64_t classes)
      : conv1_(register_module("conv1", torch::nn::Conv2d(1, 20, 5))),
        conv2_(register_module("conv2", torch::nn::Conv2d(20, 50, 5))),
        fc1_(register_module("fc1", torch::nn::Linear(50 * 4 * 4, 500))),
        fc2_(register_module("fc2", torch::nn::Linear(500, classes))) {}

  // Max pooling and ReLU commute, and after pooling ReLU has a quarter of the work.
  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = at::max_pool2d(conv1_(images), 2).relu_();
    x = at::max_pool2d(conv2_(x), 2).relu_();
    x = fc1_(x.flatten(1)).relu_();
    return fc2_(x);
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
};

class Mlp final : public torch::nn::Module {
 public:
  explicit Mlp(std::int64_t classes)
      : fc1_(register_module("fc1", torch::nn::Linear(784, 500))),
        fc2_(register_module("fc2", torch::nn::Linear(500, 500))),
        fc3_(register_module("fc3", torch::nn::Linear(500, classes))) {}

  at::Tensor forward(const at::Tensor& images) {
    return fc3_(fc2_(fc1_(images.flatten(1)).relu_()).relu_());
  }

 private:
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
  torch::nn::Linear fc3_;
};

}  // namespace

std::unique_ptr<Network> make_lenet(const SampleForm& form) {
  return network_of(std::make_shared<LeNet>(form.classes));
}

std::unique_ptr<Network> make_mlp(const SampleForm& form) {
  return network_of(std::make_shared<Mlp>(form.classes));
}

}  // namespace sluice
