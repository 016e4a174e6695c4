#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drivers/realtime/phase.h"
#include "learners/learner.h"
#include "optimizers/update_rule.h"
#include "session/checkpoints.h"
#include "session/evaluated_model.h"
#include "session/extent.h"
#include "session/history.h"
#include "session/journal.h"
#include "session/merging.h"
#include "session/process_group.h"
#include "session/record.h"
#include "session/resumption.h"

namespace sluice {

// What a training run uses and reports to.
struct Training {
  ProcessGroup& group;
  std::span<const std::unique_ptr<Learner>> learners;  // of this process's workers, by rank
  const UpdateRule& rule;
  const Extent& extent;
  const Clock& clock;
  Record* record = nullptr;    // null: nothing is recorded
  Journal* journal = nullptr;  // of the leader; null: none
  // Makes a journal in a process that leads from now on, with where the workers are; empty: none.
  std::function<Journal*(const std::vector<Iteration>& at)> take_the_lead{};
  bool evaluates = false;      // the model is needed at the end; the same in all processes
  RunModel* model = nullptr;   // where it goes, in a process with workers
  OnNonFinite on_nonfinite{};  // these two: see Phase
  std::function<int()> interrupted{};
  Checkpoints* checkpoints = nullptr;      // null: none are written
  const Resumption* resumption = nullptr;  // whose iteration the job begins with
  Log log{};
};

// The result of a training run, apart from its learners.
struct Trained {
  Assembly assembly;  // the last one
  Counters counters;  // of the whole run, in this process
  std::optional<Merging> merging;
  std::optional<int> stopped;  // the signal that asked to stop before the end
  History history = {};
  std::vector<Iteration> at = {};  // by worker: the iteration that it would begin with next
  std::string part = {};  // of the evaluated model, as contribution_of(); empty: any replica
};

// Trains with the whole group, in one phase, or in several: if gradients are merged as measurements
// show, and not in given groups; if the workers have to meet so that the model can be evaluated
// before the end; if checkpoints are written; and if processes are lost and come back. Does not
// evaluate at the end.
Trained run_training(const Job& job, const Training& training);

// Trains with learners that compute nothing, beside a run or without one: only to measure how long
// synchronisation takes.
void train_idle(ProcessGroup& group, const Clock& clock, const Assembly& assembly, Iteration last,
                Observer& observer, bool may_spin = true);

}  // namespace sluice
