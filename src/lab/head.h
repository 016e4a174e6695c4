#pragma once

#include "lab/plan.h"

namespace sluice::lab {

// The first byte of the report when all hosts are up and the command was started; anything else is
// an error message. When the command has ended, the head's /proc/net/dev follows.
inline constexpr char kStanding = '+';

// The main function of the head: the first process of its own PID namespace, so that its end is the
// end of every process, network and mount of the lab. It creates the hosts, starts the command,
// passes SIGTERM on to it, and exits with its exit code. It dies with its parent. Its end closes
// `report`.
[[noreturn]] void live_as_head(const Spec& spec, Launcher launcher, int report);

}  // namespace sluice::lab
