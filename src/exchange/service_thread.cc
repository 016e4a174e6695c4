#include "exchange/service_thread.h"

#include <stdexcept>
#include <utility>

#include "drivers/realtime/start_thread.h"

namespace sluice {

ServiceThread::ServiceThread(const Join& join,
                             std::function<void(ProcessGroup&, std::exception_ptr)> failed)
    : failed_(std::move(failed)) {
  thread_ = start_thread([this, join] { run(join); });
  wait();
}

ServiceThread::~ServiceThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

void ServiceThread::run(const Join& join) {
  std::unique_ptr<ProcessGroup> group;
  try {
    auto joined = join();
    if (!joined) {
      throw std::runtime_error(joined.error().message());
    }
    group = *std::move(joined);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    busy_ = false;
    changed_.notify_all();
    return;
  }
  serve(*group);
}

void ServiceThread::serve(ProcessGroup& group) {
  for (;;) {
    Task task;
    group.attend([&] { task = next(); });
    if (!task) {
      return;
    }
    try {
      task(group);
    } catch (...) {
      failed_(group, std::current_exception());
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
  }
}

// Empty if there will be none.
ServiceThread::Task ServiceThread::next() {
  std::unique_lock lock(mutex_);
  busy_ = false;
  changed_.notify_all();
  changed_.wait(lock, [&] { return task_ || ending_; });
  busy_ = static_cast<bool>(task_);
  return std::exchange(task_, {});
}

void ServiceThread::call(Task task) {
  post(std::move(task));
  wait();
}

void ServiceThread::post(Task task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_ && !task_; });
  task_ = std::move(task);
  changed_.notify_all();
}

void ServiceThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_ && !task_; });
  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

bool ServiceThread::try_post(Task task) {
  const std::lock_guard lock(mutex_);
  if (busy_ || task_) {
    return false;
  }
  task_ = std::move(task);
  changed_.notify_all();
  return true;
}

}  // namespace sluice
