#include "cli/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostList, FillsEachHostBeforeTheNext) {
  const auto hosts = hosts_in("# two machines\na slots=2 max_slots=4\n\nb:1\nc\n", 4);
  ASSERT_TRUE(hosts) << hosts.error().message();
  EXPECT_THAT(*hosts, ElementsAre("a", "a", "b", "c"));
  EXPECT_THAT(*hosts_in("a slots=9", 2), ElementsAre("a", "a"));
}

TEST(HostList, SaysWhatIsWrong) {
  EXPECT_THAT(hosts_in("a slots=2", 3).error().message(), HasSubstr("2 slots for 3 processes"));
  EXPECT_THAT(hosts_in("a slots=x", 1).error().message(), HasSubstr("slots=N"));
  EXPECT_THAT(hosts_in("a b", 1).error().message(), HasSubstr("expected a host"));
}

}  // namespace
}  // namespace sluice::cli
