#include "session/donors.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

constexpr std::size_t kServersApart = 1;

TEST(DonorsTest, TheNextHostWithWorkersThatHasAStateGivesIt) {
  const Topology topology(5, 1, kServersApart);
  const std::set<HostId> without{HostId(1), HostId(2), HostId(4)};
  const auto has_state = [&](HostId host) { return !without.contains(host); };
  EXPECT_EQ(donors_for({without.begin(), without.end()}, topology, has_state),
            (Donors{{HostId(1), HostId(3)}, {HostId(2), HostId(3)}, {HostId(4), HostId(0)}}));
}

TEST(DonorsTest, WhereNobodyHasAStateNobodyGivesOne) {
  const auto nobody = [](HostId) { return false; };
  EXPECT_TRUE(donors_for({HostId(0), HostId(1)}, Topology(2, 1, kServersApart), nobody).empty());
}

}  // namespace
}  // namespace sluice
