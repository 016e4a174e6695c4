// Trains on a parallel corpus through the program itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/command.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class CliTextThreadsTest : public testing::Test {
 protected:
  // Word by word, as in a dictionary; sentences of 1 to 14 words.
  CliTextThreadsTest() {
    for (const std::string part : {"train", "dev"}) {
      std::string source;
      std::string target;
      for (int i = 0; i < (part == "train" ? 42 : 14); ++i) {
        for (int j = 0; j <= i % 14; ++j) {
          source += "w" + std::to_string((i + j) % 9) + " ";
          target += "v" + std::to_string((i + j) % 9) + " ";
        }
        source += "\n";
        target += "\n";
      }
      folder_.write(part + ".de", source);
      folder_.write(part + ".en", target);
    }
  }

  Outcome train(const std::string& more) {
    return run_command("'" SLUICE_BINARY
                       "' train --data text --data-dir . --source de --target en "
                       "--model sockeye --workers 2 --batch 5 --kernels native --json " +
                           more,
                       folder_);
  }

  TemporaryFolder folder_;
};

TEST_F(CliTextThreadsTest, SockeyeTrainsOnACorpus) {
  const Outcome ahead = train("");
  if (ahead.code == 2 && ahead.err.find("LibTorch") != std::string::npos) {
    SKIP_AS_INAPPLICABLE(ahead.err);
  }
  ASSERT_EQ(ahead.code, 0) << ahead.err;
  const json summary = json::parse(ahead.out);
  // Sentences with their end marks are 2 to 9, or 10 to 15 long: 24 and 18 pairs.
  EXPECT_EQ(summary.at("iterations"), 3 + 2);
  EXPECT_TRUE(summary.contains("test_accuracy"));
  const json few = json::parse(train("--loaders 0 --vocabulary 5 --iterations 1").out);
  EXPECT_EQ(summary.at("parameters").get<int>() - few.at("parameters").get<int>(),
            4 * (512 + 512 + 513));
}

TEST_F(CliTextThreadsTest, TheVocabulariesAreSavedWithTheModel) {
  const Outcome outcome = train("--iterations 1 --vocabulary 5 --save trained");
  if (outcome.code == 2 && outcome.err.find("LibTorch") != std::string::npos) {
    SKIP_AS_INAPPLICABLE(outcome.err);
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json saved = json::parse(folder_.read("trained/model.json"));
  for (const auto& [key, initial] : {std::pair{"source_words", "w"}, {"target_words", "v"}}) {
    const auto words = saved.at(key).get<std::vector<std::string>>();
    ASSERT_EQ(words.size(), 4U + 5) << key;
    EXPECT_THAT(words[4], testing::StartsWith(initial));
  }
}

// A guess at random has a loss of 5.5, and the frequencies of the characters alone of about 3.
TEST_F(CliTextThreadsTest, AGptLearnsTheCharactersOfLicences) {
  const Outcome outcome = run_command(
      "'" SLUICE_BINARY
      "' train --data characters --model char-gpt --workers 2 --batch 8 --kernels native "
      "--optimizer adamw --lr 0.005 --iterations 60 --test-samples 50 --json",
      folder_);
  if (outcome.code == 2 && outcome.err.find("LibTorch") != std::string::npos) {
    SKIP_AS_INAPPLICABLE(outcome.err);
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json summary = json::parse(outcome.out);
  EXPECT_EQ(summary.at("parameters"), 134'912);
  EXPECT_LT(summary.at("test_loss"), 3);
}

TEST_F(CliTextThreadsTest, WhatDoesNotFitIsOneLineAndCodeTwo) {
  folder_.write("train.en", "v1\n");
  const Outcome outcome = train("");
  if (outcome.err.find("LibTorch") != std::string::npos) {
    SKIP_AS_INAPPLICABLE(outcome.err);
  }
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("train.en: offset 3: expected as many lines as in "));
  EXPECT_THAT(train("--model lenet").err,
              HasSubstr("sluice: data: model lenet does not take text"));
  EXPECT_THAT(train("--model char-gpt").err,
              HasSubstr("sluice: data: model char-gpt does not take text"));
  EXPECT_THAT(
      run_command("'" SLUICE_BINARY "' train --data characters --model sockeye", folder_).err,
      HasSubstr("sluice: data: model sockeye does not take characters; choose char-gpt"));
  EXPECT_THAT(run_command("'" SLUICE_BINARY "' train --data text --model sockeye", folder_).err,
              HasSubstr("sluice: data-dir: is missing; data text needs"));
  EXPECT_THAT(run_command("'" SLUICE_BINARY "' train --vocabulary 7", folder_).err,
              HasSubstr("sluice: --vocabulary: is for --data text only"));
}

}  // namespace
}  // namespace sluice
