#include "drivers/realtime/work_thread.h"

#include <utility>

namespace sluice {

WorkThread::WorkThread(Execute execute, const StartThread& start)
    : execute_(std::move(execute)), thread_(start([this] { run(); })) {}

WorkThread::~WorkThread() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
}

void WorkThread::start(Work work) {
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void WorkThread::rethrow() {
  const std::lock_guard lock(mutex_);
  if (error_) {
    std::rethrow_exception(error_);
  }
}

void WorkThread::finish() {
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return error_ || (works_.empty() && !working_); });
  }
  rethrow();
}

void WorkThread::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    working_ = false;
    idle_.notify_all();
    changed_.wait(lock, [this] { return ended_ || !works_.empty(); });
    if (ended_) {
      return;
    }
    Work work = std::move(works_.front());
    works_.pop_front();
    working_ = true;
    lock.unlock();
    try {
      execute_(std::move(work));
    } catch (...) {
      lock.lock();
      error_ = std::current_exception();
      idle_.notify_all();
      return;
    }
  }
}

}  // namespace sluice
