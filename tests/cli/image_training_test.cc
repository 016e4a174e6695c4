// Trains on a folder of images through the program itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/image_files.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Two classes: dark and bright.
class CliImagesThreadsTest : public testing::Test {
 protected:
  CliImagesThreadsTest() {
    for (const std::string part : {"train", "val"}) {
      for (const std::string kind : {"bright", "dark"}) {
        std::filesystem::create_directories(folder_.path() / "data" / part / kind);
        for (std::uint64_t i = 0; i < (part == "train" ? 9U : 3U); ++i) {
          Bytes8 pixels = noise(std::size_t{40} * 36 * 3, i);
          for (std::uint8_t& value : pixels) {
            value = static_cast<std::uint8_t>(kind == "dark" ? value / 4 : 255 - value / 4);
          }
          const std::string name = "data/" + part + "/" + kind + "/" + std::to_string(i);
          if (i % 2 == 0) {
            folder_.write(name + ".jpg", jpeg_file(40, 36, pixels));
          } else {
            folder_.write(name + ".png", png_file(40, 36, pixels));
          }
        }
      }
    }
  }

  Outcome train(const std::string& more) {
    return run_command("'" SLUICE_BINARY
                       "' train --data images --data-dir data --workers 2 --batch 4 "
                       "--kernels native --json " +
                           more,
                       folder_);
  }
  static bool lacks_models(const Outcome& outcome) {
    return outcome.code == 2 && outcome.err.find("LibTorch") != std::string::npos;
  }

  TemporaryFolder folder_;
};

TEST_F(CliImagesThreadsTest, LoadingAheadTrainsTheSame) {
  const Outcome ahead = train("--model cifar100-cnn --epochs 3 --run ahead");
  if (lacks_models(ahead)) {
    SKIP_AS_INAPPLICABLE(ahead.err);
  }
  ASSERT_EQ(ahead.code, 0) << ahead.err;
  const json summary = json::parse(ahead.out);
  EXPECT_EQ(summary.at("iterations"), 9);  // 18 images: 9 per worker, in batches of 3
  const json& loading = summary.at("loading");
  // Two workers train, one evaluates: 6 images in batches of 4, after each epoch.
  EXPECT_EQ(loading.at("batches"), 2 * 9 + 3 * 2);
  EXPECT_GT(loading.at("batches_ahead"), 0);
  EXPECT_GT(loading.at("loading_s"), 0);
  EXPECT_THAT(folder_.read("ahead/metrics.jsonl"), HasSubstr("\"samples\":54"));

  const json alone = json::parse(train("--model cifar100-cnn --epochs 3 --loaders 0").out);
  EXPECT_EQ(alone.at("parameters_hash"), summary.at("parameters_hash"));
  EXPECT_EQ(alone.at("test_loss"), summary.at("test_loss"));
  EXPECT_EQ(alone.at("loading").at("batches_ahead"), 0);
  const json plain = json::parse(train("--model cifar100-cnn --epochs 3 --augment=false").out);
  EXPECT_NE(plain.at("parameters_hash"), summary.at("parameters_hash"));
}

TEST_F(CliImagesThreadsTest, AnyNetTakesImagesInItsOwnSize) {
  const Outcome grey = train("--model lenet --iterations 2");
  if (lacks_models(grey)) {
    SKIP_AS_INAPPLICABLE(grey.err);
  }
  EXPECT_EQ(grey.code, 0) << grey.err;
  const Outcome small = train("--model resnet18 --input-size 32 --iterations 2");
  EXPECT_EQ(small.code, 0) << small.err;
  const Outcome wrong = train("--model sockeye");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("sluice: data: model sockeye does not take images"));
}

// The first image is read before there is a learner, so the model is not at fault.
TEST_F(CliImagesThreadsTest, ACorruptFirstImageIsNotBlamedOnTheModel) {
  const std::string name = "data/train/bright/0.jpg";
  folder_.write(name, folder_.read(name).substr(0, 300));
  const Outcome outcome = train("--model cifar100-cnn");
  if (lacks_models(outcome)) {
    SKIP_AS_INAPPLICABLE(outcome.err);
  }
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("sluice: " + name + ": offset "));
  EXPECT_THAT(outcome.err, HasSubstr("the image is corrupt: replace or remove it"));
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("model")));
}

TEST_F(CliImagesThreadsTest, ASavedModelComesWithItsNormalisationAndClasses) {
  const Outcome outcome = train("--model cifar100-cnn --iterations 1 --save trained");
  if (lacks_models(outcome)) {
    SKIP_AS_INAPPLICABLE(outcome.err);
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json saved = json::parse(folder_.read("trained/model.json"));
  EXPECT_EQ(saved.at("model"), "cifar100-cnn");
  EXPECT_EQ(saved.at("sample_shape"), (json{3, 32, 32}));
  EXPECT_EQ(saved.at("classes"), (json{"bright", "dark"}));
  EXPECT_EQ(saved.at("normalisation").at("mean").size(), 3U);
  EXPECT_NEAR(saved.at("normalisation").at("deviation").at(0).get<double>(), 255 * 0.229, 1e-3);
}

TEST_F(CliImagesThreadsTest, ACorruptImageEndsTheRunWithCodeTwo) {
  const std::string name = "data/val/dark/1.png";
  folder_.write(name, folder_.read(name).substr(0, 1000));
  for (const std::string loaders : {"0", "2"}) {
    const Outcome outcome = train("--model cifar100-cnn --loaders " + loaders);
    if (lacks_models(outcome)) {
      SKIP_AS_INAPPLICABLE(outcome.err);
    }
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("sluice: " + name + ": offset 33: expected a chunk of "));
    EXPECT_THAT(outcome.err, HasSubstr("of a PNG, found 967"));
  }
}

}  // namespace
}  // namespace sluice
