#include "torch/dropout.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(DropoutTest, ZeroesItsShareAndScalesUpTheRest) {
  Dropout dropout(0.75);
  dropout->reseed(1);
  const at::Tensor y = dropout(at::ones({100, 100}));
  const auto kept = y.ne(0).sum().item().toLong();
  EXPECT_NEAR(static_cast<double>(kept), 2500, 250);
  EXPECT_EQ(y.eq(4).sum().item().toLong(), kept);
}

TEST(DropoutTest, IsFixedByItsSeed) {
  Dropout dropout(0.5);
  Dropout other(0.5);
  const at::Tensor x = at::ones({50});
  dropout->reseed(7);
  other->reseed(7);
  const at::Tensor first = dropout(x);
  EXPECT_TRUE(other(x).equal(first));
  EXPECT_FALSE(dropout(x).equal(first));
  dropout->reseed(7);
  EXPECT_TRUE(dropout(x).equal(first));
}

TEST(DropoutTest, LeavesAllAsItIsInAnEvaluation) {
  Dropout dropout(0.5);
  dropout->eval();
  const at::Tensor x = at::ones({50});
  EXPECT_TRUE(dropout(x).equal(x));
}

}  // namespace
}  // namespace sluice
