#include "planner/network_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Finding::Kind;

// Every rank on its own machine, all in one network.
Survey made_survey(std::size_t ranks) {
  Survey survey;
  for (std::size_t r = 0; r < ranks; ++r) {
    survey.ranks.push_back(
        RankInfo{"m" + std::to_string(r), {{"eth0", "10.7.0." + std::to_string(r + 1), 24, {}}}});
  }
  return survey;
}

// All links, with slightly different rates and latencies.
std::vector<Link> made_links(std::size_t ranks, double gbps) {
  std::vector<Link> links;
  for (std::size_t a = 0; a < ranks; ++a) {
    for (std::size_t b = 0; b < ranks; ++b) {
      const double wobble = static_cast<double>((a * 7 + b * 3) % 5) / 50;
      if (a != b) {
        links.push_back(
            {a, b, from_us(800), from_us(50 * (1 + wobble)), gbps * (1 - wobble), 0.01});
      }
    }
  }
  return links;
}

std::size_t any_ranks(int min) { return static_cast<std::size_t>(*rc::gen::inRange(min, 10)); }
double any_factor() { return static_cast<double>(*rc::gen::inRange(3, 100)); }

RC_GTEST_PROP(NetworkFindings, AnEvenNetworkIsFine, ()) {
  const std::size_t ranks = any_ranks(2);
  RC_ASSERT(findings_of(made_survey(ranks), made_links(ranks, any_factor())).empty());
}

RC_GTEST_PROP(NetworkFindings, ASlowHostIsNamedOnce, ()) {
  const std::size_t ranks = any_ranks(3);
  const std::size_t slow = *rc::gen::inRange<std::size_t>(0, ranks);
  const double factor = any_factor();
  auto links = made_links(ranks, 10);
  for (Link& link : links) {
    link.gbps /= link.from == slow || link.to == slow ? factor : 1;
  }
  const auto findings = findings_of(made_survey(ranks), links);
  RC_ASSERT(findings.size() == 1U);
  RC_ASSERT(findings[0].kind == Kind::kSlow);
  RC_ASSERT(findings[0].ranks == std::vector{slow});
  RC_ASSERT(findings[0].factor > 0.85 * factor);
  RC_ASSERT(findings[0].factor < 1.25 * factor);
  RC_ASSERT(findings[0].text.find("rank " + std::to_string(slow) + " on m") == 0);
}

RC_GTEST_PROP(NetworkFindings, ASlowLinkIsNamedWithItsDirection, ()) {
  const std::size_t ranks = any_ranks(2);
  auto links = made_links(ranks, 10);
  Link& slow = links[*rc::gen::inRange<std::size_t>(0, links.size())];
  slow.gbps /= any_factor();
  const auto findings = findings_of(made_survey(ranks), links);
  RC_ASSERT(findings.size() == 1U);
  RC_ASSERT(findings[0].kind == Kind::kSlow);
  RC_ASSERT(findings[0].ranks == (std::vector{slow.from, slow.to}));
}

RC_GTEST_PROP(NetworkFindings, AHostFarAwayIsNamed, ()) {
  const std::size_t ranks = any_ranks(3);
  const std::size_t far = *rc::gen::inRange<std::size_t>(0, ranks);
  auto links = made_links(ranks, 10);
  for (Link& link : links) {
    link.min *= link.from == far || link.to == far ? 20 : 1;
  }
  const auto findings = findings_of(made_survey(ranks), links);
  RC_ASSERT(findings.size() == 1U);
  RC_ASSERT(findings[0].kind == Kind::kLate);
  RC_ASSERT(findings[0].ranks == std::vector{far});
}

// Ten times a tiny latency is still a tiny latency.
TEST(NetworkFindings, AShortLatencyIsNotSaidToBeLong) {
  auto links = made_links(3, 10);
  for (Link& link : links) {
    link.min /= 50;
  }
  links.front().min *= 10;
  EXPECT_THAT(findings_of(made_survey(3), links), IsEmpty());
}

RC_GTEST_PROP(NetworkFindings, LinksInsideAMachineAreNotJudged, ()) {
  Survey survey = made_survey(4);
  survey.ranks[1]->host = survey.ranks[0]->host;
  survey.ranks[1]->interfaces = survey.ranks[0]->interfaces;
  auto links = made_links(4, 1);
  for (Link& link : links) {
    link.gbps *= survey.same_machine(link.from, link.to) ? any_factor() : 1;
  }
  RC_ASSERT(findings_of(survey, links).empty());
}

RC_GTEST_PROP(NetworkFindings, SilentPairsAreNamedWithTheirAddresses, ()) {
  const std::size_t ranks = any_ranks(4);
  const std::size_t a = *rc::gen::inRange<std::size_t>(0, ranks - 1);
  const std::size_t b = *rc::gen::inRange<std::size_t>(a + 1, ranks);
  Survey survey = made_survey(ranks);
  survey.silent = {{a, b}};
  const auto findings = findings_of(survey, {});
  RC_ASSERT(findings.size() == 1U);
  RC_ASSERT(findings[0].kind == Kind::kSilent);
  RC_ASSERT(findings[0].ranks == (std::vector{a, b}));
  for (const std::size_t rank : {a, b}) {
    RC_ASSERT(findings[0].text.find("10.7.0." + std::to_string(rank + 1) + "/24") !=
              std::string::npos);
  }
}

TEST(NetworkFindings, ARankThatAnswersNobodyIsNamedOnce) {
  Survey survey = made_survey(4);
  survey.ranks[2].reset();
  survey.silent = {{0, 2}, {1, 2}, {2, 3}};
  const auto findings = findings_of(survey, {});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].ranks, ElementsAre(2));
  EXPECT_THAT(findings[0].text, HasSubstr("rank 2 and all others"));
  EXPECT_THAT(findings[0].text, HasSubstr("firewall"));
  EXPECT_THAT(findings[0].text, HasSubstr("btl_tcp_if_include 10.7.0.0/24"));
}

TEST(NetworkFindings, OfTwoSilentRanksNeitherIsBlamed) {
  Survey survey = made_survey(2);
  survey.silent = {{0, 1}};
  const auto findings = findings_of(survey, {});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].ranks, ElementsAre(0, 1));
}

TEST(NetworkFindings, AnInterfaceThatIsNotUsedIsNamed) {
  Survey survey = made_survey(3);
  survey.ranks[1]->interfaces.push_back({"eth1", "10.8.0.2", 24, 25.0});
  const auto findings = findings_of(survey, made_links(3, 1));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, Kind::kBelowRate);
  EXPECT_THAT(findings[0].ranks, ElementsAre(1));
  EXPECT_THAT(findings[0].text, HasSubstr("eth1 can do 25 Gb/s"));
  EXPECT_THAT(findings[0].text, HasSubstr("btl_tcp_if_include 10.8.0.0/24"));
  survey.ranks[1]->interfaces.back().gbps = 1.2;
  EXPECT_THAT(findings_of(survey, made_links(3, 1)), IsEmpty());
}

TEST(NetworkFindings, AnAddressThatSeveralMachinesHaveIsNamed) {
  Survey survey = made_survey(3);
  for (const std::size_t r : {0U, 2U}) {
    survey.ranks[r]->interfaces.push_back({"docker0", "172.17.0.1", 16, {}});
  }
  const auto findings = findings_of(survey, made_links(3, 1));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, Kind::kSharedAddress);
  EXPECT_THAT(findings[0].ranks, ElementsAre(0, 2));
  EXPECT_THAT(findings[0].text, HasSubstr("172.17.0.1 (docker0) is an address of all of m0, m2"));
}

}  // namespace
}  // namespace sluice
