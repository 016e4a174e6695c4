#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/realtime/load_ahead.h"
#include "formats/profile.h"
#include "session/extent.h"
#include "session/log.h"
#include "session/specs.h"
#include "torch/torch_learner.h"

namespace sluice {

// What is trained: a model on data, or the replay of a profile.
struct Workload {
  std::string name;  // of the model or its file, or "replay-" and the profile's name
  Extent extent;
  LearnerFactory factory;
  std::optional<TorchTask> task;        // of a real model
  std::shared_ptr<AheadLoader> loader;  // of its data
};

// How the work of an iteration is dealt to the workers.
struct Dealing {
  std::size_t workers = 1;
  std::vector<double> shares = {};  // of the joined batch, by worker; empty: equal
  bool joins_batches = true;        // see TorchTask
  std::uint64_t seed = 1;           // of the jitter of a replay
};
Dealing dealing_of(const TrainSpec& spec);

Result<Workload> make_workload(const TaskSpec& spec, const LengthSpec& length,
                               const Dealing& dealing, const Log& log);
// The length of a replay is in iterations only.
Result<Workload> make_workload(const ProfileSpec& spec, const LengthSpec& length,
                               const Dealing& dealing, const Log& log);

// Reads a profile and scales it.
Result<Profile> scaled_profile(const ProfileSpec& spec);

}  // namespace sluice
