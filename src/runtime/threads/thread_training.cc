#include "runtime/threads/thread_training.h"

#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "runtime/host_loop.h"
#include "runtime/threads/thread_transport.h"
#include "runtime/trainer.h"

namespace sluice {
namespace {

class Session {
 public:
  explicit Session(const Stretch& stretch);

  void run();

 private:
  void train(NodeId worker);
  // Runs on a thread of its own; what it throws ends the whole session.
  template <class Body>
  void guarded(Body body);
  void fail(std::exception_ptr error);

  const Stretch& stretch_;
  ThreadTransport transport_;
  Gates gates_;
  std::vector<std::unique_ptr<HostLoop>> loops_;  // by host
  std::mutex mutex_;                              // of the callbacks and of error_
  std::exception_ptr error_;
};

Session::Session(const Stretch& stretch) : stretch_(stretch), transport_(stretch.topology) {
  const Topology& topology = stretch.topology;
  check(stretch.hosts.size() == topology.hosts(), "every host has its protocol");
  for (std::size_t h = 0; h < topology.hosts(); ++h) {
    const HostLoop::World world{transport_.mailbox(HostId(h)), transport_, gates_};
    loops_.push_back(std::make_unique<HostLoop>(stretch, HostId(h), world));
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
  Trainer trainer(stretch_, {.worker = worker,
                             .gate = gates_.at(worker),
                             .host = transport_.mailbox(stretch_.topology.host_of(worker)),
                             .speaking = mutex_,
                             .stepped = [&](Iteration t, double loss) {
                               const std::lock_guard lock(mutex_);
                               if (stretch_.on_step) {
                                 stretch_.on_step({worker.index(), t, loss, stretch_.clock.now()});
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

void train_on_threads(const Stretch& stretch) { Session(stretch).run(); }

}  // namespace sluice
