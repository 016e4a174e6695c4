#include "protocol/payload.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace sluice {
namespace {

TEST(PayloadTest, IsAWord) { EXPECT_EQ(sizeof(Payload), sizeof(void*)); }

TEST(PayloadTest, MayBeASizeAlone) {
  const Payload none;
  const Payload some(Bytes{1} << 40U);
  const Payload copy = some;
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(copy.size(), Bytes{1} << 40U);
  EXPECT_FALSE(copy.has_data());
}

TEST(PayloadTest, ShowsTheBytesAndHoldsTheirOwnerUntilTheLastHolderLetsGo) {
  const std::array<float, 3> values{1, 2, 3};
  auto owner = std::make_shared<int>(7);
  const std::weak_ptr<int> watch = owner;
  {
    std::vector<Payload> holders{Payload(std::span(values), std::move(owner))};
    holders.push_back(holders.front());
    holders.front() = Payload(4);
    Payload moved = std::move(holders.back());
    holders.clear();
    moved = std::as_const(moved);
    EXPECT_FALSE(watch.expired());
    EXPECT_TRUE(moved.has_data());
    EXPECT_EQ(moved.size(), 3 * kFloatBytes);
    EXPECT_EQ(moved.values().data(), values.data());
    EXPECT_EQ(moved.bytes().size(), 12U);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(PayloadTest, NoBytesAreNoData) {
  EXPECT_FALSE(Payload(std::span<const float>(), nullptr).has_data());
}

}  // namespace
}  // namespace sluice
