#include "drivers/mpi/mpi_training.h"

#include <malloc.h>
#include <sys/prctl.h>

#include <thread>
#include <vector>

#include "drivers/mpi/launch.h"
#include "drivers/mpi/mpi_supervision.h"
#include "drivers/mpi/mpi_transport.h"
#include "drivers/mpi/socket_alarm.h"
#include "drivers/realtime/finish_line.h"
#include "drivers/realtime/host_loop.h"
#include "drivers/realtime/trainer.h"

namespace sluice {
namespace {

class Session {
 public:
  Session(HostId self, const Phase& phase, const Warn& warn);

  std::optional<int> run();

 private:
  void train(NodeId worker);
  void pass_on_reports();

  const Phase& phase_;
  std::shared_ptr<SocketAlarm> alarm_;
  std::shared_ptr<Mailbox> mailbox_;
  Gates gates_;
  FinishLine line_;
  MpiTransport transport_;
  MpiSupervision supervision_;
  HostLoop loop_;
  std::mutex leading_;  // held while callbacks run
};

std::size_t processes_here(const Topology& topology) {
  return topology.workers_per_machine() / topology.workers_per_host();
}

// Data from another machine wakes the loop; data in shared memory cannot, nor need it where the
// loop does not sleep.
std::shared_ptr<SocketAlarm> make_alarm(const Topology& topology) {
  const std::size_t here = processes_here(topology);
  const bool sleeps = here == 1 && topology.hosts() > 1 && !has_idle_cores(here);
  return sleeps ? watch_sockets(topology.hosts() - 1) : nullptr;
}

Session::Session(HostId self, const Phase& phase, const Warn& warn)
    : phase_(phase),
      alarm_(make_alarm(phase.topology)),
      mailbox_(std::make_shared<Mailbox>(alarm_)),
      line_(phase.first, phase.last, pace_of(phase.strategy.algorithm)),
      transport_({.topology = phase.topology,
                  .chunks = phase.chunks,
                  .rules = phase.rules,
                  .sums_in_memory = phase.strategy.collective == Collective::kSharedMemory,
                  .first = phase.first,
                  .clock = phase.clock,
                  .mailbox = mailbox_,
                  .gates = gates_,
                  .awaits_receivers = phase.strategy.exchange != Exchange::kAllReduce ||
                                      phase.strategy.order == Order::kPriority,
                  .spins = has_idle_cores(processes_here(phase.topology)),
                  .alarm = alarm_}),
      supervision_({.transport = transport_,
                    .gates = gates_,
                    .line = line_,
                    .interrupted = phase.interrupted,
                    .chunks = phase.chunks,
                    .layers = phase.state.learner(phase.topology.nodes_on(self)[0]).layers(),
                    .workers = phase.topology.workers(),
                    .clock = phase.clock,
                    .mailbox = *mailbox_,
                    .warn = warn}),
      loop_(phase, self, {*mailbox_, supervision_, gates_, Offloading{}}) {}

std::optional<int> Session::run() {
  {
    std::vector<std::jthread> workers;
    try {
      for (const auto& [worker, gate] : gates_) {
        workers.push_back(phase_.start([this, worker = worker] { train(worker); }));
      }
      loop_.run();
    } catch (...) {
      for (auto& [worker, gate] : gates_) {
        gate.cancel();
      }
      line_.cancel();
      throw;
    }
  }
  pass_on_reports();
  return supervision_.stopped();
}

void Session::train(NodeId worker) {
  Trainer trainer(phase_, {.worker = worker,
                           .gate = gates_.at(worker),
                           .host = *mailbox_,
                           .leading = leading_,
                           .begins = [this](Iteration t) { return line_.begin(t); },
                           .stepped =
                               [&](Iteration t, std::optional<double> loss) {
                                 supervision_.stepped(worker.index(), t, loss);
                                 pass_on_reports();
                               }});
  try {
    trainer.run();
    supervision_.finished();
  } catch (const Cancelled&) {
    // The loop failed first; its error is the one to report.
  } catch (...) {
    supervision_.failed(std::current_exception());
  }
}

// Called from a worker's thread, or after its end: a slow callback must not hold up communication.
void Session::pass_on_reports() {
  const std::lock_guard lock(leading_);
  for (const StepReport& step : supervision_.take_reports()) {
    if (phase_.on_step) {
      phase_.on_step(step);
    }
  }
}

// Linux rounds sleeps up by 50 microseconds by default, and glibc returns large buffers to the
// system when they are freed, so that the next buffer costs a page fault per 4 KB.
void tune_process() {
  constexpr int kSlackNs = 1'000;
  constexpr int kKeptBytes = 32 << 20;
  prctl(PR_SET_TIMERSLACK, kSlackNs);
  mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  mallopt(M_TRIM_THRESHOLD, 16 * kKeptBytes);
}

}  // namespace

std::optional<int> train_on_mpi(MpiWorld& world, const Phase& phase, const Warn& warn) {
  tune_process();
  return Session(HostId(world.rank()), phase, warn).run();
}

}  // namespace sluice
