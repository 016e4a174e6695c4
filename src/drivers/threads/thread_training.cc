#include "drivers/threads/thread_training.h"

#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "drivers/realtime/host_loop.h"
#include "drivers/realtime/trainer.h"
#include "drivers/threads/thread_transport.h"

namespace sluice {
namespace {

class Session {
 public:
  Session(const Phase& phase, const std::optional<Offloading>& offloading);

  void run();

 private:
  void train(NodeId worker);
  // Runs on a thread of its own; what it throws ends the whole session.
  template <class Body>
  void guarded(Body body);
  void fail(std::exception_ptr error);

  const Phase& phase_;
  ThreadTransport transport_;
  Gates gates_;
  std::vector<std::unique_ptr<HostLoop>> loops_;  // by host
  std::mutex mutex_;                              // of the callbacks and of error_
  std::exception_ptr error_;
};

Session::Session(const Phase& phase, const std::optional<Offloading>& offloading)
    : phase_(phase), transport_(phase.topology) {
  const Topology& topology = phase.topology;
  check(phase.hosts.size() == topology.hosts(), "every host has its protocol");
  for (std::size_t h = 0; h < topology.hosts(); ++h) {
    const HostLoop::World world{transport_.mailbox(HostId(h)), transport_, gates_, offloading};
    loops_.push_back(std::make_unique<HostLoop>(phase, HostId(h), world));
  }
}

void Session::run() {
  std::vector<std::jthread> hosts;
  hosts.reserve(loops_.size());
  for (auto& loop : loops_) {
    hosts.emplace_back([this, &loop] { guarded([&] { loop->run(); }); });
  }
  {
    std::vector<std::jthread> workers;
    workers.reserve(gates_.size());
    for (const auto& [worker, gate] : gates_) {
      workers.emplace_back([this, worker = worker] { guarded([&] { train(worker); }); });
    }
  }
  for (std::size_t h = 0; h < loops_.size(); ++h) {
    transport_.mailbox(HostId(h)).close();
  }
  hosts.clear();
  if (error_) {
    std::rethrow_exception(error_);
  }
}

void Session::train(NodeId worker) {
  Trainer trainer(phase_, {.worker = worker,
                           .gate = gates_.at(worker),
                           .host = transport_.mailbox(phase_.topology.host_of(worker)),
                           .leading = mutex_,
                           .stepped = [&](Iteration t, double loss) {
                             const std::lock_guard lock(mutex_);
                             if (phase_.on_step) {
                               phase_.on_step({worker.index(), t, loss, phase_.clock.now()});
                             }
                           }});
  trainer.run();
}

template <class Body>
void Session::guarded(Body body) {
  try {
    body();
  } catch (const Cancelled&) {
    // Another thread failed first; its reason is the one to tell.
  } catch (...) {
    fail(std::current_exception());
  }
}

void Session::fail(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) {
      error_ = std::move(error);
    }
  }
  for (auto& [worker, gate] : gates_) {
    gate.cancel();
  }
}

}  // namespace

void train_on_threads(const Phase& phase, const std::optional<Offloading>& offloading) {
  Session(phase, offloading).run();
}

}  // namespace sluice
