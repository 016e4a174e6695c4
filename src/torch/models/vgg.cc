// Simonyan and Zisserman, "Very Deep Convolutional Networks" (2014), nets D and E.
#include <torch/nn/modules/linear.h>

#include <array>

#include "torch/models/families.h"
#include "torch/models/parts.h"
#include "torch/module_network.h"

namespace sluice {
namespace {

constexpr std::array<std::int64_t, 5> kWidths{64, 128, 256, 512, 512};
constexpr std::int64_t kVggSide = 7;  // of the features that the fully connected layers see
constexpr std::int64_t kVggHidden = 4096;

using Depths = std::array<std::size_t, 5>;  // convolutions of each width

// Convolutions, numbered as if ReLUs and poolings were counted too.
class VggFeatures final : public torch::nn::Module {
 public:
  explicit VggFeatures(const Depths& depths) {
    std::int64_t in = 3;
    std::size_t number = 0;
    for (std::size_t stage = 0; stage < depths.size(); ++stage, ++number) {
      auto& convolutions = stages_.emplace_back();
      for (std::size_t i = 0; i < depths[stage]; ++i, number += 2) {
        const auto options = torch::nn::Conv2dOptions(in, kWidths[stage], 3).padding(1);
        convolutions.push_back(register_module(std::to_string(number), torch::nn::Conv2d(options)));
        in = kWidths[stage];
      }
    }
  }

  at::Tensor forward(at::Tensor x) {
    for (auto& convolutions : stages_) {
      for (auto& convolution : convolutions) {
        x = convolution(x).relu_();
      }
      x = at::max_pool2d(x, 2);
    }
    return x;
  }

 private:
  std::vector<std::vector<torch::nn::Conv2d>> stages_;
};

class VggClassifier final : public torch::nn::Module {
 public:
  explicit VggClassifier(std::int64_t classes)
      : fc1_(register_module("0",
                             torch::nn::Linear(kWidths.back() * kVggSide * kVggSide, kVggHidden))),
        dropout1_(register_module("2", Dropout(0.5))),
        fc2_(register_module("3", torch::nn::Linear(kVggHidden, kVggHidden))),
        dropout2_(register_module("5", Dropout(0.5))),
        fc3_(register_module("6", torch::nn::Linear(kVggHidden, classes))) {}

  at::Tensor forward(const at::Tensor& x) {
    return fc3_(dropout2_(fc2_(dropout1_(fc1_(x).relu_())).relu_()));
  }

 private:
  torch::nn::Linear fc1_;
  Dropout dropout1_;
  torch::nn::Linear fc2_;
  Dropout dropout2_;
  torch::nn::Linear fc3_;
};

std::unique_ptr<Network> make_vgg(const Depths& depths, const SampleForm& form) {
  auto net =
      std::make_shared<PooledNet<VggFeatures, VggClassifier>>(kVggSide, form.classes, depths);
  initialise_for_rectifiers(*net);
  return network_of(std::move(net));
}

}  // namespace

std::unique_ptr<Network> make_vgg16(const SampleForm& form) {
  return make_vgg({2, 2, 3, 3, 3}, form);
}

std::unique_ptr<Network> make_vgg19(const SampleForm& form) {
  return make_vgg({2, 2, 4, 4, 4}, form);
}

}  // namespace sluice
