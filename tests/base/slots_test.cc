#include "base/slots.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(SlotsTest, NumbersAreReused) {
  Slots<std::string> slots;
  const std::uint32_t a = slots.put("a");
  const std::uint32_t b = slots.put("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(slots.take(a), "a");
  EXPECT_EQ(slots.put("c"), a);
  EXPECT_EQ(slots[a], "c");
  EXPECT_EQ(slots[b], "b");
}

TEST(SlotsTest, AClaimedItemIsNewOrAsItWasLeft) {
  Slots<std::string> slots;
  const std::uint32_t slot = slots.claim();
  EXPECT_EQ(slots[slot], "");
  slots[slot] = "left";
  slots.free(slot);
  EXPECT_EQ(slots.claim(), slot);
  EXPECT_EQ(slots[slot], "left");
}

}  // namespace
}  // namespace sluice
