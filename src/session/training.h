#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "drivers/realtime/phase.h"
#include "learners/learner.h"
#include "optimizers/update_rule.h"
#include "session/journal.h"
#include "session/process_group.h"
#include "session/record.h"

namespace sluice {

// What a training run works with and reports to.
struct Training {
  const ProcessGroup& group;
  std::span<const std::unique_ptr<Learner>> learners;  // of this process's workers, by rank
  const UpdateRule& rule;
  const Extent& extent;
  const Clock& clock;
  Record& record;
  Journal* journal;  // of the process that speaks; null in the others
  std::function<void(const NonFinite& found)> on_nonfinite{};  // these two as of a phase
  std::function<int()> interrupted{};
};

// What a training run leaves behind, beside its learners.
struct Trained {
  Assembly assembly;  // the last one
  Counters counters;  // of the whole run, in this process
  std::optional<Merging> merging;
  std::optional<int> stopped;  // the signal that asked to stop before the end
};

// Trains, but does not evaluate at the end, with the whole group if there is one, and else on
// threads of this process: at a phase, or in several if gradients are to be merged.
Trained run_training(const Job& job, const Training& training);

// Who trains beside a run, or without one, only to see how long synchronisation takes.
struct IdleTraining {
  const ProcessGroup& group;
  std::size_t workers;  // of this process
  const Clock& clock;
};

// With learners that compute nothing, by the driver of the group.
void train_idle(const IdleTraining& training, const Assembly& assembly, Iteration last,
                Observer& observer);

}  // namespace sluice
