#include "base/enum_set.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

enum class Colour : unsigned char { kRed, kGreen, kBlue };

TEST(EnumSet, HasWhatItWasMadeOf) {
  constexpr EnumSet<Colour> kSome{Colour::kRed, Colour::kBlue};
  static_assert(kSome.contains(Colour::kRed));
  EXPECT_FALSE(kSome.contains(Colour::kGreen));
  EXPECT_TRUE(kSome.contains(Colour::kBlue));
  EXPECT_FALSE(EnumSet<Colour>{}.contains(Colour::kRed));
}

}  // namespace
}  // namespace sluice
