// Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2015).
#include <torch/nn/modules/linear.h>

#include "base/check.h"
#include "torch/models/families.h"
#include "torch/models/parts.h"
#include "torch/module_network.h"

namespace sluice {
namespace {

// Weight of the loss of the auxiliary head.
constexpr double kInceptionHeadWeight = 0.4;

using Size = torch::ExpandingArray<2>;

// A convolution that keeps the size of the image, or one that halves it.
struct Conv {
  const char* name;
  std::int64_t out;
  std::int64_t rows;
  std::int64_t columns;
  bool halves = false;

  ConvShape after(std::int64_t in) const {
    return halves ? ConvShape{in, out, Size({rows, columns}), 2}
                  : ConvShape{in, out, Size({rows, columns}), 1, Size({rows / 2, columns / 2})};
  }
};

enum class Pool : std::uint8_t { kNone, kAverage, kHalving };

at::Tensor pooled(const at::Tensor& x, Pool pool) {
  switch (pool) {
    case Pool::kAverage:
      return at::avg_pool2d(x, 3, 1, 1);
    case Pool::kHalving:
      return at::max_pool2d(x, 3, 2);
    case Pool::kNone:
      return x;
  }
  fail_check("there is no such pooling");
}

// A pooling, then convolutions in sequence, then convolutions in parallel on the result.
struct BranchShape {
  std::vector<Conv> chain;
  std::vector<Conv> fork = {};
  Pool pool = Pool::kNone;
};

// Parallel branches.
class Mixed final : public torch::nn::Module {
 public:
  Mixed(std::int64_t in, const std::vector<BranchShape>& shapes) {
    for (const BranchShape& shape : shapes) {
      Branch& branch = branches_.emplace_back();
      branch.pool = shape.pool;
      std::int64_t channels = in;
      for (const Conv& conv : shape.chain) {
        branch.chain.push_back(add(conv, channels));
        channels = conv.out;
      }
      for (const Conv& conv : shape.fork) {
        branch.fork.push_back(add(conv, channels));
        out_ += conv.out;
      }
      out_ += branch.fork.empty() ? channels : 0;
    }
  }

  std::int64_t out() const { return out_; }

  at::Tensor forward(const at::Tensor& x) {
    std::vector<at::Tensor> parts;
    for (const Branch& branch : branches_) {
      at::Tensor y = pooled(x, branch.pool);
      for (const auto& conv : branch.chain) {
        y = conv->forward(y);
      }
      for (const auto& conv : branch.fork) {
        parts.push_back(conv->forward(y));
      }
      if (branch.fork.empty()) {
        parts.push_back(y);
      }
    }
    return at::cat(parts, 1);
  }

 private:
  struct Branch {
    Pool pool = Pool::kNone;
    std::vector<std::shared_ptr<ConvNorm>> chain;
    std::vector<std::shared_ptr<ConvNorm>> fork;
  };

  std::shared_ptr<ConvNorm> add(const Conv& conv, std::int64_t in) {
    return register_module(conv.name, std::make_shared<ConvNorm>(conv.after(in)));
  }

  std::int64_t out_ = 0;
  std::vector<Branch> branches_;
};

using Branches = std::vector<BranchShape>;

// The five kinds of blocks, by the figures of the paper.
Branches figure5(std::int64_t after_pool) {
  return {
      {{{"branch1x1", 64, 1, 1}}},
      {{{"branch5x5_1", 48, 1, 1}, {"branch5x5_2", 64, 5, 5}}},
      {{{"branch3x3dbl_1", 64, 1, 1}, {"branch3x3dbl_2", 96, 3, 3}, {"branch3x3dbl_3", 96, 3, 3}}},
      {{{"branch_pool", after_pool, 1, 1}}, {}, Pool::kAverage}};
}

Branches figure10_first() {
  return {{{{"branch3x3", 384, 3, 3, true}}},
          {{{"branch3x3dbl_1", 64, 1, 1},
            {"branch3x3dbl_2", 96, 3, 3},
            {"branch3x3dbl_3", 96, 3, 3, true}}},
          {{}, {}, Pool::kHalving}};
}

Branches figure6(std::int64_t width) {
  return {
      {{{"branch1x1", 192, 1, 1}}},
      {{{"branch7x7_1", width, 1, 1}, {"branch7x7_2", width, 1, 7}, {"branch7x7_3", 192, 7, 1}}},
      {{{"branch7x7dbl_1", width, 1, 1},
        {"branch7x7dbl_2", width, 7, 1},
        {"branch7x7dbl_3", width, 1, 7},
        {"branch7x7dbl_4", width, 7, 1},
        {"branch7x7dbl_5", 192, 1, 7}}},
      {{{"branch_pool", 192, 1, 1}}, {}, Pool::kAverage}};
}

Branches figure10_second() {
  return {{{{"branch3x3_1", 192, 1, 1}, {"branch3x3_2", 320, 3, 3, true}}},
          {{{"branch7x7x3_1", 192, 1, 1},
            {"branch7x7x3_2", 192, 1, 7},
            {"branch7x7x3_3", 192, 7, 1},
            {"branch7x7x3_4", 192, 3, 3, true}}},
          {{}, {}, Pool::kHalving}};
}

Branches figure7() {
  return {
      {{{"branch1x1", 320, 1, 1}}},
      {{{"branch3x3_1", 384, 1, 1}}, {{"branch3x3_2a", 384, 1, 3}, {"branch3x3_2b", 384, 3, 1}}},
      {{{"branch3x3dbl_1", 448, 1, 1}, {"branch3x3dbl_2", 384, 3, 3}},
       {{"branch3x3dbl_3a", 384, 1, 3}, {"branch3x3dbl_3b", 384, 3, 1}}},
      {{{"branch_pool", 192, 1, 1}}, {}, Pool::kAverage}};
}

class InceptionHead final : public torch::nn::Module {
 public:
  InceptionHead(std::int64_t in, std::int64_t classes)
      : conv0_(register_module("conv0", std::make_shared<ConvNorm>(ConvShape{in, 128, 1}))),
        conv1_(register_module("conv1", std::make_shared<ConvNorm>(ConvShape{128, 768, kSide}))),
        fc_(register_module("fc", torch::nn::Linear(768, classes))) {}

