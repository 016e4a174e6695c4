#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/settings.h"
#include "drivers/realtime/load_ahead.h"
#include "formats/profile.h"
#include "session/journal.h"
#include "torch/torch_learner.h"

namespace sluice {

// What the user wants to train: a model on data, or the replay of a profile.
struct Workload {
  std::string name;  // of the model or its file, or of the profile behind "replay-"
  Extent extent;
  LearnerFactory factory;
  std::optional<TorchTask> task;        // of a real model
  std::shared_ptr<AheadLoader> loader;  // of its data
};

Result<Workload> workload_of(const cli::Settings& settings);

// What to compute with, by the settings for models and data. Of synthetic data so many samples are
// made up; 0: as many as are worth it.
Result<TorchTask> task_of(const cli::Settings& settings, std::size_t workers, std::int64_t samples);

// Reads a profile and applies the scales that the user asked for.
Result<Profile> scaled_profile(const std::string& path, const cli::Settings& settings);

}  // namespace sluice
