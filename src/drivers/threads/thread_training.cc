#include "drivers/threads/thread_training.h"

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "drivers/realtime/finish_line.h"
#include "drivers/realtime/host_loop.h"
#include "drivers/realtime/trainer.h"
#include "drivers/threads/thread_transport.h"

namespace sluice {
namespace {

class Session {
 public:
  Session(const Phase& phase, const std::optional<Offloading>& offloading);

  std::optional<int> run();

 private:
  void start_threads(std::vector<std::jthread>& hosts, std::vector<std::jthread>& workers);
  void train(NodeId worker);
  bool begins(NodeId worker, Iteration iteration);
  // Runs on a thread of its own; an exception ends the whole session.
  template <class Body>
  void guarded(Body body);
  void fail(std::exception_ptr error);

  const Phase& phase_;
  ThreadTransport transport_;
  Gates gates_;
  FinishLine line_;
  std::vector<std::unique_ptr<HostLoop>> loops_;  // by host
  std::mutex mutex_;                              // of the callbacks and of what follows
  std::exception_ptr error_;
  std::optional<int> stopped_;
};

Session::Session(const Phase& phase, const std::optional<Offloading>& offloading)
    : phase_(phase),
      transport_(phase.topology),
      line_(phase.first, phase.last, pace_of(phase.strategy.algorithm)) {
  const Topology& topology = phase.topology;
  check(phase.hosts.size() == topology.hosts(), "every host has its protocol");
  for (std::size_t h = 0; h < topology.hosts(); ++h) {
    const HostLoop::World world{transport_.mailbox(HostId(h)), transport_, gates_, offloading};
    loops_.push_back(std::make_unique<HostLoop>(phase, HostId(h), world));
  }
  for (const auto& [worker, gate] : gates_) {
    transport_.mailbox(topology.host_of(worker)).post(Started{worker, phase.start_of(worker)});
  }
}

std::optional<int> Session::run() {
  std::vector<std::jthread> hosts;
  std::vector<std::jthread> workers;
  guarded([&] { start_threads(hosts, workers); });
  workers.clear();
  transport_.open_events().wait_for_none();
  for (std::size_t h = 0; h < loops_.size(); ++h) {
    transport_.mailbox(HostId(h)).close();
  }
  hosts.clear();
  if (error_) {
    std::rethrow_exception(error_);
  }
  return stopped_;
}

void Session::start_threads(std::vector<std::jthread>& hosts, std::vector<std::jthread>& workers) {
  for (auto& loop : loops_) {
    hosts.push_back(phase_.start([this, &loop] { guarded([&] { loop->run(); }); }));
  }
  for (const auto& [worker, gate] : gates_) {
    workers.push_back(phase_.start([this, worker = worker] { guarded([&] { train(worker); }); }));
  }
}

void Session::train(NodeId worker) {
  Trainer trainer(phase_, {.worker = worker,
                           .gate = gates_.at(worker),
                           .host = transport_.mailbox(phase_.topology.host_of(worker)),
                           .leading = mutex_,
                           .begins = [this, worker](Iteration t) { return begins(worker, t); },
                           .stepped =
                               [&](Iteration t, std::optional<double> loss) {
                                 const std::lock_guard lock(mutex_);
                                 if (phase_.on_step) {
                                   phase_.on_step({worker.index(), t, loss, phase_.clock.now()});
                                 }
                               }});
  trainer.run();
}

// The first worker to see a signal decides for all where the run ends.
bool Session::begins(NodeId worker, Iteration iteration) {
  const int signal = phase_.interrupted ? phase_.interrupted() : 0;
  if (signal != 0) {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      const Iteration last = line_.hold();
      line_.end_at(last);
      stopped_ = signal;
    }
  }
  return line_.begin(iteration, phase_.start_of(worker));
}

template <class Body>
void Session::guarded(Body body) {
  try {
    body();
  } catch (const Cancelled&) {
    // Another thread failed first; its error is the one to report.
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
  line_.cancel();
  transport_.open_events().give_up();
}

}  // namespace

std::optional<int> train_on_threads(const Phase& phase,
                                    const std::optional<Offloading>& offloading) {
  return Session(phase, offloading).run();
}

}  // namespace sluice
