#pragma once

#include "model/strategy.h"
#include "protocol/effects.h"
#include "scheduling/admission_queue.h"

namespace sluice {

// The arithmetic that waits on a host, including a server's inbox. The most urgent work is done
// first, with as many at a time as the host has threads for it.
class Workbench {
 public:
  Workbench(Order order, int threads) : queue_(order, threads) {}

  void start(Work work, Effects& driver) {
    if (queue_.admit_at_once(1)) {
      return driver.start(std::move(work));
    }
    const std::uint64_t when = urgency(work.iteration, work.priority);
    queue_.push(when, 1, std::move(work));
    pump(driver);
  }

  void on_finished(Effects& driver) {
    queue_.give_back(1);
    pump(driver);
  }

  std::int64_t overtakings() const { return queue_.overtakings(); }
  // Counts no overtakings of earlier iterations.
  void count_from(Iteration iteration) { queue_.count_from(urgency(iteration, 0)); }

 private:
  void pump(Effects& driver) {
    while (auto work = queue_.take()) {
      driver.start(std::move(*work));
    }
  }

  AdmissionQueue<Work> queue_;
};

}  // namespace sluice
