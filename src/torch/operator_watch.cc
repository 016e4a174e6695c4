#include "torch/operator_watch.h"

#include <memory>
#include <optional>

#include "base/check.h"

namespace sluice {
namespace {

struct Watch {
  const OnOperator& before;
  const OnOperator& after;
  const Watch* outer;
};

// LibTorch takes plain functions as observers, so they find their watch through the thread.
thread_local const Watch* innermost = nullptr;

std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& call) {
  for (const Watch* watch = innermost; watch != nullptr; watch = watch->outer) {
    watch->before(call);
  }
  return nullptr;
}

void see_done(const at::RecordFunction& call, at::ObserverContext* /*context*/) {
  for (const Watch* watch = innermost; watch != nullptr; watch = watch->outer) {
    if (watch->after) {
      watch->after(call);
    }
  }
}

// All watches of a thread share the observer of the outermost.
class Observation {
 public:
  Observation(const OnOperator& before, const OnOperator& after)
      : watch_{before, after, innermost} {
    check(watch_.outer == nullptr || !after, "only the outermost watch has an after");
    if (watch_.outer == nullptr) {
      const bool wants_after = static_cast<bool>(after);
      handle_ = at::addThreadLocalCallback(
          at::RecordFunctionCallback(see, wants_after ? see_done : nullptr)
              .needsInputs(true)
              .needsOutputs(wants_after)
              .scopes({at::RecordScope::FUNCTION}));
    }
    innermost = &watch_;
  }
  ~Observation() {
    if (handle_) {
      at::removeCallback(*handle_);
    }
    innermost = watch_.outer;
  }
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

 private:
  Watch watch_;
  std::optional<at::CallbackHandle> handle_;
};

}  // namespace

void watch_operators(const std::function<void()>& work, const OnOperator& before,
                     const OnOperator& after) {
  const Observation observation(before, after);
  work();
}

}  // namespace sluice
