#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "drivers/realtime/start_thread.h"
#include "protocol/work.h"

namespace sluice {

// Does arithmetic beside a host's loop, which moves messages meanwhile; one unit of work at a time,
// in the order in which they were handed over.
class WorkThread {
 public:
  using Execute = std::function<void(Work work)>;

  explicit WorkThread(Execute execute, const StartThread& start = start_thread);
  // Waits for the current work and drops what is queued.
  ~WorkThread();

  void start(Work work);
  // Throws what some work has thrown; no work runs after a failure.
  void rethrow();
  // Waits until all work is done, and throws as rethrow() does.
  void finish();

 private:
  void run();

  Execute execute_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable idle_;
  std::deque<Work> works_;
  std::exception_ptr error_;
  bool working_ = false;
  bool ended_ = false;
  std::jthread thread_;
};

}  // namespace sluice
