#include "drivers/virtual/event_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace sluice {
namespace {

TEST(EventQueueTest, AReservedPlaceIsKept) {
  EventQueue<char> queue;
  const auto early = queue.reserve_ready(Time{5});
  queue.ready_at(Time{5}, 'b');
  queue.free_at(Time{5}, 'd');
  queue.ready_at(Time{5}, 'c');
  queue.schedule(early, 'a');
  std::string order;
  while (!queue.empty()) {
    order += queue.pop();
  }
  EXPECT_EQ(order, "abcd");
}

// A step of a schedule: what is pending happens, or an event is scheduled so far ahead, as ready,
// free, or ready with a place that was reserved before all that came since.
struct Step {
  enum class Kind : std::uint8_t { kPop, kReady, kFree, kReserve, kKeep };
  Kind kind;
  std::int64_t ahead;
};

// Distances at all scales: the same instant, the same day, the calendar's reach and beyond it.
rc::Gen<Step> some_step() {
  const auto kind = rc::gen::map(rc::gen::inRange(0, 9), [](int k) {
    return k < 4 ? Step::Kind::kPop : static_cast<Step::Kind>(k < 7 ? 1 : k - 5);
  });
  const auto ahead = rc::gen::mapcat(rc::gen::inRange(0, 44), [](int bits) {
    return rc::gen::inRange<std::int64_t>((std::int64_t{1} << bits) / 2,
                                          (std::int64_t{1} << bits) / 2 + 3);
  });
  return rc::gen::construct<Step>(kind, ahead);
}

RC_GTEST_PROP(EventQueueProperties, IsASortedSet, ()) {
  using Place = std::tuple<Time, bool, int>;  // the class and the sequence are those of scheduling
  EventQueue<int> queue;
  std::set<Place> sorted;
  std::vector<std::pair<EventQueue<int>::Key, Place>> reserved;
  Time now{0};
  int next = 0;
  const auto pop = [&] {
    RC_ASSERT(!queue.empty());
    now = std::get<Time>(*sorted.begin());
    RC_ASSERT(queue.next_time() == now);
    RC_ASSERT(queue.pop() == std::get<int>(*sorted.begin()));
    sorted.erase(sorted.begin());
  };
  const auto keep_reserved = [&] {
    for (const auto& [key, place] : reserved) {
      if (std::get<Time>(place) >= now) {
        queue.schedule(key, std::get<int>(place));
        sorted.insert(place);
      }
    }
    reserved.clear();
  };
  const auto steps = *rc::gen::scale(8.0, rc::gen::container<std::vector<Step>>(some_step()));
  for (const auto& [kind, ahead] : steps) {
    const Time time = now + Time{ahead};
    if (kind == Step::Kind::kPop && !sorted.empty()) {
      pop();
    } else if (kind == Step::Kind::kReady) {
      queue.ready_at(time, next);
      sorted.insert({time, false, next++});
    } else if (kind == Step::Kind::kFree) {
      queue.free_at(time, next);
      sorted.insert({time, true, next++});
    } else if (kind == Step::Kind::kReserve) {
      reserved.push_back({queue.reserve_ready(time), {time, false, next++}});
    } else if (kind == Step::Kind::kKeep) {
      keep_reserved();
    }
  }
  while (!sorted.empty()) {
    pop();
  }
  RC_ASSERT(queue.empty());
}

TEST(EventQueueTest, KnowsAheadWhatComesOnADay) {
  EventQueue<int> queue;
  for (int i = 0; i < 100; ++i) {
    queue.ready_at(from_us(1000) + Time{100 - i}, i);
  }
  int foreseen = 0;
  for (int i = 99; i >= 0; --i) {
    if (const int* const after = queue.ahead(1)) {
      EXPECT_EQ(*after, i - 1);
      ++foreseen;
    }
    EXPECT_EQ(queue.pop(), i);
  }
  EXPECT_GT(foreseen, 50);
}

}  // namespace
}  // namespace sluice
