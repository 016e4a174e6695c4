#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace sluice {

// Counts the events of some hosts that have been posted and not dealt with. A host that deals with
// an event posts what follows from it before it counts the event as dealt with. So once nobody else
// posts, the count is zero if and only if nothing is under way.
class OpenEvents {
 public:
  void add() { count_.fetch_add(1); }
  void remove(std::int64_t events) {
    if (events > 0 && count_.fetch_sub(events) == events) {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    }
  }
  bool none() const { return count_.load() == 0; }

  // Returns when there are none, or after give_up().
  void wait_for_none() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return none() || given_up_; });
  }
  // Some event will never be dealt with.
  void give_up() {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    changed_.notify_all();
  }

 private:
  std::atomic<std::int64_t> count_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool given_up_ = false;
};

}  // namespace sluice
