#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace sluice {

// After so long a silence somebody says what is being waited for, and again after as long.
inline constexpr std::chrono::seconds kOverdue{10};

// Polls until `done`, sleeping in between; calls `overdue` whenever another kOverdue has passed.
inline void poll_until(const std::function<bool()>& done, const std::function<void()>& overdue) {
  constexpr std::chrono::microseconds kNap{200};
  auto due = std::chrono::steady_clock::now() + kOverdue;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= due) {
      overdue();
      due += kOverdue;
    }
    std::this_thread::sleep_for(kNap);
  }
}

// Calls `overdue` every kOverdue from a thread of its own, for as long as it lives: for calls that
// cannot be polled.
class Overdue {
 public:
  explicit Overdue(std::function<void()> overdue)
      : thread_([this, overdue = std::move(overdue)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          while (!ended_.wait_for(lock, stop, kOverdue, [&] { return stop.stop_requested(); })) {
            overdue();
          }
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

}  // namespace sluice
