// Szegedy et al., "Going Deeper with Convolutions" (2014): with batch normalisation and with 3x3
// convolutions instead of the paper's 5x5, as in torchvision, or as in the paper and in Caffe.
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "torch/models/families.h"
#include "torch/models/parts.h"
#include "torch/module_network.h"

namespace sluice {
namespace {

// Weight of the loss of an auxiliary head.
constexpr double kGoogLeNetHeadWeight = 0.3;

struct InceptionShape {
  std::int64_t in;
  std::int64_t plain;           // 1x1
  std::int64_t inner2, outer2;  // 1x1, then 3x3
  std::int64_t inner3, outer3;  // 1x1, then 3x3 or 5x5
  std::int64_t pooled;          // pooling, then 1x1
};

// A convolution with a bias, and a ReLU.
class ConvBias final : public torch::nn::Module {
 public:
  explicit ConvBias(const ConvShape& shape)
      : conv_(register_module(
            "conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(shape.in, shape.out, shape.kernel)
                                          .stride(shape.stride)
                                          .padding(shape.padding)))) {}

  at::Tensor forward(const at::Tensor& x) { return conv_(x).relu_(); }

 private:
  torch::nn::Conv2d conv_;
};

// The two versions of the net.
struct AsTorchvision {
  using Unit = ConvNorm;
  static constexpr std::int64_t kWideKernel = 3;
  static constexpr double kDropout = 0.2;
  static at::Tensor normalised(const at::Tensor& x) { return x; }
};

struct AsCaffe {
  using Unit = ConvBias;
  static constexpr std::int64_t kWideKernel = 5;
  static constexpr double kDropout = 0.4;
  static at::Tensor normalised(const at::Tensor& x) {
    torch::nn::LocalResponseNorm norm(torch::nn::LocalResponseNormOptions(5));
    return norm(x);
  }
};

template <class As>
std::shared_ptr<typename As::Unit> make_unit(const ConvShape& shape) {
  return std::make_shared<typename As::Unit>(shape);
}

template <class As>
class Inception final : public torch::nn::Module {
 public:
  explicit Inception(const InceptionShape& shape)
      : branch1_(register_module("branch1", make_unit<As>({shape.in, shape.plain, 1}))),
        branch2_(register_module("branch2", two(shape.in, shape.inner2, shape.outer2, 3))),
        branch3_(
            register_module("branch3", two(shape.in, shape.inner3, shape.outer3, As::kWideKernel))),
        branch4_(register_module("branch4", std::make_shared<Row<Unit>>(1))) {
    branch4_->add(make_unit<As>({shape.in, shape.pooled, 1}));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y1 = branch1_->forward(x);
    const at::Tensor y2 = branch2_->forward(x);
    const at::Tensor y3 = branch3_->forward(x);
    const at::Tensor y4 = branch4_->forward(at::max_pool2d(x, 3, 1, 1, 1, true));
    return at::cat({y1, y2, y3, y4}, 1);
  }

 private:
  using Unit = typename As::Unit;

  static std::shared_ptr<Row<Unit>> two(std::int64_t in, std::int64_t inner, std::int64_t outer,
                                        std::int64_t kernel) {
    auto row = std::make_shared<Row<Unit>>();
    row->add(make_unit<As>({in, inner, 1}));
    row->add(make_unit<As>({inner, outer, kernel, 1, kernel / 2}));
    return row;
  }

  std::shared_ptr<Unit> branch1_;
  std::shared_ptr<Row<Unit>> branch2_;
  std::shared_ptr<Row<Unit>> branch3_;
  std::shared_ptr<Row<Unit>> branch4_;
};

template <class As>
class GoogLeNetHead final : public torch::nn::Module {
 public:
  GoogLeNetHead(std::int64_t in, std::int64_t classes)
      : conv_(register_module("conv", make_unit<As>({in, 128, 1}))),
        fc1_(register_module("fc1", torch::nn::Linear(128 * 4 * 4, 1024))),
        dropout_(register_module("dropout", Dropout(0.7))),
        fc2_(register_module("fc2", torch::nn::Linear(1024, classes))) {}

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = conv_->forward(at::adaptive_avg_pool2d(x, {4, 4}));
    return fc2_(dropout_(fc1_(y.flatten(1)).relu_()));
  }

 private:
  std::shared_ptr<typename As::Unit> conv_;
  torch::nn::Linear fc1_;
  Dropout dropout_;
  torch::nn::Linear fc2_;
};

