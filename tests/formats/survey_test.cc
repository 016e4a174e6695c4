#include "formats/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::HasSubstr;

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

TEST(RankInfo, ComesBackFromJson) {
  const RankInfo info{"h\"1", {{"eth0", "10.0.0.1", 8, 2.5}, {"docker0", "172.17.0.1", 16, {}}}};
  const auto read = rank_info_of(Json::parse(to_json(info).dump()));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, info);
}

TEST(RankInfo, WhatCannotBeIsRefused) {
  const auto refusal = [](const std::string& interfaces) {
    const auto info =
        rank_info_of(Json::parse(R"({"host": "a", "interfaces": )" + interfaces + "}"));
    return info ? "" : info.error().message();
  };
  const auto with = [&](const std::string& address, int prefix, const std::string& gbps) {
    return refusal(R"([{"name": "eth0", "address": ")" + address + R"(", "prefix": )" +
                   std::to_string(prefix) + R"(, "gbps": )" + gbps + "}]");
  };
  EXPECT_EQ(with("10.0.0.1", 8, "null"), "");
  EXPECT_THAT(with("10.0.0.1", 40, "null"), HasSubstr("prefix 40"));
  EXPECT_THAT(with("10.0.0.1", -1, "null"), HasSubstr("prefix -1"));
  EXPECT_THAT(with("10.0.0", 8, "null"), HasSubstr("not an IPv4 address"));
  EXPECT_THAT(with("10.0.0.1", 8, "-1"), HasSubstr("-1 Gb/s"));
  EXPECT_NE(with("10.0.0.1", 8, "\"x\""), "");
  EXPECT_NE(refusal("[3]"), "");
  EXPECT_NE(refusal("3"), "");
  EXPECT_FALSE(rank_info_of(Json(3)));
}

TEST(Survey, HostsOfOneNameMayBeTwoMachines) {
  Survey survey;
  survey.ranks = {RankInfo{"localhost", {}, "b1"}, RankInfo{"localhost", {}, "b2"},
                  RankInfo{"localhost", {}, "b1"}};
  EXPECT_FALSE(survey.same_machine(0, 1));
  EXPECT_TRUE(survey.same_machine(0, 2));
}

TEST(Survey, RanksOfUnknownHostsAreOnMachinesOfTheirOwn) {
  Survey survey;
  survey.ranks = {RankInfo{"a", {}}, RankInfo{"a", {}}, RankInfo{"b", {}}, std::nullopt,
                  std::nullopt};
  EXPECT_TRUE(survey.same_machine(0, 1));
  EXPECT_FALSE(survey.same_machine(1, 2));
  EXPECT_FALSE(survey.same_machine(3, 4));
  EXPECT_TRUE(survey.same_machine(3, 3));
  EXPECT_EQ(survey.name(2), "rank 2 on b");
  EXPECT_EQ(survey.name(3), "rank 3");
}

}  // namespace
}  // namespace sluice
