#pragma once

#include "lab/plan.h"

namespace sluice::lab {

// What the owner reads from the report first when all hosts stand and the command was started;
// anything else is a complaint.
inline constexpr char kStanding = '+';

// The life of the head: the first process of a PID namespace of its own, so that its end is the end
// of every process, network and mount of the lab. It makes the hosts, starts the command, passes
// SIGTERM on to it, and ends with its exit code. It dies with its parent. `report` is closed by its
// end.
[[noreturn]] void live_as_head(const Spec& spec, Launcher launcher, int report);

}  // namespace sluice::lab
