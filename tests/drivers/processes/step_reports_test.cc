#include "drivers/processes/step_reports.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice {
namespace {

TEST(StepReportsTest, SurviveTheWay) {
  const std::vector<StepReport> steps{
      {2, 7, 0.25, from_us(100)},
      {0, 8, std::nullopt, from_us(130)},
      {1, 9, std::numeric_limits<double>::quiet_NaN(), from_us(150)},
  };
  const auto decoded = decode_steps(encode(steps, from_us(150)), 3, from_us(1150));
  ASSERT_TRUE(decoded);
  ASSERT_EQ(decoded->size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ((*decoded)[i].rank, steps[i].rank);
    EXPECT_EQ((*decoded)[i].iteration, steps[i].iteration);
    EXPECT_EQ((*decoded)[i].at, steps[i].at + from_us(1000)) << "on the clock of the receiver";
  }
  EXPECT_EQ((*decoded)[0].loss, 0.25);
  EXPECT_EQ((*decoded)[1].loss, std::nullopt);
  EXPECT_TRUE(std::isnan(*(*decoded)[2].loss));
  EXPECT_TRUE(decode_steps("", 3, Time(0))->empty());
}

TEST(StepReportsTest, MalformedOnesAreRefused) {
  for (const std::string text :
       {"x", "0", "0 1", "0 1 -", "0 1 - x", "3 1 - 5", "0 -1 - 5", "0 1 - -5", "0 1 x 5",
        "0 1 2.5 5", "0 1 - 5 x", "0 1 - 9223372036854775807", "0 1 - 99999999999999999999"}) {
    EXPECT_FALSE(decode_steps(text, 3, Time(0))) << text;
  }
}

}  // namespace
}  // namespace sluice
