#include "session/thread_group.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "drivers/threads/thread_training.h"
#include "session/local_group.h"

namespace sluice {
namespace {

// Its own threads carry it out: there is nothing to turn.
class ThreadPhase final : public RunningPhase {
 public:
  explicit ThreadPhase(const Phase& phase) : thread_([this, &phase] { run(phase); }) {}

  bool turn() override { return false; }
  void rest(Duration limit) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return over_ || woken_; });
    woken_ = false;
  }
  void wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }
  bool is_over() const override {
    const std::lock_guard lock(mutex_);
    return over_;
  }

 private:
  void run(const Phase& phase) {
    try {
      train_on_threads(phase);
    } catch (...) {  // NOLINT(bugprone-empty-catch): whoever takes its steps has heard of it
    }
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool over_ = false;
  std::jthread thread_;
};

class ThreadGroup final : public LocalGroup {
 public:
  NetworkFacts tune(Job& /*job*/, const ChosenSizes& /*chosen*/) override { return {}; }
  std::optional<int> train(const Phase& phase) override { return train_on_threads(phase); }
  std::unique_ptr<RunningPhase> begin(const Phase& phase) override {
    return std::make_unique<ThreadPhase>(phase);
  }
};

}  // namespace

std::unique_ptr<ProcessGroup> make_thread_group() { return std::make_unique<ThreadGroup>(); }

}  // namespace sluice
