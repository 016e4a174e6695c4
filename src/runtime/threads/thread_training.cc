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
  explicit Session(const ThreadTraining& setup);

  void run();

 private:
  void train(std::size_t rank);
  // Runs on a thread of its own; what it throws ends the whole session.
  template <class Body>
  void guarded(Body body);
  void fail(std::exception_ptr error);

  const ThreadTraining& setup_;
  ThreadTransport transport_;
  std::vector<std::unique_ptr<Gate>> gates_;      // by rank
  std::vector<std::unique_ptr<HostLoop>> loops_;  // by host
  std::mutex mutex_;                              // of the callbacks and of error_
  std::exception_ptr error_;
};

Session::Session(const ThreadTraining& setup) : setup_(setup), transport_(setup.topology) {
  const Topology& topology = setup.topology;
  check(setup.hosts.size() == topology.hosts(), "every host has its protocol");
  for (std::size_t h = 0; h < topology.hosts(); ++h) {
    loops_.push_back(
        std::make_unique<HostLoop>(HostLoop::World{.protocol = *setup.hosts[h],
                                                   .mailbox = transport_.mailbox(HostId(h)),
                                                   .transport = transport_,
                                                   .clock = setup.clock,
                                                   .observer = setup.observer}));
  }
  for (const auto& learner : setup.state.learners()) {
    gates_.push_back(std::make_unique<Gate>(learner->layers().size(), setup.first));
  }
  for (std::size_t n = 0; n < topology.nodes(); ++n) {
    const NodeId node(n);
    loops_[topology.host_of(node).index()]->add(
        node, setup.state.workspace(node), topology.is_worker(node) ? gates_[n].get() : nullptr);
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
    for (std::size_t w = 0; w < gates_.size(); ++w) {
      workers.emplace_back([this, w] { guarded([&] { train(w); }); });
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

void Session::train(std::size_t rank) {
  const NodeId self = setup_.topology.worker(rank);
  Mailbox& host = transport_.mailbox(setup_.topology.host_of(self));
  Gate& gate = *gates_[rank];
  Trainer trainer({.worker = self,
                   .learner = *setup_.state.learners()[rank],
                   .slots = setup_.state.slots(self),
                   .gate = gate,
                   .host = host,
                   .clock = setup_.clock,
                   .observer = setup_.observer});
  const auto boundary = [&](Iteration t) {
    if (rank == 0 && setup_.on_boundary) {
      gate.wait_for_all(t);
      const std::lock_guard lock(mutex_);
      setup_.on_boundary(t);
    }
  };
  host.post(Started{self});
  for (Iteration t = setup_.first; t < setup_.last; ++t) {
    if (t > 0 && setup_.boundary_every > 0 && t % setup_.boundary_every == 0) {
      boundary(t);
    }
    const double loss = trainer.step(t);
    if (setup_.on_step) {
      const std::lock_guard lock(mutex_);
      setup_.on_step(rank, t, loss);
    }
  }
  gate.wait_for_all(setup_.last);
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
  for (auto& gate : gates_) {
    gate->cancel();
  }
}

}  // namespace

void train_on_threads(const ThreadTraining& training) { Session(training).run(); }

}  // namespace sluice
