#include "drivers/realtime/work_threads.h"

#include <algorithm>
#include <utility>

#include "drivers/realtime/processor.h"

namespace sluice {

int threads_or_cores(std::size_t asked) {
  return static_cast<int>(asked > 0 ? asked : usable_cores());
}

WorkThreads::WorkThreads(int threads, const StartThread& start) {
  try {
    for (int t = 0; t < threads; ++t) {
      threads_.push_back(start([this] { run(); }));
    }
  } catch (...) {
    end();  // the threads that did start wait for tasks
    throw;
  }
}

WorkThreads::~WorkThreads() { end(); }

void WorkThreads::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

void WorkThreads::start(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void WorkThreads::rethrow() {
  const std::lock_guard lock(mutex_);
  if (error_) {
    std::rethrow_exception(error_);
  }
}

void WorkThreads::finish() {
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return error_ || (tasks_.empty() && running_ == 0); });
  }
  rethrow();
}

void WorkThreads::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ended_ || error_ || !tasks_.empty(); });
    if (ended_ || error_) {
      return;
    }
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    lock.unlock();
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --running_;
    if (error) {
      error_ = error;
      changed_.notify_all();
    }
    idle_.notify_all();
  }
}

}  // namespace sluice
