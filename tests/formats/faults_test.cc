#include "formats/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto faults = parse_faults(text, "f.toml", 3);
  return faults ? "" : faults.error().message();
}

TEST(FaultsFile, HasFaultsInTheOrderOfTime) {
  const auto faults = parse_faults(
      "detect_s = 1\nrestart_s = 5.5\ncheckpoint_s = 0.25\nkill_every_h = 2\niterations = 7\n"
      "[[fault]]\nkind = 'slow-link'\nhost = 2\nat_s = 4\nfor_s = 3\nfactor = 10\n"
      "[[fault]]\nkind = 'kill'\nhost = 1\nat_s = 2\n",
      "f.toml", 3);
  ASSERT_TRUE(faults) << faults.error().message();
  ASSERT_EQ(faults->all.size(), 2U);
  EXPECT_EQ(faults->all[0], (Fault{Fault::Kind::kKill, HostId(1), from_us(2e6)}));
  EXPECT_EQ(faults->all[1],
            (Fault{Fault::Kind::kSlowLink, HostId(2), from_us(4e6), from_us(3e6), 10}));
  EXPECT_EQ(faults->detection, from_us(1e6));
  EXPECT_EQ(faults->restart, from_us(5.5e6));
  EXPECT_EQ(faults->checkpoint, from_us(0.25e6));
  EXPECT_EQ(faults->iterations, 7);
  EXPECT_DOUBLE_EQ(faults->kill_every_s, 7200);
}

TEST(FaultsFile, SaysWhatIsWrong) {
  EXPECT_EQ(error_of(""), "");
  EXPECT_THAT(error_of("[[fault]]\nkind = 'kill'\nhost = 3\nat_s = 1\n"),
              HasSubstr("f.toml: fault[0]: host: is 3, expected an integer from 0 to 2"));
  EXPECT_THAT(error_of("[[fault]]\nkind = 'melt'\nhost = 0\nat_s = 1\n"),
              HasSubstr("expected one of kill, stop, slow-host, slow-link, cut-link, delay"));
  EXPECT_THAT(error_of("[[fault]]\nkind = 'stop'\nhost = 0\nat_s = 1\n"), HasSubstr("for_s"));
  EXPECT_THAT(error_of("[[fault]]\nkind = 'kill'\nhost = 0\nat_s = 1\nfor_s = 1\n"),
              HasSubstr("for_s"));
  EXPECT_THAT(error_of("[[fault]]\nkind = 'slow-host'\nhost = 0\nat_s = 1\nfor_s = 1\n"),
              HasSubstr("factor"));
  EXPECT_THAT(error_of("[[fault]]\nkind = 'delay'\nhost = 0\nat_s = 1\nfor_s = 1\n"),
              HasSubstr("by_s"));
  EXPECT_THAT(error_of("fault = [1]\n"), HasSubstr("expected a table [[fault]]"));
  EXPECT_THAT(error_of("detect_s = -1\n"), HasSubstr("detect_s"));
  EXPECT_THAT(error_of("detect = 1\n"), HasSubstr("detect"));
}

}  // namespace
}  // namespace sluice
