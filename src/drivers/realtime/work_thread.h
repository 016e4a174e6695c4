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

// Does arithmetic beside a host's loop, which goes on moving messages meanwhile; piece by piece, in
// the order in which they were handed over.
class WorkThread {
 public:
  using Execute = std::function<void(Work work)>;

  explicit WorkThread(Execute execute, const StartThread& start = start_thread);
  // After the piece in flight; those that wait are dropped.
  ~WorkThread();

  void start(Work work);
  // Throws what a piece of work has thrown; there are none after that one.
  void rethrow();
  // Waits until all that was handed over is done, and throws as rethrow() does.
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
