#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "session/process_group.h"

namespace sluice {

// The thread that makes all calls of a process group. It does one task at a time, and carries out
// the running phases meanwhile and in between; so other processes hear that this one is alive. The
// calls below come from one thread at a time.
class ServiceThread {
 public:
  using Join = std::function<Result<std::unique_ptr<ProcessGroup>>()>;
  using Task = std::function<void(ProcessGroup&)>;

  // Joins the group. `failed` gets the exception of a task, on the thread, before anybody else.
  ServiceThread(const Join& join, std::function<void(ProcessGroup&, std::exception_ptr)> failed);
  // Leaves the group, when the task is done and all phases are over.
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
  // There is something to do for a running phase. From any thread.
  void nudge();

  // For a task: carries out the phase until it is over. `memory` is what the phase uses.
  void carry_out(std::unique_ptr<RunningPhase> phase, std::shared_ptr<void> memory);
  // For a task: carries out the phases until this is so.
  void turn_until(const std::function<bool()>& done, ProcessGroup& group);
  // For a task: returns when all phases are over, which have ended in all processes.
  void finish_phases(ProcessGroup& group);

 private:
  // A phase stays when it is over: its communicators are freed at the end, by all processes in one
  // order.
  struct Activity {
    std::shared_ptr<void> memory;  // null: it is over
    std::unique_ptr<RunningPhase> phase;
  };

  void run(const Join& join);
  void serve(ProcessGroup& group);
  Task next();
  Task next_amid_phases(ProcessGroup& group);
  bool is_amid_phases() const;
  // Turns all phases; sleeps if nothing has moved.
  void turn(std::chrono::microseconds nap);
  // The same, and lets the others hear from this process now and then.
  void turn(std::chrono::microseconds nap, ProcessGroup& group);
  void rest(const Activity& sleeper, std::chrono::microseconds nap);
  void wake();  // under the lock

  const std::function<void(ProcessGroup&, std::exception_ptr)> failed_;
  std::list<Activity> activities_;  // of the thread
  std::chrono::steady_clock::time_point next_beat_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  Task task_;
  bool busy_ = true;  // also while it joins
  bool ending_ = false;
  RunningPhase* resting_ = nullptr;  // in whose sleep the thread is
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace sluice
