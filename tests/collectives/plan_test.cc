#include "collectives/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "collectives/cost.h"

namespace sluice {

// GoogleTest uses it to name the tests below after the collectives.
void PrintTo(Collective collective, std::ostream* out) {
  *out << name_of(kCollectiveNames, collective);
}

namespace {

template <class T>
using Vectors = std::vector<std::vector<T>>;  // one per rank

std::vector<Plan> plans_of_all(Collective collective, std::size_t size, Range whole) {
  std::vector<Plan> plans;
  for (std::size_t rank = 0; rank < size; ++rank) {
    plans.push_back(make_plan(collective, rank, size, whole));
  }
  return plans;
}

// Runs the plans in lock step, by their definition: all messages of a round are read before any is
// written. Element 0 of a rank's data is `base` in the plans.
template <class T>
void execute(const std::vector<Plan>& plans, std::int64_t base, Vectors<T>& data) {
  for (std::size_t i = 0; i < plans.front().size(); ++i) {
    const Vectors<T> before = data;
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      const Round& round = plans[rank][i];
      if (!round.receive) {
        continue;
      }
      for (std::int64_t e = round.receive->range.begin; e < round.receive->range.end; ++e) {
        const T incoming = before[round.receive->peer].at(static_cast<std::size_t>(e - base));
        T& mine = data[rank].at(static_cast<std::size_t>(e - base));
        mine = round.reduce ? mine + incoming : incoming;
      }
    }
  }
}

// What is wrong with the steps of a plan, or nothing: no message of a step may depend on another.
std::string fault_in_steps(const Plan& plan) {
  for (std::size_t first = 0; first < plan.size(); first = end_of_step(plan, first)) {
    std::set<std::size_t> senders;
    for (std::size_t i = first; i < end_of_step(plan, first); ++i) {
      const std::string where = "round " + std::to_string(i);
      const auto& received = plan[i].receive;
      if (plan[i].reduce != plan[first].reduce) {
        return where + ": a step either adds or copies";
      }
      if (received && !senders.insert(received->peer).second) {
        return where + ": a second message from one rank";
      }
      for (std::size_t j = first; j < i; ++j) {
        const auto& earlier = plan[j].receive;
        const auto& sent = plan[i].send;
        if (earlier && received && plan[i].reduce && earlier->range != received->range) {
          return where + ": a step adds to one range";
        }
        if (earlier && sent && earlier->range.begin < sent->range.end &&
            sent->range.begin < earlier->range.end) {
          return where + ": sends what the step receives";
        }
      }
    }
  }
  return "";
}

// The first mismatch between the plans, or nothing.
std::string mismatch(const std::vector<Plan>& plans, Range whole) {
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    if (plans[rank].size() != plans.front().size()) {
      return "rank " + std::to_string(rank) + " has another number of rounds";
    }
  }
  for (std::size_t i = 0; i < plans.front().size(); ++i) {
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      const std::string where = "round " + std::to_string(i) + ", rank " + std::to_string(rank);
      const Round& round = plans[rank][i];
      if (round.together != plans.front()[i].together) {
        return where + ": belongs to another step";
      }
      for (const auto& transfer : {round.send, round.receive}) {
        if (transfer && (transfer->peer >= plans.size() || transfer->peer == rank)) {
          return where + ": no such peer";
        }
        if (transfer && (transfer->range.empty() || !whole.contains(transfer->range))) {
          return where + ": range empty or outside the whole";
        }
      }
      if (round.send) {
        const Round& other = plans[round.send->peer][i];
        if (other.receive != Transfer{rank, round.send->range} || other.reduce != round.reduce) {
          return where + ": sends what its peer does not expect";
        }
      }
      if (round.receive &&
          plans[round.receive->peer][i].send != Transfer{rank, round.receive->range}) {
        return where + ": expects what its peer does not send";
      }
    }
  }
  return "";
}

Bytes moved_bytes(const std::vector<Plan>& plans) {
  Bytes bytes = 0;
  for (const Plan& plan : plans) {
    for (const Round& round : plan) {
      bytes += round.send ? round.send->range.size() * kFloatBytes : 0;
    }
  }
  return bytes;
}

