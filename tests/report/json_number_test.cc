#include "report/json_number.h"

#include <gtest/gtest.h>

#include <limits>

namespace sluice {
namespace {

TEST(JsonNumberTest, KeepsWhatIsNotFinite) {
  using Limits = std::numeric_limits<double>;
  EXPECT_EQ(json_number(0.5).dump(), "0.5");
  EXPECT_EQ(json_number(Limits::quiet_NaN()).dump(), "\"NaN\"");
  EXPECT_EQ(json_number(Limits::infinity()).dump(), "\"Infinity\"");
  EXPECT_EQ(json_number(-Limits::infinity()).dump(), "\"-Infinity\"");
}

}  // namespace
}  // namespace sluice
