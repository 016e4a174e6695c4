#pragma once

#include <functional>
#include <memory>

#include "formats/profile.h"
#include "learners/learner.h"
#include "learners/sleeper.h"

namespace sluice {

// Learners that do not learn: each sleeps the profile's times layer by layer. Buffers for
// parameters and gradients are real, so all messages have their full size. Late wake-ups do not
// add up: the end of a layer is counted from the last wait for parameters.
// `pace`, if given, is the factor on all times of a worker in an iteration.
using ReplayPace = std::function<double(std::size_t rank, Iteration iteration)>;
LearnerFactory make_replay_learners(const Profile& profile,
                                    const std::shared_ptr<const Sleeper>& sleeper,
                                    const ReplayPace& pace = {});

}  // namespace sluice
