#include "cli/training.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "cli/console.h"
#include "compute/training_state.h"
#include "planner/merged_training.h"
#include "report/tee.h"
#include "runtime/mpi/mpi_training.h"
#include "runtime/threads/thread_training.h"

namespace sluice::cli {
namespace {

class ThreadRun {
 public:
  ThreadRun(const Job& job, const Training& training) : job_(job), training_(training) {}

  Trained run();

 private:
  // Goes on from the job's first iteration up to `last`.
  void train(Assembly assembly, Iteration last, Observer* also);
  void train_aside(const Assembly& assembly, std::span<const std::unique_ptr<Learner>> learners,
                   Iteration last, Observer& observer) const;
  Merging merging_of(const MergeOutcome& outcome) const;

  const Job& job_;
  const Training& training_;
  std::optional<TrainingState> state_;
  Trained trained_;
};

Trained ThreadRun::run() {
  const Iteration iterations = training_.extent.iterations;
  if (job_.strategy.partition != Partition::kMerged) {
    train(assemble(job_), iterations, nullptr);
  } else {
    const MergeOutcome outcome = train_merged(
        {.job = job_,
         .iterations = iterations,
         .train = [this](Assembly assembly, Iteration last,
                         Observer& times) { train(std::move(assembly), last, &times); },
         .train_aside = [this](const auto& assembly, auto learners, Iteration last,
                               Observer& times) { train_aside(assembly, learners, last, times); }});
    if (outcome.policy.plan().groups.empty()) {
      spdlog::warn("the run was too short to measure the layers, and nothing was merged");
    } else {
      trained_.merging = merging_of(outcome);
    }
  }
  training_.journal->on_boundary(iterations);
  return std::move(trained_);
}

void ThreadRun::train(Assembly assembly, Iteration last, Observer* also) {
  const Job& job = assembly.job;
  if (!state_) {
    state_.emplace(job.topology, training_.learners, *assembly.chunks, job.strategy,
                   training_.rule);
  }
  training_.record.watch(assembly);
  std::vector<Observer*> observers{training_.record.observer()};
  if (also != nullptr) {
    observers.push_back(also);
  }
  Tee tee(std::move(observers));
  sluice::train_on_threads(
      {.topology = job.topology,
       .hosts = assembly.protocols,
       .state = *state_,
       .first = job.first,
       .last = last,
       .clock = training_.clock,
       .observer = &tee,
       .on_step = [this](std::size_t, Iteration t,
                         double loss) { training_.journal->on_step(t, loss); },
       .on_boundary = [this](Iteration t) { training_.journal->on_boundary(t); },
       .boundary_every = training_.extent.per_epoch});
  trained_.counters += assembly.counters();
  trained_.assembly = std::move(assembly);
}

void ThreadRun::train_aside(const Assembly& assembly,
                            std::span<const std::unique_ptr<Learner>> learners, Iteration last,
                            Observer& observer) const {
  const Job& job = assembly.job;
  TrainingState state(job.topology, learners, *assembly.chunks, job.strategy, {});
  sluice::train_on_threads({.topology = job.topology,
                            .hosts = assembly.protocols,
                            .state = state,
                            .last = last,
                            .clock = training_.clock,
                            .observer = &observer,
                            .on_step = {},
                            .on_boundary = {}});
}

Merging ThreadRun::merging_of(const MergeOutcome& outcome) const {
  return {.groups = groups_of(trained_.assembly),
          .cost = outcome.policy.cost(),
          .predicted = outcome.policy.plan().iteration,
          .iteration = outcome.measured,
          .replans = outcome.policy.replans()};
}

Trained train_with_crew(const Job& job, const Training& training) {
  const Crew& crew = training.crew;
  Trained trained;
  trained.assembly = assemble(job);
  const Assembly& assembly = trained.assembly;
  training.record.watch(assembly);
  std::function<void(std::size_t, Iteration, double)> on_step;
  std::function<void(Iteration)> on_boundary;
  if (Journal* journal = training.journal) {
    on_step = [=](std::size_t, Iteration t, double loss) { journal->on_step(t, loss); };
    on_boundary = [=](Iteration t) { journal->on_boundary(t); };
  }
  train_on_mpi({.world = crew.world(),
                .topology = assembly.job.topology,
                .chunks = *assembly.chunks,
                .host = *assembly.protocols[crew.rank()],
                .learner = *training.learners.front(),
                .rule = training.rule,
                .strategy = assembly.job.strategy,
                .iterations = training.extent.iterations,
                .clock = training.clock,
                .observer = training.record.observer(),
                .on_step = on_step,
                .on_boundary = on_boundary,
                .boundary_every = training.extent.per_epoch,
                .warn = warn});
  trained.counters = assembly.counters();
  return trained;
}

}  // namespace

Trained run_training(const Job& job, const Training& training) {
  if (training.crew.is_launched()) {
    return train_with_crew(job, training);
  }
  return ThreadRun(job, training).run();
}

}  // namespace sluice::cli