template <class T>
Vectors<T> random_data(std::size_t size, Range whole, std::uint64_t seed) {
  Random random(seed);
  Vectors<T> data(size, std::vector<T>(static_cast<std::size_t>(whole.size())));
  for (auto& row : data) {
    for (auto& value : row) {
      value = static_cast<T>(static_cast<double>(random.below(2'000'001)) - 1e6) / 7;
    }
  }
  return data;
}

std::vector<std::int64_t> sum_of(const Vectors<std::int64_t>& data) {
  std::vector<std::int64_t> sum(data.front().size());
  for (const auto& row : data) {
    std::transform(row.begin(), row.end(), sum.begin(), sum.begin(), std::plus<>());
  }
  return sum;
}

// Checks all promises for one collective, number of ranks and range; empty if they hold.
std::string fault(Collective collective, std::size_t size, Range whole) {
  const std::vector<Plan> plans = plans_of_all(collective, size, whole);
  if (std::string found = mismatch(plans, whole); !found.empty()) {
    return found;
  }
  for (const Plan& plan : plans) {
    if (std::string found = fault_in_steps(plan); !found.empty()) {
      return found;
    }
  }
  if (moved_bytes(plans) != bytes_sent(collective, size, whole.size() * kFloatBytes)) {
    return "other bytes than the formula says";
  }
  auto numbers = random_data<std::int64_t>(size, whole, size);
  const auto sum = sum_of(numbers);
  execute(plans, whole.begin, numbers);
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (numbers[rank] != sum) {
      return "rank " + std::to_string(rank) + " ends with a wrong sum";
    }
  }
  return "";
}

class PlanTest : public ::testing::TestWithParam<Collective> {};

TEST_P(PlanTest, SumsOnEveryRankForAnyNumberOfRanks) {
  for (std::size_t size = 1; size <= 33; ++size) {
    const auto ranks = static_cast<std::int64_t>(size);
    for (const std::int64_t length :
         {std::int64_t{0}, std::int64_t{1}, ranks - 1, ranks, std::int64_t{1000}}) {
      EXPECT_EQ(fault(GetParam(), size, {5, 5 + length}), "")
          << size << " ranks, " << length << " elements";
    }
  }
}

TEST_P(PlanTest, GivesEveryRankTheSameFloatsBitForBit) {
  for (std::size_t size = 1; size <= 33; ++size) {
    const Range whole{0, 100};
    auto data = random_data<float>(size, whole, size);
    execute(plans_of_all(GetParam(), size, whole), whole.begin, data);
    EXPECT_THAT(data, ::testing::Each(data.front())) << size << " ranks";
  }
}

TEST_P(PlanTest, OneRankHasNothingToDo) {
  EXPECT_THAT(make_plan(GetParam(), 0, 1, {0, 10}), ::testing::IsEmpty());
}

TEST_P(PlanTest, RejectsARankOutsideTheGroup) {
  EXPECT_THROW(make_plan(GetParam(), 3, 3, {0, 10}), InvariantError);
}

