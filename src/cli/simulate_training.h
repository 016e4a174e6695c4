#pragma once

#include <string>

#include "cli/settings.h"
#include "cli/simulated_setup.h"
#include "formats/profile.h"

namespace sluice::cli {

// simulate --train: trains for real on virtual workers. The settings describe a job that can be
// simulated.
int simulate_training(const Settings& settings, const SimulatedSetup& setup);

// For the user, if the times of the profile are those of another batch; else empty.
std::string note_on_batch(const Settings& settings, const Profile& profile);

}  // namespace sluice::cli
