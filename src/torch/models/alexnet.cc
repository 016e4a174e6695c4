// Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014): AlexNet
// without its division into two towers, as in torchvision.
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "torch/models/families.h"
#include "torch/models/parts.h"
#include "torch/module_network.h"

namespace sluice {
namespace {

constexpr std::int64_t kAlexNetSide = 6;  // of the features that the fully connected layers see
constexpr std::int64_t kAlexNetHidden = 4096;

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel,
                              std::int64_t padding, std::int64_t stride = 1) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(padding));
}

class AlexNetFeatures final : public torch::nn::Module {
 public:
  AlexNetFeatures()
      : conv1_(register_module("0", convolution(3, 64, 11, 2, 4))),
        conv2_(register_module("3", convolution(64, 192, 5, 2))),
        conv3_(register_module("6", convolution(192, 384, 3, 1))),
        conv4_(register_module("8", convolution(384, 256, 3, 1))),
        conv5_(register_module("10", convolution(256, 256, 3, 1))) {}

  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = at::max_pool2d(conv1_(images).relu_(), 3, 2);
    x = at::max_pool2d(conv2_(x).relu_(), 3, 2);
    x = conv3_(x).relu_();
    x = conv4_(x).relu_();
    return at::max_pool2d(conv5_(x).relu_(), 3, 2);
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Conv2d conv3_;
  torch::nn::Conv2d conv4_;
  torch::nn::Conv2d conv5_;
};

class AlexNetClassifier final : public torch::nn::Module {
 public:
  explicit AlexNetClassifier(std::int64_t classes)
      : dropout1_(register_module("0", Dropout(0.5))),
        fc1_(register_module("1",
                             torch::nn::Linear(256 * kAlexNetSide * kAlexNetSide, kAlexNetHidden))),
        dropout2_(register_module("3", Dropout(0.5))),
        fc2_(register_module("4", torch::nn::Linear(kAlexNetHidden, kAlexNetHidden))),
        fc3_(register_module("6", torch::nn::Linear(kAlexNetHidden, classes))) {}

  at::Tensor forward(const at::Tensor& x) {
    return fc3_(fc2_(dropout2_(fc1_(dropout1_(x)).relu_())).relu_());
  }

 private:
  Dropout dropout1_;
  torch::nn::Linear fc1_;
  Dropout dropout2_;
  torch::nn::Linear fc2_;
  torch::nn::Linear fc3_;
};

}  // namespace

std::unique_ptr<Network> make_alexnet(const SampleForm& form) {
  return network_of(
      std::make_shared<PooledNet<AlexNetFeatures, AlexNetClassifier>>(kAlexNetSide, form.classes));
}

}  // namespace sluice
