#include "nodes/validate_factored.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "nodes/presets.h"
#include "nodes/validate.h"
#include "nodes/validate_update.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// Why codec powersgd is refused for this preset; empty if it is not.
template <class Change>
std::string power_refusal(std::string_view preset, Change change) {
  Strategy strategy = find_preset(preset)->strategy;
  strategy.codec = Codec::kPowerSgd;
  strategy.error_feedback = true;
  change(strategy);
  const auto valid = validate(strategy);
  return valid ? "" : valid.error().message();
}

std::string power_refusal(std::string_view preset) {
  return power_refusal(preset, [](Strategy&) {});
}

TEST(ValidateFactored, GoesWithSumsOfLayersBetweenWorkers) {
  for (const char* preset : {"powersgd", "wfbp", "ar-sgd"}) {
    EXPECT_EQ(power_refusal(preset), "") << preset;
  }
  EXPECT_EQ(power_refusal("powersgd", [](Strategy& s) { s.power_rank = 1; }), "");
  EXPECT_EQ(power_refusal("powersgd", [](Strategy& s) { s.feedback_decay = 0.9; }), "");
  EXPECT_EQ(power_refusal("powersgd", [](Strategy& s) { s.local_aggregation = true; }), "");
  EXPECT_EQ(power_refusal("powersgd", [](Strategy& s) { s.collective = Collective::kDirect; }), "");
}

TEST(ValidateFactored, SaysWhyNot) {
  EXPECT_THAT(power_refusal("bsp"), HasSubstr("take exchange allreduce"));
  EXPECT_THAT(power_refusal("asp"), HasSubstr("take algorithm bsp"));
  EXPECT_THAT(power_refusal("pipe-sgd"), HasSubstr("take algorithm bsp"));
  EXPECT_THAT(power_refusal("local-sgd"), HasSubstr("take algorithm bsp"));
  EXPECT_THAT(power_refusal("gosgd"), HasSubstr("sends parameters"));
  EXPECT_THAT(power_refusal("easgd"), HasSubstr("sends parameters"));
  EXPECT_THAT(power_refusal("p3-allreduce"), HasSubstr("take partition layer"));
  EXPECT_THAT(power_refusal("mg-wfbp"), HasSubstr("take partition layer"));
  EXPECT_THAT(power_refusal("wfbp", [](Strategy& s) { s.collective = Collective::kNative; }),
              HasSubstr("take collective auto"));
  EXPECT_THAT(power_refusal("powersgd", [](Strategy& s) { s.error_feedback = false; }),
              HasSubstr("turn error feedback on"));
  EXPECT_THAT(power_refusal("powersgd", [](Strategy& s) { s.top_k.kept = 3; }),
              HasSubstr("take codec top-k"));
  EXPECT_THAT(power_refusal("wfbp",
                            [](Strategy& s) {
                              s.codec = Codec::kBf16;
                              s.power_rank = 2;
                            }),
              HasSubstr("take codec powersgd"));
}

TEST(ValidateFactored, AProfileHasMatrices) {
  std::vector<Layer> layers = lay_out({"a", "b"}, {100, 50});
  Strategy strategy = find_preset("powersgd")->strategy;
  EXPECT_THAT(check_matrices(strategy, layers).error().message(), HasSubstr("profile anew"));
  layers.back().matrix = {100, 5, 10};
  EXPECT_TRUE(check_matrices(strategy, layers)) << "whether it is worth factoring or not";
  strategy = find_preset("wfbp")->strategy;
  layers.back().matrix = {};
  EXPECT_TRUE(check_matrices(strategy, layers));
}

TEST(ValidateFactored, OptimizersOfWholeLayersAreRefused) {
  const Strategy strategy = find_preset("powersgd")->strategy;
  for (const OptimizerTraits& optimizer : kOptimizers) {
    UpdateRule rule{.rate = {.base = 0.1F}, .momentum = 0, .weight_decay = 0};
    rule.optimizer = optimizer.value;
    const auto valid = validate(rule, strategy);
    EXPECT_EQ(static_cast<bool>(valid), !optimizer.whole_layers) << optimizer.name;
    if (!valid) {
      EXPECT_THAT(valid.error().message(), HasSubstr("codec powersgd"));
    }
  }
}

}  // namespace
}  // namespace sluice
