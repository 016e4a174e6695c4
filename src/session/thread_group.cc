#include "session/thread_group.h"

#include "drivers/threads/thread_training.h"
#include "session/local_group.h"

namespace sluice {
namespace {

class ThreadGroup final : public LocalGroup {
 public:
  NetworkFacts tune(Job& /*job*/, const ChosenSizes& /*chosen*/) override { return {}; }
  std::optional<int> train(const Phase& phase) override { return train_on_threads(phase); }
};

}  // namespace

std::unique_ptr<ProcessGroup> make_thread_group() { return std::make_unique<ThreadGroup>(); }

}  // namespace sluice
