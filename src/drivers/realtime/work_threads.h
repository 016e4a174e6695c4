#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "drivers/realtime/start_thread.h"

namespace sluice {

// As many threads as the user asks for; 0: one per core.
int threads_or_cores(std::size_t asked);

// Does arithmetic beside a host's loop, which moves messages meanwhile. Tasks begin in the order in
// which they were handed over, each on the first thread that is free.
class WorkThreads {
 public:
  using Task = std::function<void()>;

  explicit WorkThreads(int threads, const StartThread& start = start_thread);
  // Waits for the tasks that run and drops those that are queued.
  ~WorkThreads();

  void start(Task task);
  // Throws what some task has thrown; no task begins after a failure.
  void rethrow();
  // Waits until all tasks are done, and throws as rethrow() does.
  void finish();

 private:
  void run();
  void end();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable idle_;
  std::deque<Task> tasks_;
  std::exception_ptr error_;
  int running_ = 0;
  bool ended_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace sluice
