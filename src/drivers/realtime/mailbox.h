#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/units.h"
#include "drivers/realtime/alarm.h"
#include "drivers/realtime/open_events.h"
#include "protocol/event.h"

namespace sluice {

// Events for one host, from any thread to its loop.
class Mailbox {
 public:
  // The loop sleeps with this alarm, if there is one. Several boxes may count their events
  // together.
  explicit Mailbox(std::shared_ptr<Alarm> alarm = nullptr,
                   std::shared_ptr<OpenEvents> open = std::make_shared<OpenEvents>())
      : alarm_(std::move(alarm)), open_(std::move(open)) {}

  void post(Event event) {
    expect();
    post_expected(std::move(event));
  }
  // An event that counts as posted from expect() on.
  void expect() { open_->add(); }
  void post_expected(Event event) {
    change([&] { events_.push_back(std::move(event)); });
  }

  // Nobody waits for further events: the loop ends when it has nothing left to do.
  void close() {
    change([&] { closed_ = true; });
  }

  // Ends the wait of the loop, or the next one.
  void wake() {
    change([&] { woken_ = true; });
  }

  // Appends the events that are there to `into`, without waiting; false when the box is closed and
  // there were none.
  bool drain(std::deque<Event>& into) {
    const std::lock_guard lock(mutex_);
    move_to(into);
    return !closed_ || !into.empty();
  }

  // The loop has dealt with all events that it has taken out, and with what followed from them.
  void settle() { open_->remove(std::exchange(taken_, 0)); }
  // Whether that holds for all events, of all boxes that count together.
  bool is_settled() const { return open_->none(); }

  // Waits for events, no longer than `patience` if it is set, and appends them to `into`; false
  // when the box is closed and empty. A patience of zero only yields to other threads.
  bool wait(std::deque<Event>& into, std::optional<Duration> patience = std::nullopt) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return closed_ || woken_ || !events_.empty(); };
    if (patience == Duration(0)) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    } else if (alarm_) {
      sleep(lock, patience, ready);
    } else if (patience) {
      filled_.wait_for(lock, std::chrono::duration_cast<std::chrono::nanoseconds>(*patience),
                       ready);
    } else {
      filled_.wait(lock, ready);
    }
    woken_ = false;
    move_to(into);
    return !closed_ || !into.empty();
  }

 private:
  template <class Change>
  void change(Change change) {
    bool asleep = false;
    {
      const std::lock_guard lock(mutex_);
      change();
      asleep = std::exchange(asleep_, false);
    }
    if (asleep) {
      alarm_->wake();
    } else if (!alarm_) {
      filled_.notify_one();
    }
  }

  template <class Ready>
  void sleep(std::unique_lock<std::mutex>& lock, std::optional<Duration> patience, Ready ready) {
    if (!ready()) {
      asleep_ = true;
      lock.unlock();
      alarm_->sleep(patience.value_or(kForever));
      lock.lock();
      asleep_ = false;
    }
  }

  void move_to(std::deque<Event>& into) {
    taken_ += static_cast<std::int64_t>(events_.size());
    if (into.empty()) {
      into.swap(events_);
      return;
    }
    for (Event& event : events_) {
      into.push_back(std::move(event));
    }
    events_.clear();
  }

  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Event> events_;
  bool closed_ = false;
  bool woken_ = false;
  bool asleep_ = false;  // with the alarm, and nobody has woken it
  std::shared_ptr<Alarm> alarm_;
  std::shared_ptr<OpenEvents> open_;
  std::int64_t taken_ = 0;  // and not settled
};

}  // namespace sluice
