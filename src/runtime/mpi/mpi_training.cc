#include "runtime/mpi/mpi_training.h"

#include <malloc.h>
#include <sys/prctl.h>

#include <thread>
#include <vector>

#include "runtime/host_loop.h"
#include "runtime/mpi/launch.h"
#include "runtime/mpi/mpi_supervision.h"
#include "runtime/mpi/mpi_transport.h"
#include "runtime/trainer.h"

namespace sluice {
namespace {

class Session {
 public:
  Session(HostId self, const Stretch& stretch, const Warn& warn);

  void run();

 private:
  void train(NodeId worker);
  void pass_on_reports();

  const Stretch& stretch_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  Gates gates_;
  MpiTransport transport_;
  MpiSupervision supervision_;
  HostLoop loop_;
  std::mutex speaking_;  // held while callbacks run
};

std::size_t processes_here(const Topology& topology) {
  return topology.workers_per_machine() / topology.workers_per_host();
}

Session::Session(HostId self, const Stretch& stretch, const Warn& warn)
    : stretch_(stretch),
      transport_({.topology = stretch.topology,
                  .chunks = stretch.chunks,
                  .sums_in_memory = stretch.strategy.collective == Collective::kMemory,
                  .first = stretch.first,
                  .clock = stretch.clock,
                  .mailbox = mailbox_,
                  .gates = gates_,
                  .awaits_receivers = stretch.strategy.exchange != Exchange::kAllReduce ||
                                      stretch.strategy.order == Order::kPriority,
                  .spins = has_idle_cores(processes_here(stretch.topology))}),
      supervision_({.transport = transport_,
                    .gates = gates_,
                    .chunks = stretch.chunks,
                    .layers = stretch.state.learner(stretch.topology.nodes_on(self)[0]).layers(),
                    .clock = stretch.clock,
                    .mailbox = *mailbox_,
                    .warn = warn}),
      loop_(stretch, self, {*mailbox_, supervision_, gates_, true}) {}

void Session::run() {
  {
    std::vector<std::jthread> workers;
    for (const auto& [worker, gate] : gates_) {
      workers.emplace_back([this, worker = worker] { train(worker); });
    }
    try {
      loop_.run();
    } catch (...) {
      for (auto& [worker, gate] : gates_) {
        gate.cancel();
      }
      throw;
    }
  }
  pass_on_reports();
}

void Session::train(NodeId worker) {
  Trainer trainer(stretch_, {.worker = worker,
                             .gate = gates_.at(worker),
                             .host = *mailbox_,
                             .speaking = speaking_,
                             .stepped = [&](Iteration t, double loss) {
                               supervision_.stepped(worker.index(), t, loss);
                               pass_on_reports();
                             }});
  try {
    trainer.run();
    supervision_.finished();
  } catch (const Cancelled&) {
    // The loop failed first; its reason is the one to tell.
  } catch (...) {
    supervision_.failed(std::current_exception());
  }
}

// From a worker's thread, or after its end: a slow listener must not hold up communication.
void Session::pass_on_reports() {
  const std::lock_guard lock(speaking_);
  for (const StepReport& step : supervision_.take_reports()) {
    if (stretch_.on_step) {
      stretch_.on_step(step);
    }
  }
}

// Linux rounds naps up by 50 microseconds unless told otherwise, and glibc gives large buffers back
// to the system when they are freed, so that the next one costs a page fault every 4 KB.
void tune_process() {
  constexpr int kSlackNs = 1'000;
  constexpr int kKeptBytes = 32 << 20;
  prctl(PR_SET_TIMERSLACK, kSlackNs);
  mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  mallopt(M_TRIM_THRESHOLD, 16 * kKeptBytes);
}

}  // namespace

void train_on_mpi(MpiWorld& world, const Stretch& stretch, const Warn& warn) {
  tune_process();
  Session(HostId(world.rank()), stretch, warn).run();
}

}  // namespace sluice
