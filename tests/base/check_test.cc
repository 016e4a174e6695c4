#include "base/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(CheckTest, PassesWhatHolds) { EXPECT_NO_THROW(check(true, "one is one")); }

TEST(CheckTest, NamesPlaceAndInvariant) {
  try {
    check(false, "two is one");
    FAIL() << "nothing was thrown";
  } catch (const InvariantError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("check_test.cc:"),
                                             testing::EndsWith(": two is one")));
  }
}

}  // namespace
}  // namespace sluice
