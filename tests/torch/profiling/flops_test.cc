#include "torch/profiling/flops.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(FlopsTest, CountsConvolutionsByTheirOutput) {
  // 4 x 3 pixels of 6 filters over 2 channels of 3 x 5 each, for 7 images.
  const at::Tensor images = at::ones({7, 2, 8, 10});
  const at::Tensor filters = at::ones({6, 2, 3, 5});
  EXPECT_EQ(count_flops([&] {
              at::conv2d(images, filters, {}, 2, at::IntArrayRef({1, 0}));
            }),
            2 * 7 * (4 * 3) * 6 * (2 * 3 * 5));
  // Two groups: a filter sees half of the channels. A dilated filter of 3 covers 5.
  const at::Tensor halves = at::ones({6, 1, 3, 3});
  EXPECT_EQ(count_flops([&] {
              at::conv2d(images, halves, {}, 1, at::IntArrayRef({0, 0}), 2, 2);
            }),
            2 * 7 * (4 * 6) * 6 * (1 * 3 * 3));
}

TEST(FlopsTest, CountsMatrixProducts) {
  const at::Tensor x = at::ones({5, 4, 3});
  const at::Tensor weight = at::ones({8, 3});
  EXPECT_EQ(count_flops([&] { at::linear(x, weight, at::ones({8})); }), 2 * (5 * 4) * 3 * 8);
  EXPECT_EQ(count_flops([&] { at::linear(x, weight); }), 2 * (5 * 4) * 3 * 8);
  EXPECT_EQ(count_flops([&] { at::bmm(x, at::ones({5, 3, 6})); }), 2 * 5 * (4 * 3 * 6));
  EXPECT_EQ(count_flops([&] { x.relu(); }), 0);
}

}  // namespace
}  // namespace sluice
