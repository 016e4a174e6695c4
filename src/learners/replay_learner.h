#pragma once

#include <memory>

#include "formats/profile.h"
#include "learners/learner.h"
#include "learners/sleeper.h"

namespace sluice {

// Learners that do not learn: each sleeps the profile's times layer by layer. Buffers for
// parameters and gradients are real, so all messages have their full size. Late wake-ups do not
// add up: the end of a layer is counted from the last wait for parameters.
LearnerFactory make_replay_learners(const Profile& profile,
                                    const std::shared_ptr<const Sleeper>& sleeper);

}  // namespace sluice
