#include "session/training.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>

#include "drivers/realtime/finish_line.h"
#include "learners/idle_learner.h"
#include "model/aggregation_groups.h"
#include "nodes/regrouped_job.h"
#include "planner/merged_training.h"
#include "report/tee.h"
#include "session/admission.h"
#include "session/nonfinite.h"
#include "session/regrouping.h"
#include "session/training_phase.h"

namespace sluice {
namespace {

class Run {
 public:
  Run(const Job& job, const Training& training)
      : job_(job), training_(training), journal_(training.journal), at_(starts_of(job)) {
    if (training.resumption != nullptr) {
      trained_.history = training.resumption->history;
    }
  }

  Trained run();

 private:
  MergeOutcome train_merged();
  // Continues from where the workers are up to `last`; false if it was stopped early.
  bool train(Assembly assembly, Iteration last, Observer* also);
  void train_phase(Iteration last, Observer* observer);
  // Whether the workers have to meet for an evaluation before the end.
  bool meets() const;
  // Whether they do so before this iteration.
  bool meets_at(Iteration iteration) const {
    return meets() && iteration > 0 && iteration % training_.extent.evaluate_every() == 0;
  }
  // The end of the phase that begins here, if nothing stops it.
  Iteration end_of_phase(Iteration first, Iteration last) const;
  // Where the slowest worker is.
  Iteration behind() const { return std::ranges::min(at_); }
  // Learns where the workers are after a phase that did not reach its end. Collective.
  void note_stop();
  // Writes one if it is due. Collective.
  void checkpoint();
  // Goes on without those that were lost, and lets in who waits, if the phase was ended for that.
  // Collective.
  void regroup();
  void let_in(const RunState& run);
  // From the next phase on, with other workers.
  void go_on_with(Job job);
  // Whether local steps, without which workers can do where they are lost, follow synchronous
  // iterations, in which they cannot. Then a phase ends between them, so that all know which.
  bool becomes_independent_after(Iteration first) const;
  void begin_local_steps();
  void replace_nodes(Job job);
  // Whether workers that are not together have come so far that a checkpoint is due.
  bool have_come_far() const;
  int interruption() const;
  void evaluate(Iteration iterations);
  bool is_together() const {
    return pace_of(job_.strategy.algorithm) == FinishLine::Pace::kTogether;
  }
  // Whether the result of the run is not just any replica.
  bool collects() const {
    return training_.evaluates && evaluated_model(job_.strategy) != EvaluatedModel::kReplica;
  }
  std::string part_of_model();
  void take_model(std::span<const std::string> parts);
  // Whether this process leads, but did not when the phase began.
  bool leads_now() const {
    return journal_ == nullptr && training_.take_the_lead && training_.group.is_leader();
  }
  void begin_to_lead_if_due();

