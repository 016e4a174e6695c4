#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace sluice {
namespace {

TEST(ResultTest, HoldsAValue) {
  const Result<std::string> result(std::string("here"));
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, "here");
  EXPECT_EQ(result->size(), 4U);
}

TEST(ResultTest, HoldsTheReasonWhyThereIsNone) {
  const Result<int> result = Error("key `hosts` is missing").within("a.toml");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(), "a.toml: key `hosts` is missing");
}

TEST(ResultTest, GivesAwayWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 5);
}

TEST(ResultTest, CanBeMereSuccess) {
  EXPECT_TRUE(Result<void>());
  const Result<void> failure = Error("disk full");
  ASSERT_FALSE(failure);
  EXPECT_EQ(failure.error().message(), "disk full");
}

}  // namespace
}  // namespace sluice
