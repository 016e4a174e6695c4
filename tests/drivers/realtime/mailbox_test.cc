#include "drivers/realtime/mailbox.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>

namespace sluice {
namespace {

const Event kEvent = Started{NodeId(0)};

// Does something else in its sleep.
class DreamingAlarm final : public Alarm {
 public:
  void sleep(Duration /*limit*/) override {
    ++sleeps;
    dream();
  }
  void wake() override { ++wakes; }

  std::function<void()> dream = [] {};
  int sleeps = 0;
  int wakes = 0;
};

TEST(Mailbox, WakesTheAlarmOnlyOutOfASleep) {
  const auto alarm = std::make_shared<DreamingAlarm>();
  Mailbox mailbox(alarm);
  alarm->dream = [&] {
    mailbox.post(kEvent);
    mailbox.post(kEvent);
  };
  std::deque<Event> events;
  EXPECT_TRUE(mailbox.wait(events, from_us(1)));
  EXPECT_EQ(events.size(), 2U);
  EXPECT_EQ(alarm->wakes, 1);
  mailbox.post(kEvent);
  EXPECT_EQ(alarm->wakes, 1);
}

TEST(Mailbox, DoesNotSleepOverEvents) {
  const auto alarm = std::make_shared<DreamingAlarm>();
  Mailbox mailbox(alarm);
  mailbox.post(kEvent);
  std::deque<Event> events;
  EXPECT_TRUE(mailbox.wait(events, from_us(1)));
  EXPECT_EQ(alarm->sleeps, 0);
  EXPECT_EQ(events.size(), 1U);
}

TEST(Mailbox, ClosingEndsASleep) {
  const auto alarm = std::make_shared<DreamingAlarm>();
  Mailbox mailbox(alarm);
  alarm->dream = [&] { mailbox.close(); };
  std::deque<Event> events;
  EXPECT_FALSE(mailbox.wait(events));
  EXPECT_EQ(alarm->wakes, 1);
}

}  // namespace
}  // namespace sluice
