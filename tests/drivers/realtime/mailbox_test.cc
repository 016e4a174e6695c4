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

TEST(Mailbox, AnEventIsOpenUntilAllThatFollowedFromItIsDealtWith) {
  const auto open = std::make_shared<OpenEvents>();
  Mailbox one(nullptr, open);
  Mailbox other(nullptr, open);
  std::deque<Event> events;
  one.post(kEvent);
  one.drain(events);
  EXPECT_FALSE(one.is_settled());
  other.post(kEvent);
  one.settle();
  EXPECT_FALSE(one.is_settled()) << "the other has an event";
  other.expect();
  other.drain(events);
  other.settle();
  EXPECT_FALSE(one.is_settled()) << "another thread works for the other";
  other.post_expected(kEvent);
  other.drain(events);
  other.settle();
  EXPECT_TRUE(one.is_settled());
  open->wait_for_none();
  one.post(kEvent);
  open->give_up();
  open->wait_for_none();
}

}  // namespace
}  // namespace sluice
