#include "torch/models/parts.h"

#include <torch/nn/init.h>

namespace sluice {

torch::nn::Conv2d make_convolution(const ConvShape& shape) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(shape.in, shape.out, shape.kernel)
                               .stride(shape.stride)
                               .padding(shape.padding)
                               .bias(false));
}

ConvNorm::ConvNorm(const ConvShape& shape)
    : conv_(register_module("conv", make_convolution(shape))),
      bn_(register_module(
          "bn", torch::nn::BatchNorm2d(torch::nn::BatchNorm2dOptions(shape.out).eps(0.001)))) {}

at::Tensor ConvNorm::forward(const at::Tensor& x) { return bn_(conv_(x)).relu_(); }

void initialise_for_rectifiers(torch::nn::Module& module) {
  for (const auto& part : module.modules(false)) {
    if (auto* conv = part->as<torch::nn::Conv2dImpl>()) {
      torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
      if (conv->bias.defined()) {
        torch::nn::init::zeros_(conv->bias);
      }
    }
  }
}

}  // namespace sluice
