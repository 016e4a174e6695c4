#include "drivers/virtual/event_queue.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace sluice
