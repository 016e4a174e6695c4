#include "session/training.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "learners/idle_learner.h"
#include "nodes/host.h"
#include "planner/merged_training.h"
#include "report/tee.h"
#include "session/nonfinite.h"

namespace sluice {
namespace {

// The groups and the interval as text.
std::string encode(const MergePolicy::Decision& decision) {
  Json groups = Json::array();
  for (const LayerGroup& group : decision.groups) {
    groups.push_back({group.begin, group.end});
  }
  return Json{{"groups", groups}, {"interval", decision.interval}}.dump();
}

MergePolicy::Decision decode_decision(const std::string& text) {
  const Json json = Json::parse(text);
  MergePolicy::Decision decision{.groups = {}, .interval = json.at("interval")};
  for (const Json& group : json.at("groups")) {
    decision.groups.push_back({group.at(0), group.at(1)});
  }
  return decision;
}

// A phase that only trains; the caller adds whom it reports to. It refers to its arguments.
Phase phase_of(const Assembly& assembly, TrainingState& state, Iteration first, Iteration last,
               const Clock& clock, Observer* observer) {
  const Job& job = assembly.job;
  return {.topology = job.topology,
          .chunks = *assembly.chunks,
          .strategy = job.strategy,
          .rules = *assembly.rules,
          .hosts = assembly.protocols,
          .state = state,
          .first = first,
          .last = last,
          .clock = clock,
          .observer = observer,
          .on_step = {},
          .on_boundary = {},
          .outlives = [strategy = job.strategy, topology = job.topology](HostId lost) {
            return why_it_ends(strategy, topology, lost).empty();
          }};
}

class Run {
 public:
  Run(const Job& job, const Training& training) : job_(job), training_(training) {}

  Trained run();

 private:
  MergeOutcome train_merged();
  // Continues from the job's first iteration up to `last`; false if it was stopped early.
  bool train(Assembly assembly, Iteration last, Observer* also);
  void train_phase(Iteration first, Iteration last, Observer* observer);
  // Whether the workers have to meet for an evaluation before the end.
  bool meets() const;
  // Whether they do so before this iteration.
  bool meets_at(Iteration iteration) const {
    return meets() && iteration > 0 && iteration % training_.extent.evaluate_every() == 0;
  }
  // The end of the phase that begins here, if nothing stops it.
  Iteration end_of_phase(Iteration first, Iteration last) const;
  // Where a phase ended that did not reach its end. Collective.
  Iteration stopped_at();
  // Collective.
  void checkpoint_at(Iteration iteration);
  int interruption() const;
  void evaluate(Iteration iterations);
  Merging merging_of(const MergeOutcome& outcome) const;
  // Whether the result of the run is not just any replica.
  bool collects() const {
    return training_.evaluates && evaluated_model(job_.strategy) != EvaluatedModel::kReplica;
  }
  void collect_model();  // collective
  void take_model(std::span<const std::string> contributions);

