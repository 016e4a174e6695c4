#pragma once

#include <memory>

#include "formats/profile.h"
#include "learners/learner.h"
#include "learners/sleeper.h"

namespace sluice {

// Learners that learn nothing: each sleeps the profile's times layer by layer, with real buffers
// for parameters and gradients, so that all that is sent weighs what it would. Delays of waking up
// do not add up: a layer ends at a moment that is counted from the last wait for parameters.
LearnerFactory make_replay_learners(const Profile& profile,
                                    const std::shared_ptr<const Sleeper>& sleeper);

}  // namespace sluice
