#include "data/preparation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice {
namespace {

using nlohmann::json;

TEST(PreparationTest, IsWrittenAsJson) {
  const Preparation preparation{
      .mean = {72.5}, .deviation = {90}, .grey_weights = {}, .classes = {"cat \"x\"", "d\xff"}};
  const json written = json::parse(to_json_text("lenet", {1, 28, 28}, preparation));
  EXPECT_EQ(written, json::parse(R"({"model": "lenet", "sample_shape": [1, 28, 28],
      "normalisation": {"mean": [72.5], "deviation": [90.0]},
      "classes": ["cat \"x\"", "d\ufffd"]})"));
}

TEST(PreparationTest, HasTheWordsOfBothLanguages) {
  Preparation preparation;
  preparation.source_words = {"<padding>", "the"};
  preparation.target_words = {"<padding>", "\u0111\u00f3"};
  const json written = json::parse(to_json_text("sockeye", {2, 50}, preparation));
  EXPECT_EQ(written, json::parse(R"({"model": "sockeye", "sample_shape": [2, 50],
      "source_words": ["<padding>", "the"], "target_words": ["<padding>", "\u0111\u00f3"]})"));
}

TEST(PreparationTest, WhatIsNotKnownIsLeftOut) {
  const json written = json::parse(to_json_text("net.pt", {4}, {}));
  EXPECT_EQ(written, json::parse(R"({"model": "net.pt", "sample_shape": [4]})"));
}

}  // namespace
}  // namespace sluice
