// A small GPT (Radford et al., 2019) that predicts characters. Modules have the names of GPT-2's.
#include <torch/nn/init.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <limits>
#include <vector>

#include "torch/models/families.h"
#include "torch/models/parts.h"
#include "torch/module_network.h"

namespace sluice {
namespace {

constexpr std::int64_t kGptWidth = 64;
constexpr std::int64_t kHeads = 4;
constexpr int kBlocks = 2;

torch::nn::LayerNorm make_norm() {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({kGptWidth}));
}

// Every character looks at itself and at those before it.
class CausalAttention final : public torch::nn::Module {
 public:
  CausalAttention()
      : c_attn_(register_module("c_attn", torch::nn::Linear(kGptWidth, 3 * kGptWidth))),
        c_proj_(register_module("c_proj", torch::nn::Linear(kGptWidth, kGptWidth))) {}

  // `x` is samples x characters x width.
  at::Tensor forward(const at::Tensor& x) {
    const std::int64_t samples = x.size(0);
    const std::int64_t length = x.size(1);
    const std::vector<at::Tensor> parts = c_attn_(x).split(kGptWidth, 2);
    const auto by_head = [&](const at::Tensor& part) {
      return part.view({samples, length, kHeads, kGptWidth / kHeads})
          .transpose(1, 2)
          .reshape({samples * kHeads, length, kGptWidth / kHeads});
    };
    const at::Tensor later = at::ones({length, length}, x.options().dtype(at::kBool)).triu(1);
    const at::Tensor scores = at::bmm(by_head(parts[0]), by_head(parts[1]).transpose(1, 2)) /
                              std::sqrt(static_cast<double>(kGptWidth / kHeads));
    const at::Tensor weights =
        scores.masked_fill(later, -std::numeric_limits<float>::infinity()).softmax(2);
    const at::Tensor found = at::bmm(weights, by_head(parts[2]));
    return c_proj_(found.view({samples, kHeads, length, kGptWidth / kHeads})
                       .transpose(1, 2)
                       .reshape({samples, length, kGptWidth}));
  }

 private:
  torch::nn::Linear c_attn_;
  torch::nn::Linear c_proj_;
};

class Mixer final : public torch::nn::Module {
 public:
  Mixer()
      : c_fc_(register_module("c_fc", torch::nn::Linear(kGptWidth, 4 * kGptWidth))),
        c_proj_(register_module("c_proj", torch::nn::Linear(4 * kGptWidth, kGptWidth))) {}

  at::Tensor forward(const at::Tensor& x) { return c_proj_(at::gelu(c_fc_(x))); }

 private:
  torch::nn::Linear c_fc_;
  torch::nn::Linear c_proj_;
};

class GptBlock final : public torch::nn::Module {
 public:
  GptBlock()
      : ln_1_(register_module("ln_1", make_norm())),
        attn_(register_module("attn", std::make_shared<CausalAttention>())),
        ln_2_(register_module("ln_2", make_norm())),
        mlp_(register_module("mlp", std::make_shared<Mixer>())) {}

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = x + attn_->forward(ln_1_(x));
    return y + mlp_->forward(ln_2_(y));
  }

 private:
  torch::nn::LayerNorm ln_1_;
  std::shared_ptr<CausalAttention> attn_;
  torch::nn::LayerNorm ln_2_;
  std::shared_ptr<Mixer> mlp_;
};

class CharGpt final : public torch::nn::Module {
 public:
  CharGpt(std::int64_t characters, std::int64_t length)
      : wte_(register_module("wte", torch::nn::Embedding(characters, kGptWidth))),
        wpe_(register_module("wpe", torch::nn::Embedding(length, kGptWidth))),
        h_(register_module("h", std::make_shared<Row<GptBlock>>())),
        ln_f_(register_module("ln_f", make_norm())) {
    for (int i = 0; i < kBlocks; ++i) {
      h_->add(std::make_shared<GptBlock>());
    }
    lm_head_ = register_module(
        "lm_head", torch::nn::Linear(torch::nn::LinearOptions(kGptWidth, characters).bias(false)));
    initialise();
  }

  // `windows` are as in a CharacterSet. The scores of all characters, one row each.
  at::Tensor forward(const at::Tensor& windows) {
    const at::Tensor characters = windows.squeeze(1);
    const at::Tensor places = at::arange(characters.size(1), characters.options());
    // One after the other: layers are in the order in which they are read.
    const at::Tensor meanings = wte_(characters);
    const at::Tensor x = h_->forward(meanings + wpe_(places));
    return lm_head_(ln_f_(x)).flatten(0, 1);
  }

 private:
  // As GPT-2: so that scores are alike at first.
  void initialise() {
    constexpr double kDeviation = 0.02;
    for (const auto& item : named_parameters()) {
      if (item.value().dim() > 1) {
        torch::nn::init::normal_(item.value(), 0, kDeviation);
      } else if (item.key().ends_with("bias")) {
        torch::nn::init::zeros_(item.value());
      }
    }
  }

  torch::nn::Embedding wte_;
  torch::nn::Embedding wpe_;
  std::shared_ptr<Row<GptBlock>> h_;
  torch::nn::LayerNorm ln_f_;
  torch::nn::Linear lm_head_{nullptr};
};

}  // namespace

std::unique_ptr<Network> make_char_gpt(const SampleForm& form) {
  return network_of(std::make_shared<CharGpt>(form.words, form.shape.back()));
}

}  // namespace sluice
