#include "egress/admission_queue.h"

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

// Against a list that is searched from the front, over any sequence of operations.
RC_GTEST_PROP(AdmissionQueueProperties, AgreesWithASearchedList, ()) {
  struct Waiting {
    std::uint64_t urgency;
    std::int64_t cost;
    int item;
  };
  const Order order = *rc::gen::element(Order::kFifo, Order::kPriority);
  const auto budget = *rc::gen::inRange<std::int64_t>(1, 20);
  AdmissionQueue<int> queue(order, budget);
  std::vector<Waiting> waiting;
  std::vector<std::int64_t> inside;
  std::int64_t overtakings = 0;
  const auto operations = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4));
  int next = 0;
  for (const int operation : operations) {
    if (operation < 2) {
      const auto urgency = *rc::gen::inRange<std::uint64_t>(0, 4);
      const auto cost = *rc::gen::inRange<std::int64_t>(0, 12);
      queue.push(urgency, cost, next);
      waiting.push_back({urgency, cost, next++});
    } else if (operation == 2) {
      auto best = waiting.begin();
      for (auto it = waiting.begin(); it != waiting.end() && order == Order::kPriority; ++it) {
        best = it->urgency < best->urgency ? it : best;
      }
      std::int64_t spent = 0;
      for (const auto cost : inside) {
        spent += cost;
      }
      const bool fits = best != waiting.end() && (spent == 0 || spent + best->cost <= budget);
      RC_ASSERT(queue.spent() == spent);
      const auto taken = queue.take();
      RC_ASSERT(taken.has_value() == fits);
      if (fits) {
        RC_ASSERT(*taken == best->item);
        overtakings += best == waiting.begin() ? 0 : 1;
        inside.push_back(best->cost);
        waiting.erase(best);
      }
    } else if (!inside.empty()) {
      queue.give_back(inside.back());
      inside.pop_back();
    }
    RC_ASSERT(queue.waiting() == waiting.size());
    RC_ASSERT(queue.overtakings() == overtakings);
  }
}

}  // namespace
}  // namespace sluice
