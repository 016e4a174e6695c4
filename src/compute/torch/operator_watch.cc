#include "compute/torch/operator_watch.h"

#include <memory>
#include <utility>

namespace sluice {
namespace {

// LibTorch takes a bare function as observer, so the work it belongs to is found by its thread.
thread_local const BeforeOperator* current = nullptr;

std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& call) {
  (*current)(call);
  return nullptr;
}

class Observation {
 public:
  explicit Observation(const BeforeOperator& before) : outer_(std::exchange(current, &before)) {
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(see).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~Observation() {
    at::removeCallback(handle_);
    current = outer_;
  }
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

 private:
  const BeforeOperator* outer_;
  at::CallbackHandle handle_;
};

}  // namespace

void watch_operators(const std::function<void()>& work, const BeforeOperator& before) {
  const Observation observation(before);
  work();
}

}  // namespace sluice
