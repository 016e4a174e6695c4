#pragma once

#include <memory>
#include <optional>
#include <span>

#include "cli/journal.h"
#include "cli/record.h"
#include "compute/learner.h"
#include "server/update_rule.h"

namespace sluice::cli {

// What a training run works with and reports to.
struct Training {
  std::span<const std::unique_ptr<Learner>> learners;  // by rank
  const UpdateRule& rule;
  const Extent& extent;
  const Clock& clock;
  Record& record;
  Journal& journal;
};

// What a training run leaves behind, beside its learners.
struct Trained {
  Assembly assembly;  // the last one
  Counters counters;  // of the whole run
  std::optional<Merging> merging;
};

// Trains on threads of this process: at a stretch, or in several if gradients are to be merged.
Trained train_on_threads(const Job& job, const Training& training);

}  // namespace sluice::cli
