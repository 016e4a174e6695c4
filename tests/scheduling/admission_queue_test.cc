#include "scheduling/admission_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace sluice {
namespace {

TEST(AdmissionQueue, FifoIgnoresUrgency) {
  AdmissionQueue<char> queue(Order::kFifo, 100);
  queue.push(5, 1, 'a');
  queue.push(0, 1, 'b');
  EXPECT_EQ(queue.take(), 'a');
  EXPECT_EQ(queue.take(), 'b');
  EXPECT_EQ(queue.take(), std::nullopt);
  EXPECT_EQ(queue.overtakings(), 0);
}

TEST(AdmissionQueue, TheUrgentOvertakesAndTiesGoByArrival) {
  AdmissionQueue<char> queue(Order::kPriority, 100);
  queue.push(5, 1, 'a');
  queue.push(0, 1, 'b');
  queue.push(0, 1, 'c');
  EXPECT_EQ(queue.take(), 'b');
  EXPECT_EQ(queue.take(), 'c');
  EXPECT_EQ(queue.take(), 'a');
  EXPECT_EQ(queue.overtakings(), 2);
}

TEST(AdmissionQueue, WhatIsDearerThanTheBudgetGoesAlone) {
  AdmissionQueue<char> queue(Order::kFifo, 10);
  queue.push(0, 25, 'a');
  queue.push(0, 1, 'b');
  EXPECT_EQ(queue.take(), 'a');
  EXPECT_EQ(queue.take(), std::nullopt);
  queue.give_back(25);
  EXPECT_EQ(queue.take(), 'b');
  EXPECT_THROW(queue.give_back(2), InvariantError);
}

TEST(AdmissionQueue, AFullLaneHoldsUpNoOther) {
  AdmissionQueue<char> queue(Order::kPriority, 100, 2, 10);
  queue.push(0, 8, 'a', 0);
  queue.push(1, 8, 'b', 0);
  queue.push(2, 8, 'c', 1);
  EXPECT_EQ(queue.take(), 'a');
  EXPECT_EQ(queue.take(), 'c');
  EXPECT_EQ(queue.take(), std::nullopt);
  queue.give_back(8, 0);
  EXPECT_EQ(queue.take(), 'b');
  EXPECT_EQ(queue.overtakings(), 0);
}

TEST(AdmissionQueue, TheUrgentWaitsForTheCommonBudgetAndNothingPassesItMeanwhile) {
  AdmissionQueue<char> queue(Order::kPriority, 10, 2);
  queue.push(0, 6, 'a', 0);
  queue.push(1, 6, 'b', 1);
  queue.push(2, 1, 'c', 0);
  EXPECT_EQ(queue.take(), 'a');
  EXPECT_EQ(queue.take(), std::nullopt);
  queue.give_back(6, 0);
  EXPECT_EQ(queue.take(), 'b');
  EXPECT_EQ(queue.take(), 'c');
}

// A simple model of the queue, which searches a list.
struct SearchedList {
  struct Item {
    std::uint64_t urgency;
    std::int64_t cost;
    std::size_t lane;
    int number;
  };

  static bool fits(std::int64_t spent, std::int64_t cost, std::int64_t budget) {
    return spent == 0 || spent + cost <= budget;
  }
  std::int64_t spent(std::optional<std::size_t> lane) const {
    std::int64_t sum = 0;
    for (const Item& item : inside) {
      sum += !lane || item.lane == *lane ? item.cost : 0;
    }
    return sum;
  }
  bool before(const Item& a, const Item& b) const {
    return order == Order::kPriority && a.urgency != b.urgency ? a.urgency < b.urgency
                                                               : a.number < b.number;
  }
  std::optional<int> take() {
    auto best = waiting.end();
    for (auto it = waiting.begin(); it != waiting.end(); ++it) {
      const bool heads_its_lane = std::ranges::none_of(
          waiting, [&](const Item& other) { return other.lane == it->lane && before(other, *it); });
      if (heads_its_lane && fits(spent(it->lane), it->cost, lane_budget) &&
          (best == waiting.end() || before(*it, *best))) {
        best = it;
      }
    }
    if (best == waiting.end() || !fits(spent({}), best->cost, budget)) {
      return std::nullopt;
    }
    std::size_t turn = 0;
    for (const Item& item : arrived) {
      turn += item.lane == best->lane && item.number < best->number ? 1 : 0;
    }
    overtakings += turn > left[best->lane]++ ? 1 : 0;
    inside.push_back(*best);
    const int number = best->number;
    waiting.erase(best);
    return number;
  }

  Order order = Order::kFifo;
  std::int64_t budget = 0;
  std::int64_t lane_budget = 0;
  std::vector<std::size_t> left;  // admitted items, by lane
  std::vector<Item> arrived;
  std::vector<Item> waiting;
  std::vector<Item> inside;
  std::int64_t overtakings = 0;
};

RC_GTEST_PROP(AdmissionQueueProperties, AgreesWithASearchedList, ()) {
  const auto lanes = *rc::gen::inRange<std::size_t>(1, 4);
  SearchedList list;
  list.order = *rc::gen::element(Order::kFifo, Order::kPriority);
  list.budget = *rc::gen::inRange<std::int64_t>(1, 20);
  list.lane_budget = *rc::gen::inRange<std::int64_t>(1, 20);
  list.left.resize(lanes);
  AdmissionQueue<int> queue(list.order, list.budget, lanes, list.lane_budget);
  const auto operations = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12));
  for (const int operation : operations) {
    if (operation == 0) {
      const auto lane = *rc::gen::inRange<std::size_t>(0, lanes);
      queue.clear(lane);
      for (auto* const items : {&list.waiting, &list.inside}) {
        std::erase_if(*items, [&](const auto& item) { return item.lane == lane; });
      }
      list.left[lane] = static_cast<std::size_t>(
          std::ranges::count(list.arrived, lane, &SearchedList::Item::lane));
    } else if (operation < 5) {
      const SearchedList::Item item{
          *rc::gen::inRange<std::uint64_t>(0, 4), *rc::gen::inRange<std::int64_t>(0, 12),
          *rc::gen::inRange<std::size_t>(0, lanes), static_cast<int>(list.arrived.size())};
      list.arrived.push_back(item);
      list.waiting.push_back(item);
      if (*rc::gen::arbitrary<bool>() && queue.admit_at_once(item.cost, item.lane)) {
        RC_ASSERT(list.take() == item.number);
      } else {
        queue.push(item.urgency, item.cost, item.number, item.lane);
      }
    } else if (operation < 9) {
      RC_ASSERT(queue.take() == list.take());
    } else if (!list.inside.empty()) {
      const auto place =
          list.inside.begin() +
          *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(list.inside.size()));
      queue.give_back(place->cost, place->lane);
      list.inside.erase(place);
    }
    RC_ASSERT(queue.spent() == list.spent({}));
    RC_ASSERT(queue.waiting() == list.waiting.size());
    RC_ASSERT(queue.overtakings() == list.overtakings);
  }
}

}  // namespace
}  // namespace sluice
