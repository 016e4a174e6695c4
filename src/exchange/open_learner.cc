#include "exchange/open_learner.h"

#include <utility>

namespace sluice {

void OpenLearner::drive(OpenSteps& steps) {
  std::unique_lock lock(mutex_);
  steps_ = &steps;
  changed_.notify_all();
  changed_.wait(lock, [&] { return ending_ || failure_; });
  steps_ = nullptr;
  ending_ = false;
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

OpenSteps& OpenLearner::steps() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return steps_ != nullptr || failure_; });
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  return *steps_;
}

void OpenLearner::end() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return steps_ != nullptr || failure_; });
    ending_ = true;
  }
  changed_.notify_all();
}

void OpenLearner::fail(std::exception_ptr why) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(why);
  }
  changed_.notify_all();
}

}  // namespace sluice