  const Job& job_;
  const Training& training_;
  Journal* journal_;
  std::optional<TrainingState> state_;
  Trained trained_;
  std::vector<Iteration> at_;  // by worker, between phases: the iteration that it begins with next
  // In the leader: the steps of all workers, those before this run included. While a phase runs.
  std::atomic<std::int64_t> steps_{0};
  Iteration evaluated_ = 0;         // when the workers last met for it
  std::vector<PeerJoined> joined_;  // since the last phase
};

Trained Run::run() {
  if (job_.strategy.partition != Partition::kMerged || !job_.groups.empty()) {
    train(assemble(job_), training_.extent.iterations, nullptr);
    if (!job_.groups.empty() && training_.resumption != nullptr) {
      trained_.merging.emplace().groups = groups_of(trained_.assembly);
    }
  } else if (const MergeOutcome outcome = train_merged(); !outcome.policy.plan().groups.empty()) {
    trained_.merging = merging_of(outcome, trained_.assembly);
  }
  if (training_.checkpoints != nullptr) {
    training_.checkpoints->finish();
  }
  trained_.part = part_of_model();
  trained_.at = at_;
  return std::move(trained_);
}

std::string Run::part_of_model() {
  return collects() ? contribution_of(trained_.assembly, *state_, training_.group.own_host()) : "";
}

void Run::take_model(std::span<const std::string> parts) {
  if (training_.model != nullptr) {
    training_.model->set(model_from(trained_.assembly, parts));
  }
}

void Run::begin_to_lead_if_due() {
  if (leads_now()) {
    journal_ = training_.take_the_lead(at_);
  }
}

MergeOutcome Run::train_merged() {
  return sluice::train_merged(
      {.job = job_,
       .iterations = training_.extent.iterations,
       .train = [this](Assembly assembly, Iteration last,
                       Observer& times) { return train(std::move(assembly), last, &times); },
       .train_aside =
           [this](const Assembly& assembly, Iteration last, Observer& times) {
             train_idle(training_.group, training_.clock, assembly, last, times);
           },
       .agree =
           [this](const MergePolicy::Decision& own) {
             return decision_from(
                 training_.group.from_leader(text_of(own), "the groups of layers"));
           }});
}

// In virtual time everybody holds still while the model is evaluated.
bool Run::meets() const {
  return collects() && !training_.group.virtual_now() && training_.extent.evaluate_every() > 0;
}

bool Run::train(Assembly assembly, Iteration last, Observer* also) {
  trained_.assembly = std::move(assembly);
  const Assembly& now = trained_.assembly;
  if (!state_) {
    state_.emplace(state_of(training_.group, now, training_.learners, training_.rule));
    if (training_.resumption != nullptr) {
      restore(*training_.resumption, now, *state_);
      evaluated_ = training_.resumption->evaluated;
    }
    training_.group.end_beginning(takes_joiners(now.job.strategy, now.job.topology));
  }
  std::vector<Observer*> observers;
  if (training_.record != nullptr) {
    training_.record->watch(now, training_.extent.steady_from(), training_.extent.shown_from());
    observers.push_back(training_.record->observer());
  }
  if (also != nullptr) {
    observers.push_back(also);
  }
  const bool is_watched = !observers.empty();
  Tee tee(std::move(observers));
  while (behind() < last && !trained_.stopped) {
    begin_to_lead_if_due();
    if (meets_at(behind()) && evaluated_ != behind()) {
      evaluate(behind());
    }
    train_phase(end_of_phase(behind(), last), is_watched ? &tee : nullptr);
    begin_to_lead_if_due();
    regroup();
    begin_local_steps();
    checkpoint();
  }
  trained_.counters += now.counters();
  return !trained_.stopped;
}

void Run::train_phase(Iteration last, Observer* observer) {
  const Assembly& assembly = trained_.assembly;
  const std::vector<Iteration> starts = at_;
  Phase phase = phase_of(assembly, *state_, starts, last, training_.clock, observer);
  phase.on_nonfinite = training_.on_nonfinite;
  phase.interrupted = [this] { return interruption(); };
  phase.joined = joined_;
  steps_ = std::accumulate(at_.begin(), at_.end(), std::int64_t{0});
  phase.on_step = [this](const StepReport& step) {
    ++steps_;
    if (journal_ != nullptr) {
      journal_->on_step(step);
    }
  };
  if (journal_ != nullptr) {
    phase.boundary_every = meets() ? 0 : training_.extent.evaluate_every();
    phase.on_boundary = [this, &assembly](Iteration t) {
      if (collects()) {
        const std::string all = contribution_of(assembly, *state_, std::nullopt);
        take_model({&all, 1});
      }
      journal_->on_boundary(t, evaluated_model(job_.strategy));
    };
  }
  trained_.stopped = training_.group.train(phase);
  joined_.clear();
  if (trained_.stopped) {
    note_stop();
  } else {
    std::ranges::transform(at_, at_.begin(), [&](Iteration at) { return std::max(at, last); });
  }
}

Iteration Run::end_of_phase(Iteration first, Iteration last) const {
  Iteration end = last;
  if (meets()) {
    const Iteration every = training_.extent.evaluate_every();
    end = std::min(end, (first / every + 1) * every);
  }
  if (training_.checkpoints != nullptr && is_together()) {
    end = std::min(end, training_.checkpoints->next_after(first).value_or(end));
  }
  if (becomes_independent_after(first)) {
    end = std::min(end, job_.strategy.cadence.synchronous);
  }
  return end;
}

// They do not wait for each other, also for a checkpoint: it is due after so many iterations in the
// mean, and finds each worker where it is.
bool Run::have_come_far() const {
  const auto due = training_.checkpoints->next_after(mean_of(at_));
  return !is_together() && training_.group.is_leader() && due &&
         steps_ / static_cast<std::int64_t>(at_.size()) >= *due;
}

int Run::interruption() const {
  const int signal = training_.interrupted ? training_.interrupted() : 0;
  const bool changes = leads_now() || training_.group.has_joiners() ||
                       (job_.strategy.sums_can_be_given_up() &&
                        misses_somebody(training_.group, trained_.assembly.job));
  if (signal == 0 && training_.group.is_leader() && changes) {
    return kRegroupSignal;
  }
  const bool due =
      training_.checkpoints != nullptr && (training_.checkpoints->is_due() || have_come_far());
  return signal == 0 && due ? kCheckpointSignal : signal;
}

// A worker that was lost stays where it was last known to be.
void Run::note_stop() {
  if (training_.checkpoints == nullptr && trained_.stopped != kRegroupSignal) {
    return;
  }
  Json own = Json::array();
  for (const auto& [worker, iteration] : trained_.assembly.ended()) {
    own.push_back({worker.index(), iteration});
  }
  const auto all = [this](const std::vector<std::string>& parts) {
    Json at = at_;
    for (const std::string& part : parts) {
      for (const Json& one : part.empty() ? Json::array() : Json::parse(part)) {
        at.at(one.at(0).get<std::size_t>()) = one.at(1);
      }
    }
    return at.dump();
  };
  at_ = Json::parse(training_.group.agree(own.dump(), all, "where training stopped"))
            .get<std::vector<Iteration>>();
}

void Run::regroup() {
  const RunState run{.group = training_.group,
                     .assembly = trained_.assembly,
                     .state = *state_,
                     .at = at_,
                     .evaluated = evaluated_,
                     .now = training_.clock.now(),
                     .history = trained_.history};
  if (run.group.size() > 1 && job_.strategy.sums_can_be_given_up()) {
    if (auto job = sluice::regroup(run, training_.log)) {
      go_on_with(*std::move(job));
    }
  }
  if (trained_.stopped == kRegroupSignal) {
    trained_.stopped.reset();
    let_in(run);
  }
}

void Run::go_on_with(Job job) {
  trained_.history.regrouped.push_back({job.first, AggregationGroups(job).size()});
  replace_nodes(std::move(job));
}

bool Run::becomes_independent_after(Iteration first) const {
  return training_.group.size() > 1 && job_.strategy.sums_can_be_given_up() &&
         first < job_.strategy.cadence.synchronous;
}

void Run::begin_local_steps() {
  Job job = trained_.assembly.job;
  if (becomes_independent_after(job.first) && !becomes_independent_after(behind())) {
    job.first = behind();
    job.starts.clear();
    replace_nodes(std::move(job));
  }
}

void Run::replace_nodes(Job job) {
  trained_.counters += trained_.assembly.counters();
  trained_.assembly = assemble(std::move(job));
}

void Run::let_in(const RunState& run) {
  if (training_.checkpoints != nullptr) {
    training_.checkpoints->regroup();
  }
  joined_ = sluice::let_in(run, training_.log);
  for (const PeerJoined& joined : joined_) {
    trained_.history.joined.push_back(joined.host.index());
    if (journal_ != nullptr) {
      journal_->on_join(job_.topology.workers_per_host(), joined.iteration);
    }
  }
  if (!joined_.empty() && job_.strategy.sums_can_be_given_up()) {
    go_on_with(job_with(joined_, trained_.assembly.job, behind()));
    joined_.clear();
  }
}

// After a divergence there is nothing to keep.
void Run::checkpoint() {
  Checkpoints* const checkpoints = training_.checkpoints;
  if (checkpoints == nullptr) {
    return;
  }
  const Iteration iteration = mean_of(at_);
  const bool is_due = checkpoints->next_after(iteration - 1) == iteration;
  const bool is_end = behind() >= training_.extent.iterations;
  if (is_due || is_end || (trained_.stopped && trained_.stopped != kDivergedSignal)) {
    checkpoints->take(trained_.assembly, *state_, at_);
  }
  if (trained_.stopped == kCheckpointSignal) {
    trained_.stopped.reset();
  }
}

// The others wait: the next phase needs all.
void Run::evaluate(Iteration iterations) {
  evaluated_ = iterations;
  const EvaluatedModel model = evaluated_model(job_.strategy);
  ProcessGroup& group = training_.group;
  const std::string own = part_of_model();
  const auto evaluated = [&](std::vector<std::string> parts) {
    parts.at(group.rank()) = own;
    group.attend([&] {
      take_model(parts);
      begin_to_lead_if_due();
      if (journal_ != nullptr) {
        journal_->on_boundary(iterations, model);
      }
    });
    return std::string();
  };
  group.agree(is_in_parts(model) ? own : "", evaluated, "the evaluation");
}

}  // namespace

void train_idle(ProcessGroup& group, const Clock& clock, const Assembly& assembly, Iteration last,
                Observer& observer, bool may_spin) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < workers_here(group, assembly.job.topology).size(); ++w) {
    learners.push_back(std::make_unique<IdleLearner>(assembly.job.layers));
  }
  TrainingState state = state_of(group, assembly, learners, {});
  const std::vector<Iteration> starts = starts_of(assembly.job);
  Phase phase = phase_of(assembly, state, starts, last, clock, &observer);
  phase.may_spin = may_spin;
  group.train(phase);
}

Trained run_training(const Job& job, const Training& training) { return Run(job, training).run(); }

}  // namespace sluice
