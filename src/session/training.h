#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "drivers/realtime/phase.h"
#include "learners/learner.h"
#include "optimizers/update_rule.h"
#include "session/checkpoints.h"
#include "session/evaluated_model.h"
#include "session/extent.h"
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
  bool evaluates = false;      // the model is needed at the end; the same in all processes
  RunModel* model = nullptr;   // where it goes: of the leader, if it is needed
  OnNonFinite on_nonfinite{};  // these two: see Phase
  std::function<int()> interrupted{};
  Checkpoints* checkpoints = nullptr;      // null: none are written
  const Resumption* resumption = nullptr;  // whose iteration the job begins with
  Log log{};
};

// From this iteration on sums were of so many workers, since one was lost, or is back.
struct Regrouped {
  Iteration iteration = 0;
  std::size_t workers = 0;
};

// The result of a training run, apart from its learners.
struct Trained {
  Assembly assembly;  // the last one
  Counters counters;  // of the whole run, in this process
  std::optional<Merging> merging;
  std::optional<int> stopped;            // the signal that asked to stop before the end
  std::vector<std::size_t> joined = {};  // ranks that were lost and came back
  std::vector<Regrouped> regrouped = {};
};

// Trains with the whole group, in one phase, or in several: if gradients are merged as measurements
// show, and not in given groups; if the workers have to meet so that the model can be evaluated
// before the end; and if checkpoints are written. Does not evaluate at the end.
Trained run_training(const Job& job, const Training& training);

// Trains with learners that compute nothing, beside a run or without one: only to measure how long
// synchronisation takes.
void train_idle(ProcessGroup& group, const Clock& clock, const Assembly& assembly, Iteration last,
                Observer& observer, bool may_spin = true);

}  // namespace sluice
