#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/id.h"
#include "drivers/realtime/gate.h"
#include "model/algorithm.h"

namespace sluice {

// How far the workers of a process train: to the last iteration, or less far if the run is to stop.
// Workers that wait for each other must stop at the same iteration in all processes, one that none
// of them has passed. So each process first holds its workers and reports how far they have come;
// then all end at the furthest of these. Workers that do not wait for each other stop where they
// are. Every worker takes at least one step in each phase that has one for it, so that a run goes
// on even if it is stopped for a checkpoint all the time.
class FinishLine {
 public:
  enum class Pace : bool { kTogether, kEachItsOwn };

  FinishLine(Iteration first, Iteration last, Pace pace)
      : pace_(pace), last_(last), begun_(first + 1) {}

  // Whether a worker that began the phase with `start` should run this iteration. Waits while that
  // depends on the other processes.
  bool begin(Iteration iteration, Iteration start) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return cancelled_ || !held_ || iteration < begun_; });
    if (cancelled_) {
      throw Cancelled();
    }
    if (iteration >= last_ || (ended_ && pace_ == Pace::kEachItsOwn && iteration > start)) {
      return false;
    }
    begun_ = std::max(begun_, iteration + 1);
    return true;
  }

  // Until end_at(), workers begin no iteration that none of them has begun; returns the first such.
  Iteration hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
    return begun_;
  }

  // Workers that wait for each other end at this iteration, which is at least the result of hold();
  // the others now.
  void end_at(Iteration last) {
    {
      const std::lock_guard lock(mutex_);
      if (pace_ == Pace::kTogether) {
        last_ = std::min(last_, last);
      }
      ended_ = true;
      held_ = false;
    }
    changed_.notify_all();
  }

  // Workers that wait give up.
  void cancel() {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
    }
    changed_.notify_all();
  }

 private:
  const Pace pace_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Iteration last_;
  Iteration begun_;  // the first that no worker of this process has begun
  bool held_ = false;
  bool ended_ = false;
  bool cancelled_ = false;
};

inline FinishLine::Pace pace_of(Algorithm algorithm) {
  return traits_of(algorithm).coupling == Coupling::kFree ? FinishLine::Pace::kEachItsOwn
                                                          : FinishLine::Pace::kTogether;
}

}  // namespace sluice
