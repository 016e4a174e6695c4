#include "exchange/service_thread.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "drivers/realtime/start_thread.h"

namespace sluice {
namespace {

// While a task waits for others, which answer soon; while one phase runs, whose sleep ends with
// whatever is for it; while several do.
constexpr std::chrono::microseconds kBriefNap{50};
constexpr std::chrono::microseconds kLongNap{1000};
constexpr std::chrono::microseconds kNapAmidSeveral{200};
constexpr std::chrono::milliseconds kBetweenBeats{10};

}  // namespace

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
    if (is_amid_phases()) {
      group.while_waiting([this] { turn(kBriefNap); });
      task = next_amid_phases(group);
      if (!task) {
        continue;
      }
    } else {
      group.while_waiting({});
      group.attend([&] { task = next(); });
      if (!task) {
        return activities_.clear();
      }
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

// Empty if the last phase is over before there is a task.
ServiceThread::Task ServiceThread::next_amid_phases(ProcessGroup& group) {
  std::unique_lock lock(mutex_);
  busy_ = false;
  changed_.notify_all();
  while (!task_ && is_amid_phases()) {
    lock.unlock();
    turn(activities_.size() == 1 ? kLongNap : kNapAmidSeveral, group);
    lock.lock();
  }
  busy_ = static_cast<bool>(task_);
  return std::exchange(task_, {});
}

bool ServiceThread::is_amid_phases() const {
  return std::ranges::any_of(activities_, [](const Activity& a) { return a.memory != nullptr; });
}

void ServiceThread::turn(std::chrono::microseconds nap) {
  bool moved = false;
  Activity* sleeper = nullptr;
  for (Activity& activity : activities_) {
    if (activity.memory != nullptr) {
      moved = activity.phase->turn() || moved;
      sleeper = &activity;
    }
  }
  if (!moved && sleeper != nullptr) {
    rest(*sleeper, nap);
  }
}

void ServiceThread::turn(std::chrono::microseconds nap, ProcessGroup& group) {
  turn(nap);
  if (const auto now = std::chrono::steady_clock::now(); now >= next_beat_) {
    group.beat();
    next_beat_ = now + kBetweenBeats;
  }
}

void ServiceThread::turn_until(const std::function<bool()>& done, ProcessGroup& group) {
  while (!done()) {
    turn(kBriefNap, group);
  }
}

void ServiceThread::finish_phases(ProcessGroup& group) {
  while (is_amid_phases()) {
    turn(kBriefNap, group);
  }
}

// In the sleep of one phase: whatever comes from other machines ends it, and so does nudge(). The
// others only look whether they are over.
void ServiceThread::rest(const Activity& sleeper, std::chrono::microseconds nap) {
  {
    const std::lock_guard lock(mutex_);
    resting_ = sleeper.phase.get();
    nap = task_ ? std::chrono::microseconds(0) : nap;
  }
  sleeper.phase->rest(from_us(static_cast<double>(nap.count())));
  {
    const std::lock_guard lock(mutex_);
    resting_ = nullptr;
  }
  for (Activity& activity : activities_) {
    if (activity.memory != nullptr && &activity != &sleeper) {
      activity.phase->rest(Duration(0));
    }
    if (activity.phase->is_over()) {
      activity.memory.reset();
    }
  }
}

void ServiceThread::carry_out(std::unique_ptr<RunningPhase> phase, std::shared_ptr<void> memory) {
  activities_.push_back({std::move(memory), std::move(phase)});
}

void ServiceThread::nudge() {
  const std::lock_guard lock(mutex_);
  wake();
}

void ServiceThread::wake() {
  if (resting_ != nullptr) {
    resting_->wake();
  }
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
  wake();
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
  wake();
  return true;
}

}  // namespace sluice
