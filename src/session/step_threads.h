#pragma once

#include <cstddef>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/realtime/work_threads.h"
#include "drivers/virtual/computing.h"

namespace sluice {

// Computes the steps of virtual workers on threads of its own, 0: one per core, in the order in
// which they begin.
class StepThreads final : public Computing {
 public:
  StepThreads(std::size_t threads, std::size_t workers, const StartThread& start = start_thread)
      : steps_(workers), threads_(threads_or_cores(threads), start) {}

  void begin(std::size_t worker, Step step) override {
    auto task = std::make_shared<std::packaged_task<void()>>(std::move(step));
    steps_[worker] = task->get_future();
    threads_.start([task] { (*task)(); });
  }
  void finish(std::size_t worker) override { steps_[worker].get(); }

 private:
  std::vector<std::future<void>> steps_;  // by worker
  WorkThreads threads_;
};

}  // namespace sluice