  const Job& job_;
  const Training& training_;
  std::optional<TrainingState> state_;
  Trained trained_;
  Iteration evaluated_ = 0;  // when the workers last met for it
};

Trained Run::run() {
  if (job_.strategy.partition != Partition::kMerged || !job_.groups.empty()) {
    train(assemble(job_), training_.extent.iterations, nullptr);
    if (!job_.groups.empty() && training_.resumption != nullptr) {
      trained_.merging.emplace().groups = groups_of(trained_.assembly);
    }
  } else if (const MergeOutcome outcome = train_merged(); !outcome.policy.plan().groups.empty()) {
    trained_.merging = merging_of(outcome);
  }
  collect_model();
  if (training_.checkpoints != nullptr) {
    training_.checkpoints->finish();
  }
  return std::move(trained_);
}

void Run::collect_model() {
  if (collects()) {
    ProcessGroup& group = training_.group;
    const std::string own = contribution_of(trained_.assembly, *state_, group.own_host());
    const std::vector<std::string> all = group.to_leader(own, "the trained model");
    group.attend([&] { take_model(all); });
  }
}

void Run::take_model(std::span<const std::string> contributions) {
  if (training_.model != nullptr) {
    training_.model->set(model_from(trained_.assembly, contributions));
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
             return decode_decision(
                 training_.group.from_leader(encode(own), "the groups of layers"));
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
    }
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
  for (Iteration at = now.job.first; at < last && !trained_.stopped;) {
    if (meets_at(at) && evaluated_ != at) {
      evaluate(at);
    }
    const Iteration end = end_of_phase(at, last);
    train_phase(at, end, is_watched ? &tee : nullptr);
    at = trained_.stopped ? stopped_at() : end;
    checkpoint_at(at);
  }
  trained_.counters += now.counters();
  return !trained_.stopped;
}

void Run::train_phase(Iteration first, Iteration last, Observer* observer) {
  const Assembly& assembly = trained_.assembly;
  Phase phase = phase_of(assembly, *state_, first, last, training_.clock, observer);
  phase.on_nonfinite = training_.on_nonfinite;
  phase.interrupted = [this] { return interruption(); };
  if (Journal* journal = training_.journal) {
    phase.on_step = [=](const StepReport& step) { journal->on_step(step); };
    phase.boundary_every = meets() ? 0 : training_.extent.evaluate_every();
    phase.on_boundary = [=, this, &assembly](Iteration t) {
      if (collects()) {
        const std::string all = contribution_of(assembly, *state_, std::nullopt);
        take_model({&all, 1});
      }
      journal->on_boundary(t, evaluated_model(job_.strategy));
    };
  }
  trained_.stopped = training_.group.train(phase);
}

Iteration Run::end_of_phase(Iteration first, Iteration last) const {
  Iteration end = last;
  if (meets()) {
    const Iteration every = training_.extent.evaluate_every();
    end = std::min(end, (first / every + 1) * every);
  }
  if (training_.checkpoints != nullptr) {
    end = std::min(end, training_.checkpoints->next_after(first).value_or(end));
  }
  return end;
}

int Run::interruption() const {
  const int signal = training_.interrupted ? training_.interrupted() : 0;
  const bool due = training_.checkpoints != nullptr && training_.checkpoints->is_due();
  return signal == 0 && due ? kCheckpointSignal : signal;
}

// A process with servers only does not know.
Iteration Run::stopped_at() {
  if (training_.checkpoints == nullptr) {
    return training_.extent.iterations;
  }
  const Iteration own = trained_.assembly.ended().value_or(0);
  return std::stoll(training_.group.from_leader(std::to_string(own), "where training stopped"));
}

// After a divergence there is nothing to keep.
void Run::checkpoint_at(Iteration iteration) {
  Checkpoints* const checkpoints = training_.checkpoints;
  if (checkpoints == nullptr) {
    return;
  }
  const bool is_due = checkpoints->next_after(iteration - 1) == iteration;
  const bool is_end = iteration == training_.extent.iterations;
  if (is_due || is_end || (trained_.stopped && trained_.stopped != kDivergedSignal)) {
    checkpoints->take(trained_.assembly, *state_, iteration);
  }
  if (trained_.stopped == kCheckpointSignal) {
    trained_.stopped.reset();
  }
}

// The others wait: the next phase needs all.
void Run::evaluate(Iteration iterations) {
  evaluated_ = iterations;
  collect_model();
  ProcessGroup& group = training_.group;
  if (Journal* journal = training_.journal) {
    group.attend([&] { journal->on_boundary(iterations, evaluated_model(job_.strategy)); });
  }
  group.from_leader("", "the evaluation");
}

Merging Run::merging_of(const MergeOutcome& outcome) const {
  return {.groups = groups_of(trained_.assembly),
          .cost = outcome.policy.cost(),
          .as = outcome.policy.plan().as,
          .predicted = outcome.policy.plan().iteration,
          .iteration = outcome.measured,
          .replans = outcome.policy.replans()};
}

}  // namespace

void train_idle(ProcessGroup& group, const Clock& clock, const Assembly& assembly, Iteration last,
                Observer& observer, bool may_spin) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < workers_here(group, assembly.job.topology).size(); ++w) {
    learners.push_back(std::make_unique<IdleLearner>(assembly.job.layers));
  }
  TrainingState state = state_of(group, assembly, learners, {});
  Phase phase = phase_of(assembly, state, assembly.job.first, last, clock, &observer);
  phase.may_spin = may_spin;
  group.train(phase);
}

Trained run_training(const Job& job, const Training& training) { return Run(job, training).run(); }

}  // namespace sluice