// Adds up costs while the plans of all ranks run: a step takes as long as the rank that moves most.
TEST_P(PlanTest, CostsWhatItsStepsTakeForAnyNumberOfRanks) {
  const LinkCost link{from_us(7), 3.0, 0.5};
  for (std::size_t size = 1; size <= 33; ++size) {
    const Range whole{0, static_cast<std::int64_t>(size) * 64};
    const std::vector<Plan> plans = plans_of_all(GetParam(), size, whole);
    double expected_ns = 0;
    for (std::size_t first = 0; first < plans.front().size();) {
      const std::size_t end = end_of_step(plans.front(), first);
      std::int64_t longest = 0;
      for (const Plan& plan : plans) {
        std::int64_t received = 0;
        for (std::size_t i = first; i < end; ++i) {
          received += plan[i].receive ? plan[i].receive->range.size() : 0;
        }
        longest = std::max(longest, received);
      }
      expected_ns += 7000 + static_cast<double>(longest * kFloatBytes) *
                                (3.0 + (plans.front()[first].reduce ? 0.5 : 0.0));
      first = end;
    }
    const AllReduceCost cost = collective_cost(load_of(GetParam(), {.size = size}), link);
    const auto bytes = static_cast<double>(whole.size() * kFloatBytes);
    EXPECT_NEAR(to_us(cost.startup) * 1000 + cost.ns_per_byte * bytes, expected_ns, 1e-3) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, PlanTest, ::testing::ValuesIn(kPlannedCollectives));

RC_GTEST_PROP(PlanProperty, HoldsForGeneratedGroupsAndRanges, ()) {
  const auto collective = *rc::gen::elementOf(kPlannedCollectives);
  const auto size = *rc::gen::inRange<std::size_t>(1, 70);
  const auto begin = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
  const auto length = *rc::gen::inRange<std::int64_t>(0, 300);
  RC_ASSERT(fault(collective, size, {begin, begin + length}) == "");
}

TEST(RingTest, SpreadsTheTrafficEvenly) {
  for (std::size_t rank = 0; rank < 7; ++rank) {
    const Bytes sent = moved_bytes({make_plan(Collective::kRing, rank, 7, {0, 700})});
    EXPECT_EQ(sent, 2 * 600 * kFloatBytes);
  }
}

TEST(RingTest, TalksToItsNeighboursOnly) {
  for (const Round& round : make_plan(Collective::kRing, 0, 5, {0, 100})) {
    EXPECT_THAT(round.send->peer, ::testing::AnyOf(1U, 4U));
    EXPECT_THAT(round.receive->peer, ::testing::AnyOf(1U, 4U));
  }
}

TEST(DirectTest, HasTwoStepsThatRotate) {
  const Plan plan = make_plan(Collective::kDirect, 1, 3, {0, 9});
  const Plan expected{
      {.send = Transfer{2, {6, 9}}, .receive = Transfer{0, {3, 6}}, .reduce = true},
      {.send = Transfer{0, {0, 3}},
       .receive = Transfer{2, {3, 6}},
       .reduce = true,
       .together = true},
      {.send = Transfer{2, {3, 6}}, .receive = Transfer{0, {0, 3}}},
      {.send = Transfer{0, {3, 6}}, .receive = Transfer{2, {6, 9}}, .together = true},
  };
  EXPECT_EQ(plan, expected);
  EXPECT_EQ(end_of_step(plan, 0), 2U);
  EXPECT_EQ(end_of_step(plan, 2), 4U);
}

TEST(DirectTest, SendsWhatARingSends) {
  for (std::size_t rank = 0; rank < 7; ++rank) {
    const Bytes sent = moved_bytes({make_plan(Collective::kDirect, rank, 7, {0, 700})});
    EXPECT_EQ(sent, 2 * 600 * kFloatBytes);
  }
}

TEST(HalvingDoublingTest, HalvesThenDoubles) {
  const Plan plan = make_plan(Collective::kHalvingDoubling, 1, 4, {0, 8});
  const Plan expected{
      {.send = Transfer{3, {4, 8}}, .receive = Transfer{3, {0, 4}}, .reduce = true},
      {.send = Transfer{0, {0, 2}}, .receive = Transfer{0, {2, 4}}, .reduce = true},
      {.send = Transfer{0, {2, 4}}, .receive = Transfer{0, {0, 2}}},
      {.send = Transfer{3, {0, 4}}, .receive = Transfer{3, {4, 8}}},
  };
  EXPECT_EQ(plan, expected);
}

// The tests above rely on mismatch(), so it must find broken plans.
TEST(PlanMismatchTest, IsFoundInBrokenPlans) {
  const Range whole{0, 9};
  const std::vector<Plan> good = plans_of_all(Collective::kRing, 3, whole);
  ASSERT_EQ(mismatch(good, whole), "");

  auto longer = good;
  longer[1].push_back({});
  EXPECT_NE(mismatch(longer, whole), "");
  auto shifted = good;
  shifted[2][0].send->range.end -= 1;
  EXPECT_NE(mismatch(shifted, whole), "");
  auto deaf = good;
  deaf[0][1].receive.reset();
  EXPECT_NE(mismatch(deaf, whole), "");
  auto hasty = good;
  hasty[0][1].together = true;
  EXPECT_NE(mismatch(hasty, whole), "");
  EXPECT_NE(fault_in_steps(hasty[0]), "");
  auto mute = good;
  mute[0][1].send.reset();
  EXPECT_NE(mismatch(mute, whole), "");
}

}  // namespace
}  // namespace sluice
