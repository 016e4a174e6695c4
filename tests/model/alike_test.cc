#include "model/alike.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(AlikeTest, NamesTheSettingThatDiffers) {
  const Json first{{"iterations", 5}, {"momentum", 0.9}, {"preset", "p3"}};
  EXPECT_EQ(difference(first, first), "");
  Json other = first;
  other["momentum"] = 0.5;
  EXPECT_EQ(difference(other, first),
            "has momentum = 0.5, but rank 0 has 0.9; start all with the same settings");
  EXPECT_EQ(difference(Json{{"iterations", 5}}, first),
            "has momentum = null, but rank 0 has 0.9; start all with the same settings");
}

}  // namespace
}  // namespace sluice