  // For images smaller than the net was made for, the features are too small for the pooling of the
  // paper.
  at::Tensor forward(const at::Tensor& x) {
    const bool full = x.size(2) >= kFullSide && x.size(3) >= kFullSide;
    const at::Tensor y =
        full ? at::avg_pool2d(x, 5, 3) : at::adaptive_avg_pool2d(x, {kSide, kSide});
    return fc_(at::adaptive_avg_pool2d(conv1_->forward(conv0_->forward(y)), {1, 1}).flatten(1));
  }

 private:
  static constexpr std::int64_t kSide = 5;
  static constexpr std::int64_t kFullSide = 17;  // which the pooling reduces to kSide

  std::shared_ptr<ConvNorm> conv0_;
  std::shared_ptr<ConvNorm> conv1_;
  torch::nn::Linear fc_;
};

class InceptionV3 final : public torch::nn::Module {
 public:
  InceptionV3(std::int64_t classes, bool has_head)
      : conv1a_(add("Conv2d_1a_3x3", {3, 32, 3, 2})),
        conv2a_(add("Conv2d_2a_3x3", {32, 32, 3})),
        conv2b_(add("Conv2d_2b_3x3", {32, 64, 3, 1, 1})),
        conv3b_(add("Conv2d_3b_1x1", {64, 80, 1})),
        conv4a_(add("Conv2d_4a_3x3", {80, 192, 3})) {
    mix(until6_, "Mixed_5b", figure5(32));
    mix(until6_, "Mixed_5c", figure5(64));
    mix(until6_, "Mixed_5d", figure5(64));
    mix(until6_, "Mixed_6a", figure10_first());
    mix(until6_, "Mixed_6b", figure6(128));
    mix(until6_, "Mixed_6c", figure6(160));
    mix(until6_, "Mixed_6d", figure6(160));
    mix(until6_, "Mixed_6e", figure6(192));
    if (has_head) {
      aux_ = register_module("AuxLogits", std::make_shared<InceptionHead>(channels_, classes));
    }
    mix(from7_, "Mixed_7a", figure10_second());
    mix(from7_, "Mixed_7b", figure7());
    mix(from7_, "Mixed_7c", figure7());
    dropout_ = register_module("dropout", Dropout(0.5));
    fc_ = register_module("fc", torch::nn::Linear(channels_, classes));
  }

  at::Tensor forward(const at::Tensor& images) { return last_part(first_part(images)); }

  // The head runs as soon as its input is ready, which gives its layers that place in the order.
  at::Tensor loss(const at::Tensor& images, const at::Tensor& labels) {
    const at::Tensor from6 = first_part(images);
    if (aux_ == nullptr) {
      return at::cross_entropy_loss(last_part(from6), labels);
    }
    const at::Tensor aux = at::cross_entropy_loss(aux_->forward(from6), labels);
    return at::cross_entropy_loss(last_part(from6), labels) + kInceptionHeadWeight * aux;
  }

 private:
  using Mixtures = std::vector<std::shared_ptr<Mixed>>;

  std::shared_ptr<ConvNorm> add(const char* name, const ConvShape& shape) {
    channels_ = shape.out;
    return register_module(name, std::make_shared<ConvNorm>(shape));
  }

  void mix(Mixtures& mixtures, const char* name, const Branches& branches) {
    mixtures.push_back(register_module(name, std::make_shared<Mixed>(channels_, branches)));
    channels_ = mixtures.back()->out();
  }

  static at::Tensor through(const Mixtures& mixtures, at::Tensor x) {
    for (const auto& mixed : mixtures) {
      x = mixed->forward(x);
    }
    return x;
  }

  at::Tensor first_part(const at::Tensor& images) {
    at::Tensor x = conv2b_->forward(conv2a_->forward(conv1a_->forward(images)));
    x = pooled(x, Pool::kHalving);
    x = pooled(conv4a_->forward(conv3b_->forward(x)), Pool::kHalving);
    return through(until6_, x);
  }

  at::Tensor last_part(const at::Tensor& from6) {
    const at::Tensor x = at::adaptive_avg_pool2d(through(from7_, from6), {1, 1});
    return fc_(dropout_(x.flatten(1)));
  }

  std::int64_t channels_ = 3;  // of the output of the blocks added so far
  std::shared_ptr<ConvNorm> conv1a_, conv2a_, conv2b_, conv3b_, conv4a_;
  Mixtures until6_;
  std::shared_ptr<InceptionHead> aux_;  // null: the net has none
  Mixtures from7_;
  Dropout dropout_ = nullptr;
  torch::nn::Linear fc_ = nullptr;
};

}  // namespace

std::unique_ptr<Network> make_inceptionv3(const SampleForm& form) {
  return network_of(std::make_shared<InceptionV3>(form.classes, true));
}

std::unique_ptr<Network> make_inceptionv3_mxnet(const SampleForm& form) {
  return network_of(std::make_shared<InceptionV3>(form.classes, false));
}

}  // namespace sluice
