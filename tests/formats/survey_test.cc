#include "formats/survey.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Interface, HasTheNetworkOfItsPrefix) {
  const auto network = [](const char* address, int prefix) {
    return Interface{"eth0", address, prefix, {}}.network();
  };
  EXPECT_EQ(network("10.77.3.9", 24), "10.77.3.0/24");
  EXPECT_EQ(network("192.168.130.7", 17), "192.168.128.0/17");
  EXPECT_EQ(network("172.31.255.255", 12), "172.16.0.0/12");
  EXPECT_EQ(network("10.1.2.3", 32), "10.1.2.3/32");
  EXPECT_EQ(network("10.1.2.3", 0), "0.0.0.0/0");
}

TEST(Member, ComesBackFromJson) {
  const Member member{"h\"1", {{"eth0", "10.0.0.1", 8, 2.5}, {"docker0", "172.17.0.1", 16, {}}}};
  EXPECT_EQ(member_of(Json::parse(to_json(member).dump())), member);
}

TEST(Survey, RanksOfUnknownHostsAreOnMachinesOfTheirOwn) {
  Survey survey;
  survey.members = {Member{"a", {}}, Member{"a", {}}, Member{"b", {}}, std::nullopt, std::nullopt};
  EXPECT_TRUE(survey.same_machine(0, 1));
  EXPECT_FALSE(survey.same_machine(1, 2));
  EXPECT_FALSE(survey.same_machine(3, 4));
  EXPECT_TRUE(survey.same_machine(3, 3));
  EXPECT_EQ(survey.name(2), "rank 2 on b");
  EXPECT_EQ(survey.name(3), "rank 3");
}

}  // namespace
}  // namespace sluice
