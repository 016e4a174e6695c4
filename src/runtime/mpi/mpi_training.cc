#include "runtime/mpi/mpi_training.h"

#include <thread>

#include "base/check.h"
#include "compute/server_state.h"
#include "runtime/host_loop.h"
#include "runtime/mpi/mpi_supervision.h"
#include "runtime/mpi/mpi_transport.h"
#include "runtime/trainer.h"

namespace sluice {
namespace {

class Session {
 public:
  explicit Session(const MpiTraining& setup);

  void run();

 private:
  void train();
  void boundary(Iteration iteration);
  void pass_on_reports();

  const MpiTraining& setup_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  Gate gate_;
  GradientSlots slots_;
  ZeroedBuffer server_parameters_;
  Workspace worker_;
  Workspace server_;
  MpiTransport transport_;
  MpiSupervision supervision_;
  HostLoop loop_;
};

Session::Session(const MpiTraining& setup)
    : setup_(setup),
      gate_(setup.learner.layers().size()),
      slots_(setup.learner, setup.strategy.gradient_slots()),
      server_parameters_(
          server_parameters(setup.learner.parameters(), setup.chunks, setup.world.rank())),
      worker_(setup.learner.parameters(), slots_.all(), setup.rule, setup.strategy,
              setup.topology.workers()),
      server_(server_parameters_.values(), {}, setup.rule, setup.strategy,
              setup.topology.workers()),
      transport_({.topology = setup.topology,
                  .chunks = setup.chunks,
                  .clock = setup.clock,
                  .mailbox = mailbox_}),
      supervision_({.transport = transport_,
                    .gate = gate_,
                    .chunks = setup.chunks,
                    .layers = setup.learner.layers(),
                    .clock = setup.clock,
                    .mailbox = *mailbox_,
                    .warn = setup.warn}),
      loop_({.protocol = setup.host,
             .mailbox = *mailbox_,
             .transport = supervision_,
             .clock = setup.clock,
             .observer = setup.observer}) {
  check(setup.topology.workers() == setup.topology.hosts() &&
            setup.topology.servers() == setup.topology.hosts(),
        "a process has one worker and one server");
  const std::size_t rank = setup.world.rank();
  loop_.add(setup.topology.worker(rank), worker_, &gate_);
  loop_.add(setup.topology.server(rank), server_, nullptr);
}

void Session::run() {
  {
    const std::jthread worker([this] {
      try {
        train();
      } catch (const Cancelled&) {
        // The loop failed first; its reason is the one to tell.
      } catch (...) {
        supervision_.failed(std::current_exception());
      }
    });
    try {
      loop_.run();
    } catch (...) {
      gate_.cancel();
      throw;
    }
  }
  pass_on_reports();
  if (setup_.on_boundary) {
    setup_.on_boundary(setup_.iterations);
  }
}

void Session::train() {
  const NodeId self = setup_.topology.worker(setup_.world.rank());
  Trainer trainer({.worker = self,
                   .learner = setup_.learner,
                   .slots = slots_,
                   .gate = gate_,
                   .host = *mailbox_,
                   .clock = setup_.clock,
                   .observer = setup_.observer});
  mailbox_->post(Started{self});
  for (Iteration t = 0; t < setup_.iterations; ++t) {
    if (t == 0 || (setup_.boundary_every > 0 && t % setup_.boundary_every == 0)) {
      boundary(t);
    }
    supervision_.stepped(t, trainer.step(t));
    pass_on_reports();
  }
  gate_.wait_for_all(setup_.iterations);
  supervision_.finished();
}

void Session::boundary(Iteration iteration) {
  if (setup_.on_boundary) {
    gate_.wait_for_all(iteration);
    setup_.on_boundary(iteration);
  }
}

// From the worker's thread, or after its end: a slow listener must not hold up communication.
void Session::pass_on_reports() {
  for (const StepReport& step : supervision_.take_reports()) {
    if (setup_.on_step) {
      setup_.on_step(step.rank, step.iteration, step.loss);
    }
  }
}

}  // namespace

void train_on_mpi(const MpiTraining& training) { Session(training).run(); }

}  // namespace sluice
