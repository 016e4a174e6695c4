#include "torch/profiling/roofline.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "torch/module_network.h"
#include "torch/network_setup.h"

namespace sluice {
namespace {

// Two fully connected layers with a view, an in-place operator and a new tensor between them.
class TwoLayers final : public torch::nn::Module {
 public:
  TwoLayers()
      : first_(register_module("first",
                               torch::nn::Linear(torch::nn::LinearOptions(6, 5).bias(false)))),
        second_(register_module("second", torch::nn::Linear(5, 3))) {}

  at::Tensor forward(const at::Tensor& x) { return second_(first_(x.flatten(1)).relu_().mul(2)); }
  at::Tensor loss(const at::Tensor& x, const at::Tensor& /*answers*/) { return forward(x); }

 private:
  torch::nn::Linear first_;
  torch::nn::Linear second_;
};

TEST(RooflineTest, WhatComesBeforeTrainedParametersNeedsNoBackwardPass) {
  auto module = std::make_shared<TwoLayers>();
  module->named_parameters()["first.weight"].set_requires_grad(false);
  const auto network = network_of(module);
  const at::Tensor samples = at::ones({4, 2, 3});
  const Layout layout = record_layout(*network, samples, {});
  const auto operators = operators_by_layer(*network, layout, samples, {});
  ASSERT_EQ(operators.size(), 1U);
  ASSERT_EQ(operators[0].size(), 4U);
  EXPECT_FALSE(operators[0][0].trained);
  EXPECT_FALSE(operators[0][2].trained);
  EXPECT_TRUE(operators[0][3].trained);
}

TEST(RooflineTest, CountsWhatOperatorsReadWriteAndCompute) {
  const auto network = network_of(std::make_shared<TwoLayers>());
  const at::Tensor samples = at::ones({4, 2, 3});
  const Layout layout = record_layout(*network, samples, {});
  ASSERT_EQ(layout.layers.size(), 2U);
  const auto operators = operators_by_layer(*network, layout, samples, {});
  ASSERT_EQ(operators.size(), 2U);
  // flatten is a view; the product reads 4 x 6 and writes 4 x 5; two more operators on 4 x 5.
  ASSERT_EQ(operators[0].size(), 3U);
  EXPECT_EQ(operators[0][0].flops, 2 * 4 * 6 * 5);
  EXPECT_EQ(operators[0][0].parameters, kFloatBytes * 6 * 5);
  EXPECT_EQ(operators[0][0].activations, kFloatBytes * (4 * 6 + 4 * 5));
  EXPECT_EQ(operators[0][1].flops, 0);
  EXPECT_EQ(operators[0][1].parameters, 0);
  EXPECT_EQ(operators[0][1].activations, kFloatBytes * (4 * 5 + 4 * 5));
  EXPECT_EQ(operators[0][2].activations, kFloatBytes * (4 * 5 + 4 * 5));
  ASSERT_EQ(operators[1].size(), 1U);
  EXPECT_EQ(operators[1][0].flops, 2 * 4 * 5 * 3);
  EXPECT_EQ(operators[1][0].parameters, kFloatBytes * (5 * 3 + 3));
  EXPECT_EQ(operators[1][0].activations, kFloatBytes * (4 * 5 + 4 * 3));
}

}  // namespace
}  // namespace sluice
