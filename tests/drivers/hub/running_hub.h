#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "drivers/hub/hub.h"
#include "drivers/hub/hub_connection.h"
#include "drivers/hub/hub_world.h"
#include "drivers/processes/overdue.h"

namespace sluice::testing {

inline const Duration kLongEnough = from_us(60e6);

inline void await(const std::function<bool()>& done) {
  EXPECT_TRUE(poll_within(kLongEnough, kNap, done));
}

// A hub on a thread of its own.
class RunningHub {
 public:
  explicit RunningHub(std::size_t processes)
      : hub_(*Hub::open("127.0.0.1", processes)), thread_([this] { run(); }) {}
  ~RunningHub() { stop_ = true; }

  HubAddress address() const { return hub_.address(); }
  std::unique_ptr<HubConnection> connect(std::size_t rank) const {
    return *HubConnection::open(address(), rank);
  }
  // As the launcher sees the process of this rank end.
  void end(std::size_t rank) { ended_ = static_cast<int>(rank); }
  std::vector<Hub::Happening> happened() {
    const std::lock_guard lock(mutex_);
    return happened_;
  }

 private:
  void run() {
    while (!stop_) {
      note(hub_.turn(from_us(1e3)));
      if (const int rank = ended_.exchange(-1); rank >= 0) {
        note(hub_.ended(static_cast<std::size_t>(rank), false, "killed"));
      }
    }
  }
  void note(const std::vector<Hub::Happening>& more) {
    const std::lock_guard lock(mutex_);
    happened_.insert(happened_.end(), more.begin(), more.end());
  }

  Hub hub_;
  std::mutex mutex_;
  std::vector<Hub::Happening> happened_;
  std::atomic<int> ended_ = -1;
  std::atomic<bool> stop_ = false;
  std::jthread thread_;
};

// The test fails if the run does, or if the process is none of it.
inline std::unique_ptr<ProcessWorld> join_or_fail(const HubJob& job) {
  const auto ignore = [](const std::string&) {};
  const auto fail = [](std::size_t rank, const std::exception& why) {
    ADD_FAILURE() << "rank " << rank << ": " << why.what();
    return 1;
  };
  auto world = join_hub(job, ignore, fail);
  EXPECT_TRUE(world) << world.error().message();
  return world ? *std::move(world) : nullptr;
}

// Calls this for every rank, on a thread of its own.
inline void in_worlds(const RunningHub& hub, std::size_t size,
                      const std::function<void(ProcessWorld&)>& body) {
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      const auto world = join_or_fail({hub.address(), r, size});
      ASSERT_TRUE(world);
      body(*world);
    });
  }
}

}  // namespace sluice::testing
