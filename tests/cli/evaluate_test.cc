// A saved model as the start of a training, and evaluated by itself.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"
#include "support/short_training.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class EvaluateCliThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kHasModels) {
      SKIP_AS_INAPPLICABLE("built without LibTorch");
    }
    write_some_clothes(folder_.path() / "clothes");
  }

  json summary(const std::string& arguments) const {
    const Outcome outcome = sluice(arguments + " --data-dir clothes --batch 8 --json", folder_);
    EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  json trained(const std::string& arguments) const {
    return summary("train --workers 2 --kernels native --iterations 4 " + arguments);
  }

  TemporaryFolder folder_;
};

void expect_same_results(const json& evaluated, const json& trained) {
  for (const char* key : {"test_loss", "test_accuracy", "parameters", "parameters_hash"}) {
    EXPECT_EQ(evaluated.at(key), trained.at(key)) << key;
  }
}

TEST_F(EvaluateCliThreadsTest, TellsWhatTheTrainingToldAtItsEnd) {
  for (const std::string preset : {"p3", "diloco"}) {
    const json end = trained(
        fmt::format("--preset {0} --save {0}-saved --checkpoint {0}-kept --run {0}-run", preset));
    for (const char* what : {"saved", "saved/model.safetensors", "kept", "kept/iteration-4"}) {
      const json evaluated = summary(fmt::format("evaluate --init {}-{}", preset, what));
      expect_same_results(evaluated, end);
      EXPECT_EQ(evaluated.at("test_samples"), 100);
    }
  }
}

TEST_F(EvaluateCliThreadsTest, ATrainingBeginsWhereAnotherEnded) {
  const json first = trained("--save saved --run first");
  const json further = trained("--init saved --lr 0 --seed 5 --run further");
  EXPECT_EQ(further.at("parameters_hash"), first.at("parameters_hash"));
  EXPECT_EQ(further.at("test_loss"), first.at("test_loss"));
  EXPECT_EQ(further.at("init"), "saved/model.safetensors");
  EXPECT_NE(trained("--init saved --run on").at("parameters_hash"), first.at("parameters_hash"));
}

TEST_F(EvaluateCliThreadsTest, WithoutAFileItIsTheStartOfATraining) {
  const json still = trained("--lr 0 --run still");
  expect_same_results(summary("evaluate"), still);
}

TEST_F(EvaluateCliThreadsTest, AModelThatDoesNotFitIsRefused) {
  trained("--save saved --run first --checkpoint kept");
  const std::string data = " --data-dir clothes --batch 8";
  for (const char* command : {"train --run other", "evaluate"}) {
    const auto refused = [&](const std::string& arguments) {
      const Outcome outcome = sluice(command + data + arguments, folder_);
      EXPECT_EQ(outcome.code, 2) << outcome.err;
      return outcome.err;
    };
    EXPECT_THAT(refused(" --model mlp --init saved"), HasSubstr("is not a file of this model"));
    EXPECT_THAT(refused(" --model mlp --init kept"), HasSubstr("is not a file of this model"));
    EXPECT_THAT(refused(" --init nowhere"), HasSubstr("init: nowhere"));
  }
  EXPECT_THAT(sluice("evaluate --model replay:p4000/vgg19 --init saved", folder_).err,
              HasSubstr("a replay learns nothing"));
}

TEST_F(EvaluateCliThreadsTest, PrintsATable) {
  trained("--save saved --run first");
  const Outcome outcome = sluice("evaluate --data-dir clothes --init saved", folder_);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("test accuracy"));
  EXPECT_THAT(outcome.out, HasSubstr("saved/model.safetensors"));
}

}  // namespace
}  // namespace sluice
