// He et al., "Deep Residual Learning for Image Recognition" (2015). As in torchvision, the
// bottlenecks of ResNet-50 halve the image in their second convolution, not in the first.
#include <torch/nn/modules/linear.h>

#include <array>

#include "torch/models/families.h"
#include "torch/models/parts.h"
#include "torch/module_network.h"

namespace sluice {
namespace {

struct BlockShape {
  std::int64_t in;
  std::int64_t width;  // of the inner convolutions
  std::int64_t stride;
};

// Output channels of a block, by the width of its inner convolutions.
constexpr std::int64_t kBasicGrowth = 1;
constexpr std::int64_t kBottleneckGrowth = 4;

// The shortcut around the convolutions of a block whose input and output differ in shape.
enum class Shortcut : std::uint8_t { kProjected, kPadded };

class Block : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

// A 1x1 convolution and a batch normalisation.
class Projection final : public torch::nn::Module {
 public:
  Projection(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv_(register_module("0", make_convolution({in, out, 1, stride}))),
        bn_(register_module("1", torch::nn::BatchNorm2d(out))) {}

  at::Tensor forward(const at::Tensor& x) { return bn_(conv_(x)); }

 private:
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d bn_;
};

// Null if the input can be added unchanged.
std::shared_ptr<Projection> projection_for(const BlockShape& shape, std::int64_t out) {
  return shape.stride == 1 && shape.in == out
             ? nullptr
             : std::make_shared<Projection>(shape.in, out, shape.stride);
}

class BasicBlock final : public Block {
 public:
  BasicBlock(const BlockShape& shape, Shortcut shortcut)
      : shape_(shape),
        conv1_(register_module("conv1",
                               make_convolution({shape.in, shape.width, 3, shape.stride, 1}))),
        bn1_(register_module("bn1", torch::nn::BatchNorm2d(shape.width))),
        conv2_(register_module("conv2", make_convolution({shape.width, shape.width, 3, 1, 1}))),
        bn2_(register_module("bn2", torch::nn::BatchNorm2d(shape.width))) {
    if (shortcut == Shortcut::kProjected) {
      downsample_ = projection_for(shape, shape.width * kBasicGrowth);
    }
    if (downsample_) {
      register_module("downsample", downsample_);
    }
  }

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor y = bn2_(conv2_(bn1_(conv1_(x)).relu_()));
    return (y + (downsample_ ? downsample_->forward(x) : padded(x))).relu_();
  }

 private:
  // Every second pixel, and zeros for the new channels.
  at::Tensor padded(const at::Tensor& x) const {
    if (shape_.stride == 1 && shape_.in == shape_.width) {
      return x;
    }
    const at::Tensor y = x.slice(2, {}, {}, shape_.stride).slice(3, {}, {}, shape_.stride);
    return at::constant_pad_nd(y, {0, 0, 0, 0, 0, shape_.width - shape_.in});
  }

  BlockShape shape_;
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d bn2_;
  std::shared_ptr<Projection> downsample_;
};

class Bottleneck final : public Block {
 public:
  explicit Bottleneck(const BlockShape& shape)
      : out_(shape.width * kBottleneckGrowth),
        conv1_(register_module("conv1", make_convolution({shape.in, shape.width, 1}))),
        bn1_(register_module("bn1", torch::nn::BatchNorm2d(shape.width))),
        conv2_(register_module("conv2",
                               make_convolution({shape.width, shape.width, 3, shape.stride, 1}))),
        bn2_(register_module("bn2", torch::nn::BatchNorm2d(shape.width))),
        conv3_(register_module("conv3", make_convolution({shape.width, out_, 1}))),
        bn3_(register_module("bn3", torch::nn::BatchNorm2d(out_))),
        downsample_(projection_for(shape, out_)) {
    if (downsample_) {
      register_module("downsample", downsample_);
    }
  }

  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor y = bn1_(conv1_(x)).relu_();
    y = bn2_(conv2_(y)).relu_();
    y = bn3_(conv3_(y));
    return (y + (downsample_ ? downsample_->forward(x) : x)).relu_();
  }

 private:
  std::int64_t out_;
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d bn2_;
  torch::nn::Conv2d conv3_;
  torch::nn::BatchNorm2d bn3_;
  std::shared_ptr<Projection> downsample_;
};

std::shared_ptr<Block> basic(const BlockShape& shape) {
  return std::make_shared<BasicBlock>(shape, Shortcut::kProjected);
}
std::shared_ptr<Block> basic_padded(const BlockShape& shape) {
  return std::make_shared<BasicBlock>(shape, Shortcut::kPadded);
}
std::shared_ptr<Block> bottleneck(const BlockShape& shape) {
  return std::make_shared<Bottleneck>(shape);
}

struct ResNetShape {
  std::vector<std::size_t> blocks;  // of each stage
  std::int64_t width;               // of the first stage; each later stage doubles it
  std::int64_t growth;
  std::shared_ptr<Block> (*make_block)(const BlockShape&);
  bool large_images;  // reduced before the first stage
};

class ResNet final : public torch::nn::Module {
 public:
  ResNet(const ResNetShape& shape, std::int64_t classes)
      : large_images_(shape.large_images),
        conv1_(register_module(
            "conv1", make_convolution(large_images_ ? ConvShape{3, shape.width, 7, 2, 3}
                                                    : ConvShape{3, shape.width, 3, 1, 1}))),
        bn1_(register_module("bn1", torch::nn::BatchNorm2d(shape.width))) {
    std::int64_t in = shape.width;
    std::int64_t width = shape.width;
    for (const std::size_t blocks : shape.blocks) {
      auto stage = std::make_shared<Row<Block>>();
      for (std::size_t i = 0; i < blocks; ++i) {
        stage->add(shape.make_block({in, width, i == 0 && !stages_.empty() ? 2 : 1}));
        in = width * shape.growth;
      }
      stages_.push_back(register_module("layer" + std::to_string(stages_.size() + 1), stage));
      width *= 2;
    }
    fc_ = register_module("fc", torch::nn::Linear(in, classes));
    initialise_for_rectifiers(*this);
  }

  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = bn1_(conv1_(images)).relu_();
    if (large_images_) {
      x = at::max_pool2d(x, 3, 2, 1);
    }
    for (const auto& stage : stages_) {
      x = stage->forward(x);
    }
    return fc_(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

 private:
  bool large_images_;
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  std::vector<std::shared_ptr<Row<Block>>> stages_;
  torch::nn::Linear fc_ = nullptr;
};

std::unique_ptr<Network> make(const ResNetShape& shape, const SampleForm& form) {
  return network_of(std::make_shared<ResNet>(shape, form.classes));
}

}  // namespace

std::unique_ptr<Network> make_resnet18(const SampleForm& form) {
  return make({{2, 2, 2, 2}, 64, kBasicGrowth, basic, true}, form);
}

std::unique_ptr<Network> make_resnet50(const SampleForm& form) {
  return make({{3, 4, 6, 3}, 64, kBottleneckGrowth, bottleneck, true}, form);
}

std::unique_ptr<Network> make_resnet110(const SampleForm& form) {
  return make({{18, 18, 18}, 16, kBasicGrowth, basic_padded, false}, form);
}

}  // namespace sluice
