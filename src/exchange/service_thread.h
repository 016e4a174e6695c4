#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "session/process_group.h"

namespace sluice {

// The thread that makes all calls of a process group. It does one task at a time. In between the
// other processes hear that this one is alive. The calls below come from one thread at a time.
class ServiceThread {
 public:
  using Join = std::function<Result<std::unique_ptr<ProcessGroup>>()>;
  using Task = std::function<void(ProcessGroup&)>;

  // Joins the group. `failed` gets the exception of a task, on the thread, before anybody else.
  ServiceThread(const Join& join, std::function<void(ProcessGroup&, std::exception_ptr)> failed);
  // Leaves the group, when the task is done.
  ~ServiceThread();
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  // Returns when the task is done; throws what it throws.
  void call(Task task);
  // Begins the task, when the one before is done.
  void post(Task task);
  // Returns when there is no task; throws what the last one threw.
  void wait();
  // Begins the task if the thread is idle; false if it is not.
  bool try_post(Task task);

 private:
  void run(const Join& join);
  void serve(ProcessGroup& group);
  Task next();

  const std::function<void(ProcessGroup&, std::exception_ptr)> failed_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  Task task_;
  bool busy_ = true;  // also while it joins
  bool ending_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace sluice
