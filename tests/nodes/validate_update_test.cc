#include "nodes/validate_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodes/presets.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string update_refusal(const UpdateRule& rule, std::string_view preset) {
  const auto valid = validate(rule, find_preset(preset)->strategy);
  return valid ? "" : valid.error().message();
}

UpdateRule rule_by(Optimizer optimizer) {
  UpdateRule rule;
  rule.optimizer = optimizer;
  return rule;
}

TEST(ValidateUpdate, EveryOptimizerGoesWithWorkersInLockStepAndWithLocalSteps) {
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdam, Optimizer::kAdamW,
                                    Optimizer::kAdagrad, Optimizer::kRmsprop}) {
    for (const char* preset : {"p3", "kvstore", "wfbp", "p3-allreduce", "ar-sgd", "easgd", "gosgd",
                               "ad-psgd", "pipe-sgd"}) {
      EXPECT_EQ(update_refusal(rule_by(optimizer), preset), "") << preset;
    }
  }
}

// n updates with a share of the gradient each are one update only by SGD.
TEST(ValidateUpdate, SharesOfABatchAreForSgdOnly) {
  for (const char* preset : {"asp", "ssp"}) {
    EXPECT_EQ(update_refusal({}, preset), "");
    UpdateRule nesterov;
    nesterov.options.nesterov = true;
    EXPECT_EQ(update_refusal(nesterov, preset), "");
    EXPECT_THAT(update_refusal(rule_by(Optimizer::kAdam), preset),
                HasSubstr("optimizer adam does not go with algorithm " + std::string(preset) +
                          ": each worker's gradient comes by itself"));
    UpdateRule clipping;
    clipping.clip_value = 1;
    EXPECT_THAT(update_refusal(clipping, preset),
                HasSubstr("clip-value does not go with algorithm"));
  }
}

TEST(ValidateUpdate, SparseGradientsAreForPlainSgd) {
  EXPECT_EQ(update_refusal({}, "bsp+dgc"), "");
  EXPECT_THAT(update_refusal(rule_by(Optimizer::kAdamW), "bsp+dgc"),
              HasSubstr("optimizer adamw does not go with codec dgc: its workers accumulate the "
                        "momentum of plain SGD"));
  UpdateRule nesterov;
  nesterov.options.nesterov = true;
  EXPECT_THAT(update_refusal(nesterov, "bsp+dgc"), HasSubstr("sgd with nesterov or dampening"));
  UpdateRule clipping;
  clipping.clip_norm = 1;
  EXPECT_THAT(update_refusal(clipping, "bsp+dgc"), HasSubstr("take dgc-clip-norm"));
}

TEST(ValidateUpdate, LambNeedsWholeLayers) {
  const UpdateRule lamb = rule_by(Optimizer::kLamb);
  for (const char* preset : {"wfbp", "ar-sgd", "mg-wfbp"}) {
    EXPECT_EQ(update_refusal(lamb, preset), "") << preset;
  }
  EXPECT_THAT(update_refusal(lamb, "p3"),
              HasSubstr("optimizer lamb does not go with partition slice: it needs the norm of a "
                        "whole layer"));
  EXPECT_THAT(update_refusal(lamb, "kvstore"), HasSubstr("take partition layer or whole"));
  Strategy layers = find_preset("p3")->strategy;
  layers.partition = Partition::kLayer;
  EXPECT_TRUE(validate(lamb, layers));
  Strategy pipe = find_preset("pipe-sgd")->strategy;
  pipe.partition = Partition::kLayer;
  EXPECT_THAT(validate(lamb, pipe).error().message(), HasSubstr("algorithm pipe-sgd"));
}

TEST(ValidateUpdate, ANormNeedsTheWholeMeanGradient) {
  UpdateRule rule;
  rule.clip_norm = 1;
  for (const char* preset : {"wfbp", "ar-sgd", "mg-wfbp", "p3-allreduce", "diloco"}) {
    EXPECT_EQ(update_refusal(rule, preset), "") << preset;
  }
  EXPECT_THAT(update_refusal(rule, "p3"), HasSubstr("take update worker"));
  Strategy p3 = find_preset("p3")->strategy;
  p3.update = Update::kWorker;
  EXPECT_TRUE(validate(rule, p3));
  EXPECT_THAT(update_refusal(rule, "easgd"), HasSubstr("before the first update"));
  rule.clip_value = 1;
  EXPECT_THAT(update_refusal(rule, "wfbp"), HasSubstr("take one of them"));
}

TEST(ValidateUpdate, WhatAnAllReduceSumsFirst) {
  EXPECT_EQ(sums_first({}), SumsFirst::kSegment);
  EXPECT_EQ(sums_first(rule_by(Optimizer::kLamb)), SumsFirst::kChunk);
  UpdateRule rule = rule_by(Optimizer::kLamb);
  rule.clip_norm = 1;
  EXPECT_EQ(sums_first(rule), SumsFirst::kModel);
}

}  // namespace
}  // namespace sluice