template <class As>
class GoogLeNet final : public torch::nn::Module {
 public:
  explicit GoogLeNet(std::int64_t classes)
      : conv1_(register_module("conv1", make_unit<As>({3, 64, 7, 2, 3}))),
        conv2_(register_module("conv2", make_unit<As>({64, 64, 1}))),
        conv3_(register_module("conv3", make_unit<As>({64, 192, 3, 1, 1}))),
        inception3a_(add("3a", {192, 64, 96, 128, 16, 32, 32})),
        inception3b_(add("3b", {256, 128, 128, 192, 32, 96, 64})),
        inception4a_(add("4a", {480, 192, 96, 208, 16, 48, 64})),
        inception4b_(add("4b", {512, 160, 112, 224, 24, 64, 64})),
        inception4c_(add("4c", {512, 128, 128, 256, 24, 64, 64})),
        inception4d_(add("4d", {512, 112, 144, 288, 32, 64, 64})),
        inception4e_(add("4e", {528, 256, 160, 320, 32, 128, 128})),
        inception5a_(add("5a", {832, 256, 160, 320, 32, 128, 128})),
        inception5b_(add("5b", {832, 384, 192, 384, 48, 128, 128})),
        aux1_(register_module("aux1", std::make_shared<GoogLeNetHead<As>>(512, classes))),
        aux2_(register_module("aux2", std::make_shared<GoogLeNetHead<As>>(528, classes))),
        dropout_(register_module("dropout", Dropout(As::kDropout))),
        fc_(register_module("fc", torch::nn::Linear(1024, classes))) {}

  at::Tensor forward(const at::Tensor& images) {
    const at::Tensor from4a = first_part(images);
    return last_part(second_part(from4a));
  }

  // Each head runs as soon as its input is ready, which gives its layers that place in the order.
  at::Tensor loss(const at::Tensor& images, const at::Tensor& labels) {
    const at::Tensor from4a = first_part(images);
    const at::Tensor aux1 = at::cross_entropy_loss(aux1_->forward(from4a), labels);
    const at::Tensor from4d = second_part(from4a);
    const at::Tensor aux2 = at::cross_entropy_loss(aux2_->forward(from4d), labels);
    return at::cross_entropy_loss(last_part(from4d), labels) + kGoogLeNetHeadWeight * (aux1 + aux2);
  }

 private:
  using Block = Inception<As>;
  using Unit = typename As::Unit;

  std::shared_ptr<Block> add(const std::string& name, const InceptionShape& shape) {
    return register_module("inception" + name, std::make_shared<Block>(shape));
  }

  static at::Tensor halved(const at::Tensor& x, std::int64_t window) {
    return at::max_pool2d(x, window, 2, 0, 1, true);
  }

  at::Tensor first_part(const at::Tensor& images) {
    at::Tensor x = As::normalised(halved(conv1_->forward(images), 3));
    x = halved(As::normalised(conv3_->forward(conv2_->forward(x))), 3);
    x = halved(inception3b_->forward(inception3a_->forward(x)), 3);
    return inception4a_->forward(x);
  }

  at::Tensor second_part(const at::Tensor& x) {
    return inception4d_->forward(inception4c_->forward(inception4b_->forward(x)));
  }

  at::Tensor last_part(const at::Tensor& from4d) {
    at::Tensor x = halved(inception4e_->forward(from4d), 2);
    x = inception5b_->forward(inception5a_->forward(x));
    return fc_(dropout_(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1)));
  }

  std::shared_ptr<Unit> conv1_, conv2_, conv3_;
  std::shared_ptr<Block> inception3a_, inception3b_;
  std::shared_ptr<Block> inception4a_, inception4b_, inception4c_, inception4d_, inception4e_;
  std::shared_ptr<Block> inception5a_, inception5b_;
  std::shared_ptr<GoogLeNetHead<As>> aux1_, aux2_;
  Dropout dropout_;
  torch::nn::Linear fc_;
};

}  // namespace

std::unique_ptr<Network> make_googlenet(const SampleForm& form) {
  return network_of(std::make_shared<GoogLeNet<AsTorchvision>>(form.classes));
}

std::unique_ptr<Network> make_googlenet_caffe(const SampleForm& form) {
  auto net = std::make_shared<GoogLeNet<AsCaffe>>(form.classes);
  initialise_for_rectifiers(*net);
  return network_of(std::move(net));
}

}  // namespace sluice
