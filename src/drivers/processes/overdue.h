#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/units.h"
#include "drivers/realtime/start_thread.h"

namespace sluice {

// After a wait of this length a process reports what it waits for, and again after each further
// one.
inline constexpr std::chrono::seconds kOverdue{10};

// The pause between two polls where latency does not matter.
inline constexpr std::chrono::microseconds kNap{200};

// Polls until `done`, sleeping in between; calls `overdue` whenever another kOverdue has passed.
inline void poll_until(const std::function<bool()>& done, const std::function<void()>& overdue,
                       std::chrono::microseconds nap = kNap) {
  auto due = std::chrono::steady_clock::now() + kOverdue;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= due) {
      overdue();
      due += kOverdue;
    }
    std::this_thread::sleep_for(nap);
  }
}

// Polls until `done`, without a pause if `nap` is zero; false if the limit passes first.
inline bool poll_within(Duration limit, std::chrono::microseconds nap,
                        const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) {
      return false;
    }
    if (nap.count() > 0) {
      std::this_thread::sleep_for(nap);
    } else {
      std::this_thread::yield();
    }
  }
  return true;
}

// Calls `overdue` every kOverdue from a thread of its own, as long as it lives: for calls that
// cannot be polled.
class Overdue {
 public:
  explicit Overdue(std::function<void()> overdue)
      : thread_(start_thread([this, overdue = std::move(overdue)] {
          std::unique_lock lock(mutex_);
          while (!changed_.wait_for(lock, kOverdue, [&] { return ended_; })) {
            overdue();
          }
        })) {}
  ~Overdue() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
  }
  Overdue(const Overdue&) = delete;
  Overdue& operator=(const Overdue&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::jthread thread_;
};

}  // namespace sluice
