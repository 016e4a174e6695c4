#include "drivers/processes/process_training.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/prctl.h>

#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "drivers/processes/launch.h"
#include "drivers/processes/socket_alarm.h"
#include "drivers/processes/supervision.h"
#include "drivers/realtime/finish_line.h"
#include "drivers/realtime/host_loop.h"
#include "drivers/realtime/trainer.h"
#include "drivers/tcp/mesh.h"
#include "drivers/tcp/poller.h"
#include "drivers/tcp/tcp_transport.h"

namespace sluice {
namespace {

constexpr int kMoreMeetings = 2;
// A process that fails closes its connections, and its launcher ends the others meanwhile.
const Duration kGrace = from_us(3e6);
// The hub tells who is lost, if it was not just a connection.
const Duration kGraceWithHub = from_us(10e6);

class Session final : public RunningPhase {
 public:
  Session(ProcessWorld& world, const Phase& phase, const Carrier& carrier, const Warn& warn);

  std::optional<int> run();

  void start();
  bool turn() override;
  void rest(Duration limit) override;
  void wake() override { mailbox_->wake(); }
  bool is_over() const override { return over_; }

 private:
  void train(NodeId worker);
  // The world fails with what the work throws.
  void guarded(const std::function<void()>& work);
  void pass_on_reports();

  std::unique_ptr<PeerTransport> make_transport(const Carrier& carrier);
  std::unique_ptr<PeerTransport> connect(const Carrier& carrier);

