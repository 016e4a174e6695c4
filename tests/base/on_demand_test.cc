#include "base/on_demand.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(OnDemandTest, ElementsBeginAlikeAndKeepWhatTheyGet) {
  OnDemand<int> array(1000, 7);
  EXPECT_EQ(array[999], 7);
  array[999] = 1;
  array[0] = 2;
  EXPECT_EQ(array[999], 1);
  EXPECT_EQ(array[0], 2);
  EXPECT_EQ(array[500], 7);
}

TEST(OnDemandTest, TakesMemoryForWhatIsUsed) {
  OnDemand<int> array(100'000, 0);
  EXPECT_EQ(array.allocated(), 0U);
  array[3] = 1;
  array[70'000] = 1;
  EXPECT_LE(array.allocated(), 64U);
}

}  // namespace
}  // namespace sluice
