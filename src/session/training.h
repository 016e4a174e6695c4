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
  ProcessGroup& group;
  std::span<const std::unique_ptr<Learner>> learners;  // of this process's workers, by rank
  const UpdateRule& rule;
  const Extent& extent;
  const Clock& clock;
  Record* record = nullptr;    // null: nothing is kept
  Journal* journal = nullptr;  // of the leader; null: nobody looks on
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

// Trains with the whole group, but does not evaluate at the end: at a phase, or in several if
// gradients are to be merged.
Trained run_training(const Job& job, const Training& training);

// Trains beside a run, or without one, with learners that compute nothing: only to see how long
// synchronisation takes.
void train_idle(ProcessGroup& group, const Clock& clock, const Assembly& assembly, Iteration last,
                Observer& observer);

}  // namespace sluice