  ProcessWorld& world_;
  const Phase& phase_;
  std::shared_ptr<SocketAlarm> alarm_;  // of MPI's connections
  std::shared_ptr<Poller> poller_;      // of our own
  std::shared_ptr<Mailbox> mailbox_;
  Gates gates_;
  FinishLine line_;
  std::unique_ptr<PeerTransport> transport_;
  std::unique_ptr<Letters> letters_;
  Supervision supervision_;
  HostLoop loop_;
  std::mutex leading_;  // held while callbacks run
  bool over_ = false;
  std::vector<std::jthread> workers_;  // end before all that they use
};

bool spins(const Phase& phase) {
  return phase.may_spin && has_idle_cores(processes_on_a_machine(phase.topology));
}

Offloading offloading_for(const Phase& phase) {
  return {.threads = arithmetic_threads(processes_on_a_machine(phase.topology))};
}

HostId host_of(const ProcessWorld& world) { return HostId(world.rank()); }

// Data from another machine wakes the loop; data in shared memory cannot, nor need it where the
// loop does not sleep.
std::shared_ptr<SocketAlarm> make_alarm(const Phase& phase, const Carrier& carrier) {
  const Topology& topology = phase.topology;
  const bool sleeps =
      processes_on_a_machine(topology) == 1 && topology.hosts() > 1 && !spins(phase);
  return sleeps && !carrier.is_tcp() ? watch_sockets(topology.hosts() - 1) : nullptr;
}

// With which the loop sleeps, if it moves the bytes of TCP connections.
std::shared_ptr<Poller> make_poller(const Carrier& carrier) {
  return carrier.is_tcp() && carrier.threads == 0 ? std::make_shared<Poller>() : nullptr;
}

// Where nothing is urgent and no host can flood another, MPI need not confirm a message.
bool awaits_receivers(const Strategy& strategy) {
  return strategy.exchange != Exchange::kAllReduce || strategy.order == Order::kPriority;
}

Session::Session(ProcessWorld& world, const Phase& phase, const Carrier& carrier, const Warn& warn)
    : world_(world),
      phase_(phase),
      alarm_(make_alarm(phase, carrier)),
      poller_(make_poller(carrier)),
      mailbox_(std::make_shared<Mailbox>(poller_ ? std::shared_ptr<Alarm>(poller_) : alarm_)),
      line_(phase.first, phase.last, pace_of(phase.strategy.algorithm)),
      transport_(make_transport(carrier)),
      letters_(world.open_letters()),
      supervision_({.letters = *letters_,
                    .rank = world.rank(),
                    .leader = world.leader(),
                    .transport = *transport_,
                    .topology = phase.topology,
                    .gates = gates_,
                    .line = line_,
                    .interrupted = phase.interrupted,
                    .chunks = phase.chunks,
                    .layers = phase.state.layers(),
                    .workers = phase.topology.workers(),
                    .open = phase.is_open,
                    .together = pace_of(phase.strategy.algorithm) == FinishLine::Pace::kTogether,
                    .clock = phase.clock,
                    .mailbox = *mailbox_,
                    .warn = warn}),
      loop_(phase, host_of(world), {*mailbox_, supervision_, gates_, offloading_for(phase)}) {
  for (const PeerJoined& joined : phase.joined) {
    mailbox_->post(joined);
  }
  for (const auto& [worker, gate] : gates_) {
    mailbox_->post(Started{worker, phase.start_of(worker)});
  }
}

std::unique_ptr<PeerTransport> Session::make_transport(const Carrier& carrier) {
  if (carrier.is_tcp()) {
    return connect(carrier);
  }
  return world_.make_transport(
      {.topology = phase_.topology,
       .chunks = phase_.chunks,
       .rules = phase_.rules,
       .sums_in_memory = phase_.strategy.collective == Collective::kSharedMemory,
       .first = phase_.first,
       .clock = phase_.clock,
       .mailbox = mailbox_,
       .gates = gates_,
       .awaits_receivers = awaits_receivers(phase_.strategy),
       .spins = spins(phase_),
       .alarm = alarm_});
}

std::unique_ptr<PeerTransport> Session::connect(const Carrier& carrier) {
  const auto meet = [&] {
    return connect_mesh(
        world_.rank(), carrier.address,
        [this](const std::string& own) { return world_.all_gather(own); },
        [this](std::size_t rank) { world_.cut_off(rank); });
  };
  auto sockets = meet();
  // A process that is lost meanwhile holds up the others only once.
  for (int again = 0; !sockets && !world_.has_transport() && again < kMoreMeetings; ++again) {
    sockets = meet();
  }
  if (!sockets) {
    throw std::runtime_error(fmt::format(
        "the processes cannot connect over TCP{}: {}",
        world_.has_transport() ? "; --transport mpi goes without" : "", sockets.error().message()));
  }
  return std::make_unique<TcpTransport>(
      TcpTransport::World{.topology = phase_.topology,
                          .rules = phase_.rules,
                          .rank = world_.rank(),
                          .clock = phase_.clock,
                          .mailbox = mailbox_,
                          .spins = spins(phase_),
                          .threads = carrier.threads,
                          .poller = poller_,
                          .start = phase_.start,
                          .grace = world_.has_transport() ? kGrace : kGraceWithHub,
                          .cut_off = [this](std::size_t rank) { world_.cut_off(rank); }},
      *std::move(sockets));
}

std::optional<int> Session::run() {
  start();
  guarded([&] { loop_.run(); });
  workers_.clear();
  pass_on_reports();
  return supervision_.stopped();
}

void Session::start() {
  guarded([&] {
    for (const auto& [worker, gate] : gates_) {
      workers_.push_back(phase_.start([this, worker = worker] { train(worker); }));
    }
  });
}

bool Session::turn() {
  bool moved = false;
  guarded([&] { moved = loop_.turn(); });
  return moved;
}

void Session::rest(Duration limit) {
  guarded([&] { over_ = !loop_.rest(limit); });
  if (over_) {
    workers_.clear();
    pass_on_reports();
    world_.expect_heartbeats();
  }
}

void Session::guarded(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    world_.fail(std::current_exception());
  }
}

void Session::train(NodeId worker) {
  const Iteration start = phase_.start_of(worker);
  Trainer trainer(phase_, {.worker = worker,
                           .gate = gates_.at(worker),
                           .host = *mailbox_,
                           .leading = leading_,
                           .begins = [this, start](Iteration t) { return line_.begin(t, start); },
                           .stepped =
                               [&](Iteration t, std::optional<double> loss) {
                                 supervision_.stepped(worker.index(), t, loss);
                                 pass_on_reports();
                               }});
  try {
    trainer.run();
    supervision_.finished();
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

void begin(ProcessWorld& world, const Phase& phase) {
  tune_process();
  world.outlive(
      [outlives = phase.outlives](std::size_t rank) { return outlives && outlives(HostId(rank)); });
}

}  // namespace

std::optional<int> train_processes(ProcessWorld& world, const Phase& phase, const Carrier& carrier,
                                   const Warn& warn) {
  begin(world, phase);
  const std::optional<int> stopped = Session(world, phase, carrier, warn).run();
  world.expect_heartbeats();
  return stopped;
}

std::unique_ptr<RunningPhase> begin_processes(ProcessWorld& world, const Phase& phase,
                                              const Carrier& carrier, const Warn& warn) {
  begin(world, phase);
  auto session = std::make_unique<Session>(world, phase, carrier, warn);
  session->start();
  return session;
}

}  // namespace sluice
