#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/units.h"
#include "protocol/event.h"

namespace sluice {

// Events for one host, from any thread to its loop.
class Mailbox {
 public:
  void post(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    filled_.notify_one();
  }

  // Nobody waits for further events: the loop ends when it has nothing left to do.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    filled_.notify_one();
  }

  // Appends the events that are there to `into`, without waiting.
  void drain(std::deque<Event>& into) {
    const std::lock_guard lock(mutex_);
    move_to(into);
  }

  // Waits for events, no longer than `patience` if it is set, and appends them to `into`; false
  // when the box is closed and empty. A patience of zero only yields to other threads.
  bool wait(std::deque<Event>& into, std::optional<Duration> patience = std::nullopt) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return closed_ || !events_.empty(); };
    if (patience == Duration(0)) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    } else if (patience) {
      filled_.wait_for(lock, std::chrono::duration_cast<std::chrono::nanoseconds>(*patience),
                       ready);
    } else {
      filled_.wait(lock, ready);
    }
    move_to(into);
    return !closed_ || !into.empty();
  }

 private:
  void move_to(std::deque<Event>& into) {
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
};

}  // namespace sluice
