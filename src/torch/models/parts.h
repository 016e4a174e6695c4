#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Building blocks that several families share.
namespace sluice {

// A sequence of modules of one kind, named by numbers.
template <class Part>
class Row final : public torch::nn::Module {
 public:
  // Numbers from `first` on.
  explicit Row(std::size_t first = 0) : first_(first) {}

  void add(std::shared_ptr<Part> part) {
    const std::string name = std::to_string(first_ + parts_.size());
    parts_.push_back(register_module(name, std::move(part)));
  }

  at::Tensor forward(at::Tensor x) {
    for (const auto& part : parts_) {
      x = part->forward(x);
    }
    return x;
  }

 private:
  std::size_t first_;
  std::vector<std::shared_ptr<Part>> parts_;
};

// Features of an image, pooled to a square of this side, and fully connected layers that classify
// them. The features are made first: both draw their weights from the same generator.
template <class Features, class Classifier>
class PooledNet final : public torch::nn::Module {
 public:
  PooledNet(std::int64_t side, std::int64_t classes, const auto&... of_features)
      : features_(register_module("features", std::make_shared<Features>(of_features...))),
        side_(side),
        classifier_(register_module("classifier", std::make_shared<Classifier>(classes))) {}

  at::Tensor forward(const at::Tensor& images) {
    const at::Tensor x = at::adaptive_avg_pool2d(features_->forward(images), {side_, side_});
    return classifier_->forward(x.flatten(1));
  }

 private:
  std::shared_ptr<Features> features_;
  std::int64_t side_;
  std::shared_ptr<Classifier> classifier_;
};

struct ConvShape {
  std::int64_t in;
  std::int64_t out;
  torch::ExpandingArray<2> kernel;
  torch::ExpandingArray<2> stride = 1;
  torch::ExpandingArray<2> padding = 0;
};

// Without a bias, because a batch normalisation follows.
torch::nn::Conv2d make_convolution(const ConvShape& shape);

// A convolution, a batch normalisation and a ReLU, as in Inception nets.
class ConvNorm final : public torch::nn::Module {
 public:
  explicit ConvNorm(const ConvShape& shape);

  at::Tensor forward(const at::Tensor& x);

 private:
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d bn_;
};

// Initialises the weights of all convolutions as He et al. recommend for ReLU: otherwise the signal
// vanishes in a deep net without batch normalisation. Biases become zero.
void initialise_for_rectifiers(torch::nn::Module& module);

}  // namespace sluice
